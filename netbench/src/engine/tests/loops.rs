//! Closed and open loops, timeouts, failures and phases, on virtual time.

use std::rc::Rc;
use std::time::Duration;

use super::fake::{Fake, Handshake, Network};
use super::{is_about, on_virtual_time, play, play_over, scenario, setup};
use crate::scenario::axes::{Cell as Axis, Resumption};
use crate::system::outcome::Kind;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn takes(handshake: impl Fn(u64) -> Handshake + 'static) -> impl FnOnce(&mut Network) {
    |network| network.handshake = Box::new(handshake)
}

fn began(network: &Network) -> Vec<u64> {
    let log = network.state.log.borrow();
    log.iter()
        .map(|(at, _)| at.as_millis().try_into().unwrap())
        .collect()
}

#[test]
fn a_closed_loop_is_always_full_and_never_more() {
    // Connections take 1 to 7 ms.
    let handshake = takes(|number| Handshake::Takes(MS(1 + number % 7)));
    let ops = r#"[{"connect": {"connections": 700, "concurrency": 5, "ops": []}}]"#;
    let (played, network) = play_over(handshake, "{}", ops);
    assert_eq!(played.outcomes(), [("ok", 700)]);
    assert_eq!(network.state.most_open.get(), 5);
    // 100 times 1 + 2 + … + 7 ms, five at a time, plus at most one lane's longest.
    let elapsed = played.client.elapsed_us / 1e3;
    assert!((560.0..=567.0).contains(&elapsed), "{elapsed}");
}

#[test]
fn an_injected_delay_shows_in_exactly_its_percentile() {
    // Every hundredth takes 500 ms.
    let handshake = takes(|number| match number % 100 {
        99 => Handshake::Takes(MS(500)),
        _ => Handshake::Takes(MS(10)),
    });
    let ops = r#"[{"connect": {"connections": 1000, "concurrency": 4, "ops": []}}]"#;
    let (played, _) = play_over(handshake, "{}", ops);
    let handshake = &played.kind().handshake;
    for (quantile, millis) in [
        (0.01, 10.0),
        (0.5, 10.0),
        (0.99, 10.0),
        (0.991, 500.0),
        (1.0, 500.0),
    ] {
        let measured = handshake.us_at(quantile);
        assert!(is_about(measured, millis * 1e3), "{quantile}: {measured}");
    }
}

#[test]
fn an_injected_failure_rate_shows_in_the_outcomes() {
    let handshake = takes(|number| match number % 20 {
        3 => Handshake::Fails(Kind::Refused),
        4 | 5 => Handshake::Fails(Kind::Alert("handshake_failure".to_owned())),
        6 => Handshake::Never,
        _ => Handshake::Takes(MS(1)),
    });
    let ops =
        r#"[{"connect": {"connections": 1000, "concurrency": 3, "timeout": "2s", "ops": []}}]"#;
    let (played, _) = play_over(handshake, "{}", ops);
    assert_eq!(
        played.outcomes(),
        [
            ("alert handshake_failure", 100),
            ("ok", 800),
            ("refused", 50),
            ("timeout", 50)
        ]
    );
    let details = &played.kind().details;
    assert_eq!(details["refused"], "as the test says");
    assert_eq!(
        details["timeout"],
        "the handshake was not complete after 2s"
    );
    assert_eq!(
        (played.client.client.completed, played.client.client.failed),
        (800, 200)
    );
    assert_eq!(played.client.error, None);
    assert_eq!(played.kind().handshake.count(), 800);
}

#[test]
fn a_server_that_never_answers_costs_ten_timeouts() {
    let ops = r#"[{"connect": {"connections": 100000, "timeout": "3s", "ops": []}}]"#;
    let (played, _) = play_over(takes(|_| Handshake::Never), "{}", ops);
    assert_eq!(played.outcomes(), [("timeout", 10)]);
    let error = played.client.error.unwrap();
    assert!(error.contains("given up after 10 failures"), "{error}");
}

#[test]
fn a_server_that_stops_answering_costs_a_hundred_timeouts() {
    let handshake = takes(|number| match number {
        0..50 => Handshake::Takes(MS(1)),
        _ => Handshake::Never,
    });
    let ops =
        r#"[{"connect": {"connections": 100000, "concurrency": 10, "timeout": "3s", "ops": []}}]"#;
    let (played, _) = play_over(handshake, "{}", ops);
    assert_eq!(played.kind().outcomes["ok"], 50);
    // Connections in progress when the operation is given up are counted too.
    assert!((100..110).contains(&played.kind().outcomes["timeout"]));
    assert!(played.client.error.is_some());
}

