//! Every line of the table of limits has a test of each version.

const PAGE: &str = include_str!("../../docs/server.md");

/// For each limit, its test of HTTP/1.1, HTTP/2 and HTTP/3: in one file and one function where the scenario is the
/// same, or the reason why there can be none.
const TESTS: [(&str, [Proof; 3]); 11] = [
    (
        "header_list",
        [Proof::Test("limits/fields.rs", "fields_beyond_the_limit_get_431"); 3],
    ),
    (
        "field_table",
        [
            Proof::Impossible("there is none"),
            Proof::Impossible("4 KiB, whatever the limit is"),
            Proof::Test("limits/fields.rs", "tables_have_the_limit_that_was_set"),
        ],
    ),
    (
        "header_time",
        [Proof::Test(
            "limits/requests.rs",
            "a_connection_on_which_no_request_comes_ends",
        ); 3],
    ),
    (
        "stall_time",
        [
            Proof::Test(
                "limits/stalls.rs",
                "over_http1_a_response_that_is_not_taken_ends_its_connection",
            ),
            Proof::Test(
                "limits/stalls.rs",
                "over_http2_a_response_that_is_not_taken_ends_alone",
            ),
            Proof::Test(
                "limits/stalls.rs",
                "over_http3_a_response_that_is_not_taken_ends_alone",
            ),
        ],
    ),
    (
        "requests",
        [Proof::Test(
            "limits/requests.rs",
            "a_connection_has_as_many_requests_as_the_limit_says",
        ); 3],
    ),
    (
        "cancelled",
        [
            Proof::Impossible("nothing: a client can cancel only by closing the connection"),
            Proof::Test(
                "limits/cancels.rs",
                "a_flood_of_cancelled_requests_ends_the_connection_after_its_download",
            ),
            Proof::Test(
                "limits/cancels.rs",
                "a_flood_of_cancelled_requests_ends_the_connection_after_its_download",
            ),
        ],
    ),
    (
        "idle_time",
        [Proof::Test("limits/requests.rs", "a_connection_without_requests_ends"); 3],
    ),
    (
        "drain_time",
        [Proof::Test(
            "limits/drains.rs",
            "a_connection_that_was_told_to_end_ends_in_its_time",
        ); 3],
    ),
    (
        "tcp_connections",
        [Proof::Test(
            "limits/places.rs",
            "connections_beyond_the_limit_are_refused",
        ); 3],
    ),
    (
        "memory",
        [Proof::Test("limits/memory.rs", "beyond_the_budget_nothing_is_begun"); 3],
    ),
    (
        "early_methods",
        [Proof::Test(
            "limits/early.rs",
            "unsafe_requests_that_may_be_replays_are_not_answered",
        ); 3],
    ),
];

/// What shows that a limit holds in a version.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// A test, by its file and name.
    Test(&'static str, &'static str),
    /// A client cannot do it. The page says the same.
    Impossible(&'static str),
}

/// Returns the body of a function in a file of tests.
fn source_of(file: &str, test: &str) -> Option<String> {
    let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    let (_, rest) = source.split_once(&format!("fn {test}("))?;
    let (body, _) = rest.split_once("\n}")?;
    Some(body.to_owned())
}

#[test]
fn every_limit_has_a_test_of_each_version() {
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| `Limits::`"));
    let rows: Vec<_> = rows
        .skip(2)
        .take_while(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(rows.len(), TESTS.len());
    for (row, (name, proofs)) in rows.into_iter().zip(TESTS) {
        assert!(row.starts_with(&format!("| `{name}` |")), "{row}: {name}");
        let verdicts: Vec<_> = row.split(" | ").skip(3).collect();
        for ((proof, verdict), version) in proofs.into_iter().zip(verdicts).zip(1..) {
            match proof {
                Proof::Impossible(why) => assert_eq!(why, verdict, "{name}"),
                Proof::Test(file, test) => {
                    let body = source_of(file, test);
                    let body = body.unwrap_or_else(|| panic!("{name}: {file} has no {test}"));
                    // Requests of HTTP/1.1 cannot be cancelled.
                    let first = if file.ends_with("cancels.rs") { 2 } else { 1 };
                    let is_of = body.contains(&format!("Version::Http{version}"))
                        || body.contains("in VERSIONS") && version >= first;
                    assert!(is_of, "{name}: {test} is no test of HTTP/{version}");
                }
            }
        }
    }
}
