//! Every line of the table of limits has a test of each version.

use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/http3.md");

/// The tests of a limit, each with its file. One with a list of versions is a test of each of them.
const TESTS: [(&str, &[(&str, &str)]); 10] = [
    (
        "header_list",
        &[("serve.rs", "fields_beyond_the_limit_are_refused")],
    ),
    (
        "header_time",
        &[
            (
                "limits/requests.rs",
                "a_connection_on_which_no_request_comes_ends",
            ),
            (
                "hostile.rs",
                "connections_over_tcp_without_a_request_are_closed",
            ),
            (
                "hostile.rs",
                "streams_whose_beginning_does_not_come_are_reset",
            ),
        ],
    ),
    (
        "stall_time",
        &[
            (
                "limits/stalls.rs",
                "over_http1_a_response_that_is_not_taken_ends_its_connection",
            ),
            (
                "limits/stalls.rs",
                "over_http2_a_response_that_is_not_taken_ends_alone",
            ),
            (
                "limits/stalls.rs",
                "over_http3_a_response_that_is_not_taken_ends_alone",
            ),
            (
                "limits/stalls.rs",
                "a_client_that_asks_and_falls_silent_leaves_nothing",
            ),
        ],
    ),
    (
        "requests",
        &[(
            "limits/requests.rs",
            "a_connection_has_as_many_requests_as_the_limit_says",
        )],
    ),
    (
        "cancelled",
        &[
            (
                "limits/cancels.rs",
                "a_client_that_gives_up_many_requests_keeps_its_download",
            ),
            (
                "limits/cancels.rs",
                "a_flood_of_cancelled_requests_ends_the_connection_after_its_download",
            ),
        ],
    ),
    (
        "idle_time",
        &[("limits/requests.rs", "a_connection_without_requests_ends")],
    ),
    (
        "drain_time",
        &[(
            "limits/drains.rs",
            "a_connection_that_was_told_to_end_ends_in_its_time",
        )],
    ),
    (
        "tcp_connections",
        &[(
            "tcp_limits.rs",
            "connections_over_quic_take_no_place_of_those_over_tcp",
        )],
    ),
    (
        "memory",
        &[("limits/memory.rs", "beyond_the_budget_nothing_is_begun")],
    ),
    (
        "early_methods",
        &[("serve.rs", "unsafe_methods_in_0_rtt_packets_get_425")],
    ),
];

#[test]
fn every_limit_has_its_tests() {
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| `Limits::`"));
    let rows = rows.skip(2).take_while(|line| line.starts_with("| `"));
    let names: Vec<_> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let tests: BTreeMap<_, _> = TESTS.into_iter().collect();
    assert_eq!(names.len(), tests.len(), "{names:?}");
    for name in names {
        for (file, test) in tests.get(name).into_iter().copied().flatten() {
            let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
            let source = std::fs::read_to_string(&path).unwrap();
            assert!(
                source.contains(&format!("fn {test}(")),
                "{name}: {file} has no {test}"
            );
        }
    }
}
