//! Tests of connection pools on virtual time.

use std::time::Duration;

use super::fake::{Handshake, Network};
use super::{is_about, play_over};

fn slow_handshakes(network: &mut Network) {
    network.handshake = Box::new(|_| Handshake::Takes(Duration::from_millis(100)));
}

/// Returns a request that takes the server this many milliseconds.
fn request(work: u64) -> String {
    format!(
        r#"[{{"open_bidi": {{"peer": ["receive_all", {{"sleep": {work}}}, {{"send": 1}}]}}}},
            {{"send": 1}}, "finish", "receive_all"]"#
    )
}

#[test]
fn connections_are_reused_and_no_more_are_made_than_are_needed() {
    let ops = format!(
        r#"[{{"pool": {{"connections": 10, "rate": 100, "requests": 500, "ops": {}}}}}]"#,
        request(4)
    );
    let (played, network) = play_over(|_| {}, "{}", &ops);
    // A request takes 4 ms, a handshake 1 ms, and one begins every 10 ms.
    assert_eq!(network.state.connections.get(), 1);
    assert_eq!(played.outcomes(), [("ok", 1)]);
    let requests = &played.kind().requests[""];
    assert_eq!(requests.count(), 500);
    assert!(is_about(requests.us_at(0.5), 4e3));
    assert!(is_about(requests.us_at(1.0), 5e3));
}

#[test]
fn a_pool_that_is_too_small_shows_in_the_latency() {
    // Two connections serve 20 requests a second; 40 arrive.
    let ops = format!(
        r#"[{{"pool": {{"connections": 2, "rate": 40, "requests": 80, "ops": {}}}}}]"#,
        request(100)
    );
    let (played, network) = play_over(|_| {}, "{}", &ops);
    assert_eq!(network.state.connections.get(), 2);
    let requests = &played.kind().requests[""];
    assert_eq!(requests.count(), 80);
    // The last is due after 1,975 ms, and ends after 40 rounds of two. The runtime's timers round
    // up to a millisecond, forty times in a row.
    assert!(
        (2025e3..2075e3).contains(&requests.max_us()),
        "{}",
        requests.max_us()
    );
}

#[test]
fn bursts_make_connections_anew_once_these_were_unused_for_too_long() {
    for (keep, connections) in [("500ms", 40), ("10s", 10)] {
        let ops = format!(
            r#"[{{"pool": {{"connections": 10, "burst": 10, "every": "1s", "keep": "{keep}",
                "requests": 40, "ops": {}}}}}]"#,
            request(5)
        );
        let (played, network) = play_over(slow_handshakes, "{}", &ops);
        assert_eq!(network.state.connections.get(), connections, "{keep}");
        assert_eq!(played.kind().outcomes["ok"], connections);
        let requests = &played.kind().requests[""];
        assert_eq!(requests.count(), 40);
        // The time includes the handshake if there is one.
        let median = if keep == "10s" { 5e3 } else { 105e3 };
        assert!(
            is_about(requests.us_at(0.5), median),
            "{}",
            requests.us_at(0.5)
        );
    }
}

#[test]
fn a_closed_loop_has_a_request_under_way_on_every_connection() {
    let ops = format!(
        r#"[{{"pool": {{"connections": 5, "ops": {}}}}}]"#,
        request(10)
    );
    let (played, network) = play_over(|_| {}, r#"{"measure": "1001ms"}"#, &ops);
    assert_eq!(network.state.connections.get(), 5);
    let count = played.kind().requests[""].count();
    assert_eq!(count, 500);
}

#[test]
fn a_request_that_fails_costs_its_connection() {
    let ops = format!(
        r#"[{{"pool": {{"connections": 1, "requests": 30, "timeout": "1s", "ops": {}}}}}]"#,
        request(2)
    );
    let stall = |network: &mut Network| {
        network.stall = Some((Duration::from_millis(10), Duration::from_millis(1100)));
    };
    let (played, network) = play_over(stall, "{}", &ops);
    assert_eq!(played.kind().outcomes["timeout"], 1);
    assert_eq!(played.kind().requests[""].count(), 29);
    assert_eq!(network.state.connections.get(), 2);
}
