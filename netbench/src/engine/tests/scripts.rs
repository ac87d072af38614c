//! Tests of a connection's scripts on virtual time.

use std::time::Duration;

use super::fake::Network;
use super::{Played, is_about, play_over};

/// Plays one connection with that script, over a path with a one-way delay in milliseconds.
fn connection(delay: u64, ops: &str) -> Played {
    connection_over(|network| network.delay = Duration::from_millis(delay), ops)
}

fn connection_over(change: impl FnOnce(&mut Network), ops: &str) -> Played {
    let ops = format!(r#"[{{"connect": {{"timeout": "100s", "ops": {ops}}}}}]"#);
    play_over(change, r#"{"measure": "200s"}"#, &ops).0
}

fn request_us(played: &Played, label: &str, quantile: f64) -> f64 {
    played.kind().requests[label].us_at(quantile)
}

#[test]
fn requests_are_timed_by_label() {
    let played = connection(
        10,
        r#"[{"request": {"label": "short", "ops": [
            {"open_bidi": {"peer": ["receive_all", {"send": 1}]}}, {"send": 1}, "finish", "receive_all"]}},
          {"request": {"label": "long", "ops": [
            {"open_bidi": {"peer": ["receive_all", {"sleep": 500}, {"send": 1}]}},
            {"send": 1}, "finish", "receive_all"]}}]"#,
    );
    assert_eq!(played.outcomes(), [("ok", 1)]);
    assert!(is_about(request_us(&played, "short", 1.0), 20e3));
    assert!(is_about(request_us(&played, "long", 1.0), 520e3));
    assert!(is_about(played.kind().first_byte.us_at(1.0), 21e3));
    assert!(is_about(played.kind().connection.us_at(1.0), 541e3));
}

#[test]
fn a_stall_shows_in_all_requests_that_should_have_begun() {
    // One datagram a millisecond for 10 s; from 4 s to 5 s nothing arrives.
    let played = connection_over(
        |network| network.stall = Some((Duration::from_secs(4), Duration::from_secs(5))),
        r#"[{"open_bidi": {"peer": [{"iterate": {"times": 10000, "ops": [{"receive": 1}, {"send": 1}]}}]}},
          {"iterate": {"times": 10000, "rate": 1000, "ops": [
            {"request": {"ops": [{"send": 1}, {"receive": 1}]}}]}}, "finish", "receive_all"]"#,
    );
    assert_eq!(played.outcomes(), [("ok", 1)]);
    let count = played.kind().requests[""].count();
    assert_eq!(count, 10_000);
    assert!(request_us(&played, "", 0.89) < 2e3);
    for (quantile, millis) in [(0.95, 500.0), (0.99, 900.0), (1.0, 1000.0)] {
        let measured = request_us(&played, "", quantile) / 1e3;
        assert!((measured - millis).abs() < 15.0, "{quantile}: {measured}");
    }
}

#[test]
fn loops_end_after_their_time_or_their_turns() {
    let played = connection(
        0,
        r#"[{"iterate": {"time": "1s", "ops": [{"request": {"label": "time", "ops": [{"sleep": 100}]}}]}},
          {"iterate": {"times": 7, "ops": [{"request": {"label": "times", "ops": [{"sleep": 1}]}}]}},
          {"iterate": {"times": 10, "concurrency": 5, "ops": [
            {"request": {"label": "at once", "ops": [{"sleep": 100}]}}]}},
          {"iterate": {"rate": 10, "time": "2s", "ops": [{"request": {"label": "rate", "ops": [{"sleep": 5}]}}]}}]"#,
    );
    let requests = &played.kind().requests;
    assert_eq!(requests["time"].count(), 10);
    assert_eq!(requests["times"].count(), 7);
    assert_eq!(requests["at once"].count(), 10);
    assert_eq!(requests["rate"].count(), 20);
    // A handshake of 1 ms; 1 s; 7 ms; twice 100 ms; the twentieth turn begins at 1,900 ms.
    let connection = played.kind().connection.us_at(1.0);
    assert!(
        is_about(connection, 1e3 + 1e6 + 7e3 + 2e5 + 1_905e3),
        "{connection}"
    );
}