#[test]
fn the_first_failure_ends_the_run_where_it_should() {
    let handshake = takes(|number| match number {
        30 => Handshake::Fails(Kind::Refused),
        _ => Handshake::Takes(MS(1)),
    });
    let ops = r#"[{"connect": {"connections": 100, "on_error": "stop", "ops": []}},
                  {"connect": {"connections": 100, "ops": []}}]"#;
    let (played, network) = play_over(handshake, "{}", ops);
    assert_eq!(played.outcomes(), [("ok", 30), ("refused", 1)]);
    assert_eq!(network.state.connections.get(), 31);
    let error = played.client.error.unwrap();
    assert!(
        error.contains("stopped at the first failure: refused"),
        "{error}"
    );
}

#[test]
fn connections_of_an_open_loop_begin_when_they_should() {
    // Each takes ten times the interval between two.
    let ops = r#"[{"connect": {"connections": 50, "rate": 100, "concurrency": 100, "ops": []}}]"#;
    let (played, network) = play_over(takes(|_| Handshake::Takes(MS(100))), "{}", ops);
    assert_eq!(began(&network), (0..50).map(|n| n * 10).collect::<Vec<_>>());
    assert!(is_about(played.kind().connection.us_at(1.0), 100e3));
}

#[test]
fn what_a_cap_holds_back_counts_from_its_intended_start() {
    // Two at a time of 100 ms each serve 20 a second; 40 arrive. The last of 40 waits for 1 s.
    let ops = r#"[{"connect": {"connections": 40, "rate": 40, "concurrency": 2, "ops": []}}]"#;
    let (played, network) = play_over(takes(|_| Handshake::Takes(MS(100))), "{}", ops);
    assert_eq!(network.state.most_open.get(), 2);
    let connection = &played.kind().connection;
    assert!(
        is_about(connection.us_at(0.01), 100e3),
        "{}",
        connection.us_at(0.01)
    );
    // The last was due at 975 ms, and began at 1,900 ms. The runtime's timers round up to a
    // millisecond, twenty times in a row.
    assert!(
        (1025e3..1060e3).contains(&connection.max_us()),
        "{}",
        connection.max_us()
    );
}

#[test]
fn what_should_have_begun_before_the_end_is_unfinished() {
    let ops = r#"[{"connect": {"connections": "unlimited", "rate": 10, "concurrency": 1,
        "timeout": "1m", "ops": []}}]"#;
    let (played, _) = play_over(takes(|_| Handshake::Never), r#"{"measure": "2s"}"#, ops);
    assert_eq!(played.outcomes(), [("unfinished", 20)]);
}

#[test]
fn nothing_begins_after_the_measurement_and_what_does_not_drain_is_unfinished() {
    let handshake = takes(|number| match number % 10 {
        7 => Handshake::Takes(MS(5000)),
        _ => Handshake::Takes(MS(10)),
    });
    let phases = r#"{"measure": "1s", "drain": "500ms"}"#;
    let ops = r#"[{"connect": {"connections": "unlimited", "concurrency": 20, "timeout": "1m",
        "ops": []}}]"#;
    let (played, network) = play_over(handshake, phases, ops);
    assert!(began(&network).iter().all(|&at| at < 1000));
    assert_eq!(played.kind().outcomes["unfinished"], 20);
    assert_eq!(played.kind().outcomes.len(), 2);
    let total: u64 = played.kind().outcomes.values().sum();
    assert_eq!(total, network.state.connections.get());
    assert!(
        is_about(played.client.elapsed_us, 1e6),
        "{}",
        played.client.elapsed_us
    );
}

#[test]
fn a_warm_up_is_never_counted() {
    // The first 30 are slow and fail sometimes.
    let handshake = takes(|number| match number {
        5 | 10 => Handshake::Fails(Kind::Refused),
        0..30 => Handshake::Takes(MS(900)),
        _ => Handshake::Takes(MS(2)),
    });
    let phases = r#"{"warm_up": {"connections": 15}}"#;
    let connect = r#"{"connect": {"connections": 100, "concurrency": 5, "ops": []}}"#;
    let (played, network) = play_over(handshake, phases, &format!("[{connect}, {connect}]"));
    assert_eq!(played.warm_up, 30);
    assert_eq!(played.outcomes(), [("ok", 200)]);
    assert!(is_about(played.kind().handshake.max_us(), 2000.0));
    assert_eq!(network.state.connections.get(), 230);
    assert_eq!(played.server.process.completed, 200);
}

#[test]
fn a_warm_up_by_time_ends_on_time() {
    let phases = r#"{"warm_up": {"time": "1s"}, "measure": "2s"}"#;
    let ops = r#"[{"connect": {"connections": "unlimited", "ops": []}}]"#;
    let (played, _) = play_over(takes(|_| Handshake::Takes(MS(10))), phases, ops);
    assert_eq!(played.warm_up, 100);
    assert_eq!(played.outcomes(), [("ok", 200)]);
}

#[test]
fn samples_add_up_to_totals_and_progress_is_told() {
    let ops = r#"[{"connect": {"connections": 1000, "concurrency": 7, "ops": [{"request": {"ops": [
        {"open_bidi": {"peer": ["receive_all", {"send": 30}, "finish"]}},
        {"send": 20}, "finish", "receive_all"]}}]}}]"#;
    let handshake = takes(|number| match number % 50 {
        9 => Handshake::Fails(Kind::Refused),
        _ => Handshake::Takes(MS(10)),
    });
    let (played, _) = play_over(handshake, "{}", ops);
    let samples = &played.client.samples;
    let sum = |of: fn(&crate::report::results::Sample) -> u64| samples.iter().map(of).sum::<u64>();
    assert_eq!(sum(|sample| sample.connections), 1000);
    assert_eq!(sum(|sample| sample.failures), 20);
    assert_eq!(sum(|sample| sample.requests), 980);
    assert_eq!(sum(|sample| sample.bytes_sent), 980 * 20);
    assert_eq!(sum(|sample| sample.bytes_received), 980 * 30);
    let lasted: f64 = samples.iter().map(|sample| sample.lasted_ms).sum();
    assert!(
        (lasted * 1e3 - played.client.elapsed_us).abs() < 10.0,
        "{lasted}"
    );
    assert!(samples.len() > 10);
    let last = played.progress.last().unwrap();
    assert_eq!(last.of, Some(1000));
    assert!(last.share.unwrap() > 0.9);
    assert!(is_about(last.handshake_p50_us, 10e3));
}

#[test]
fn client_threads_wait_for_each_other_at_checkpoints() {
    let ops = r#"[{"scope": [
        [{"park": 7}, {"connect": {"ops": []}}],
        [{"sleep": 300}, {"unpark": 7}, {"sleep": 100}, {"connect": {"ops": []}}]
    ]}, {"iterate": {"times": 3, "rate": 10, "ops": [{"connect": {"ops": []}}]}}]"#;
    let (_, network) = play_over(takes(|_| Handshake::Takes(MS(1))), "{}", ops);
    assert_eq!(began(&network), [300, 400, 401, 501, 601]);
}

#[test]
fn each_measured_connection_has_a_ticket_of_its_own() {
    on_virtual_time(async {
        let network = Rc::new(Network::new());
        let driver = Fake(Rc::clone(&network));
        let cell = Axis {
            resumption: Resumption::Psk,
            ..Axis::default()
        };
        let ops = r#"[{"connect": {"connections": 500, "concurrency": 50, "ops": []}}]"#;
        let played = play(&driver, setup(cell), scenario("{}", ops)).await;
        assert_eq!(played.outcomes(), [("ok", 500)]);
        assert_eq!(network.state.connections.get(), 550);
    });
}

#[test]
fn a_session_that_is_not_resumed_is_a_mismatch() {
    on_virtual_time(async {
        let mut network = Network::new();
        network.tickets_each = 0;
        let driver = Fake(Rc::new(network));
        let cell = Axis {
            resumption: Resumption::Psk,
            ..Axis::default()
        };
        let ops = r#"[{"connect": {"connections": 500, "ops": []}}]"#;
        let played = play(&driver, setup(cell), scenario("{}", ops)).await;
        assert_eq!(played.outcomes(), [("mismatch", 10)]);
        assert_eq!(
            played.kind().details["mismatch"],
            "the session was not resumed"
        );
    });
}

/// Starts 100 connections a second for 100 s; from 20 s to 30 s nothing arrives. Connections due in
/// these 10 s wait for 5 s on average, and must be counted.
#[test]
fn a_stalled_server_shows_in_the_latency_of_all_that_should_have_begun() {
    on_virtual_time(async {
        let mut network = Network::new();
        network.stall = Some((Duration::from_secs(20), Duration::from_secs(30)));
        let driver = Fake(Rc::new(network));
        let ops = r#"[{"connect": {"connections": 10000, "rate": 100, "concurrency": 10,
            "timeout": "60s", "ops": []}}]"#;
        let played = play(&driver, setup(Axis::default()), scenario("{}", ops)).await;
        assert_eq!(played.outcomes(), [("ok", 10_000)]);
        let handshake = &played.kind().handshake;
        // 1,000 of 10,000 waited, evenly from 10 s down to 0; then the backlog is worked off at 10
        // connections a millisecond.
        assert!(
            is_about(handshake.us_at(0.5), 1000.0),
            "{}",
            handshake.us_at(0.5)
        );
        assert!(
            is_about(handshake.us_at(0.899), 1000.0),
            "{}",
            handshake.us_at(0.899)
        );
        for (quantile, seconds) in [(0.95, 5.0), (0.99, 9.0), (0.999, 9.9)] {
            let measured = handshake.us_at(quantile) / 1e6;
            assert!((measured - seconds).abs() < 0.15, "{quantile}: {measured}");
        }
    });
}