#[test]
fn what_is_paced_takes_as_long_as_it_should() {
    let played = connection(
        0,
        r#"[{"open_bidi": {"peer": [
              {"send_rate": {"bytes": 1000, "period": "10ms"}}, {"send": 50000}, "finish", "receive_all"]}},
          {"request": {"label": "sent", "ops": ["receive_all"]}},
          {"open_bidi": {"stream": 1, "peer": [{"send": 10000}, "finish", "receive_all"]}},
          {"receive_rate": {"stream": 1, "bytes": 500, "period": "100ms"}},
          {"request": {"label": "received", "ops": [{"receive_all": {"stream": 1}}]}}]"#,
    );
    assert_eq!(
        played.outcomes(),
        [("ok", 1)],
        "{:?}",
        played.kind().details
    );
    // 50 periods, of which the first begins at once.
    assert!(
        is_about(request_us(&played, "sent", 1.0), 490e3),
        "{}",
        request_us(&played, "sent", 1.0)
    );
    // 20 periods; the end is read in the period after the last byte.
    let received = request_us(&played, "received", 1.0);
    assert!(
        (1.9e6 - 2e3..=2.0e6 + 2e3).contains(&received),
        "{received}"
    );
}

#[test]
fn threads_of_a_connection_run_at_the_same_time_and_wait_at_checkpoints() {
    let played = connection(
        0,
        r#"[{"request": {"ops": [{"scope": [
            [{"sleep": 100}, {"unpark": 1}, {"sleep": 200}],
            [{"park": 1}, {"sleep": 50}, {"request": {"label": "parked", "ops": [{"park": 1}]}}],
            [{"sleep": 250}]
        ]}]}}]"#,
    );
    assert!(is_about(request_us(&played, "", 1.0), 300e3));
    assert!(request_us(&played, "parked", 1.0) < 100.0);
}

#[test]
fn threads_have_streams_of_their_own_and_those_from_before() {
    let open = r#"{"open_bidi": {"peer": ["receive_all", {"send": 10}]}}, {"send": 5}, "finish", "receive_all""#;
    let played = connection(
        0,
        &format!(
            r#"[{{"open_bidi": {{"stream": 7, "peer": ["receive_all", {{"send": 3}}]}}}},
              {{"scope": [[{open}], [{open}], [{{"send": {{"stream": 7, "bytes": 1}}}}, {{"finish": {{"stream": 7}}}}]]}},
              {{"receive_all": {{"stream": 7}}}}]"#
        ),
    );
    assert_eq!(
        played.outcomes(),
        [("ok", 1)],
        "{:?}",
        played.kind().details
    );
    assert_eq!(played.kind().stream_bytes_received, 23);
}

#[test]
fn a_stream_that_the_server_gives_up_is_a_reset() {
    let played = connection(
        0,
        r#"[{"open_bidi": {"peer": [{"send": 10}, {"reset": {"code": 5}}]}}, {"send": 1}, "finish", "receive_all"]"#,
    );
    assert_eq!(played.outcomes(), [("reset", 1)]);
}

#[test]
fn a_stream_that_the_client_gives_up_is_no_fault_of_the_server() {
    let played = connection(
        0,
        r#"[{"open_uni": {"peer": ["receive_all"]}}, {"send": 10}, {"reset": {"code": 5}}, {"sleep": 10}]"#,
    );
    assert_eq!(played.outcomes(), [("ok", 1)]);
    assert_eq!(played.server.first_error, None);
}

#[test]
fn a_stream_that_ends_too_early_is_a_mismatch_for_either_side() {
    let played = connection(
        0,
        r#"[{"open_bidi": {"peer": ["receive_all", {"send": 10}]}}, "finish", {"receive": 11}]"#,
    );
    assert_eq!(played.outcomes(), [("mismatch", 1)]);
    let detail = &played.kind().details["mismatch"];
    assert_eq!(detail, "the stream ended 1 bytes before it should");

    let played = connection(
        0,
        r#"[{"open_bidi": {"peer": [{"receive": 11}, {"send": 1}]}}, {"send": 10}, "finish", {"sleep": 5}]"#,
    );
    let error = played.server.first_error.unwrap();
    assert!(error.contains("1 bytes before"), "{error}");
    assert_eq!(played.server.process.failed, 1);
}

#[test]
fn a_script_that_is_not_done_in_time_is_a_timeout() {
    let (played, _) = play_over(
        |_| {},
        "{}",
        r#"[{"connect": {"timeout": "1s", "ops": [{"open_bidi": {"peer": [{"receive": 1}]}}, {"receive": 1}]}}]"#,
    );
    assert_eq!(played.outcomes(), [("timeout", 1)]);
    assert_eq!(
        played.kind().details["timeout"],
        "the script was not done after 1s"
    );
}

#[test]
fn nothing_extra_is_on_the_wire_unless_scripts_differ() {
    let wire = |ops: &str| {
        let ops = format!(r#"[{{"connect": {{"ops": {ops}}}}}]"#);
        let (played, network) = play_over(|_| {}, "{}", &ops);
        assert_eq!(
            played.outcomes(),
            [("ok", 1)],
            "{:?}",
            played.kind().details
        );
        network.state.written.borrow().len()
    };
    let one = r#"{"open_uni": {"peer": ["receive_all"]}}, {"send": 10}, "finish""#;
    let other = r#"{"open_uni": {"peer": [{"receive": 10}]}}, {"send": 10}, "finish""#;
    assert_eq!(wire(&format!("[{one}, {one}]")), 20);
    assert_eq!(wire(&format!("[{one}, {other}]")), 22);
}

#[test]
fn several_kinds_of_connections_are_told_apart_by_their_server_names() {
    let connect = |bytes: u32| {
        format!(
            r#"{{"connect": {{"label": "{bytes}", "ops": [
                {{"open_bidi": {{"peer": ["receive_all", {{"send": {bytes}}}]}}}}, "finish", {{"receive": {bytes}}}]}}}}"#
        )
    };
    let ops = format!("[{}, {}, {}]", connect(10), connect(20), connect(10));
    let (played, network) = play_over(|_| {}, "{}", &ops);
    assert_eq!(played.client.kinds["10"].outcomes["ok"], 2);
    assert_eq!(played.client.kinds["20"].stream_bytes_received, 20);
    let log = network.state.log.borrow();
    let names: Vec<_> = log.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(
        names,
        ["c0", "c1", "c0"].map(|label| format!("{label}.netbench.localhost"))
    );
}

#[test]
fn lost_datagrams_are_counted_and_the_others_timed() {
    for bytes in [1000, 2] {
        let played = connection_over(
            |network| {
                network.delay = Duration::from_millis(10);
                network.loses = Some(10);
            },
            &format!(
                r#"[{{"datagrams": {{"count": 900, "bytes": {bytes}, "rate": 1000, "echo": true}}}}]"#
            ),
        );
        assert_eq!(
            played.outcomes(),
            [("ok", 1)],
            "{:?}",
            played.kind().details
        );
        let kind = played.kind();
        assert_eq!(kind.datagrams.count() + kind.datagrams_lost, 900);
        // Every tenth datagram in each direction.
        assert!(
            (160..=180).contains(&kind.datagrams_lost),
            "{}",
            kind.datagrams_lost
        );
        assert!(is_about(kind.datagrams.us_at(0.5), 20e3));
    }
}

#[test]
fn the_server_has_a_script_of_its_own() {
    let ops = r#"[{"connect": {"ops": [], "server_ops": [
        {"sleep": 100},
        {"iterate": {"times": 3, "ops": [{"open_uni": {"peer": ["receive_all"]}}, {"send": 7}, "finish"]}}
    ]}}]"#;
    let (played, _) = play_over(|_| {}, "{}", ops);
    assert_eq!(
        played.outcomes(),
        [("ok", 1)],
        "{:?}",
        played.kind().details
    );
    assert_eq!(played.kind().stream_bytes_received, 21);
    assert!(played.kind().connection.us_at(1.0) > 100e3);
}
