//! Tests with this project's stack over real sockets.

use super::{Played, on_this_thread, play, scenario, setup};
use crate::drivers;
use crate::drivers::Setup;
use crate::handshake::certificates;
use crate::scenario::axes::{Cell, Resumption};

fn real(cell: Cell) -> Setup {
    Setup {
        certificates: certificates::make(certificates::Wanted::of(&cell)).unwrap(),
        ..setup(cell)
    }
}

fn play_real(cell: Cell, phases: &str, ops: &str) -> Played {
    let driver = drivers::driver(cell.driver).unwrap();
    on_this_thread(play(&*driver, real(cell), scenario(phases, ops)))
}

const REQUEST: &str = r#"{"request": {"ops": [
    {"open_bidi": {"peer": ["receive_all", {"send": 3000}, "finish"]}},
    {"send": 1000}, "finish", "receive_all"]}}"#;

#[test]
fn requests_are_counted_timed_and_cost_something() {
    let ops = format!(
        r#"[{{"connect": {{"connections": 20, "concurrency": 4, "ops": [{REQUEST}, {REQUEST}]}}}}]"#
    );
    let played = play_real(Cell::default(), r#"{"warm_up": {"connections": 3}}"#, &ops);
    assert_eq!(
        played.outcomes(),
        [("ok", 20)],
        "{:?}",
        played.kind().details
    );
    assert_eq!(played.warm_up, 3);
    let kind = played.kind();
    assert_eq!(kind.handshake.count(), 20);
    assert_eq!(kind.first_byte.count(), 20);
    assert_eq!(kind.requests[""].count(), 40);
    assert_eq!(kind.stream_bytes_sent, 40 * 1000);
    assert_eq!(kind.stream_bytes_received, 40 * 3000);
    assert_eq!(played.client.negotiated.group, "X25519MLKEM768");
    assert_eq!(played.server.process.completed, 20);
    assert_eq!(
        played.server.process.failed, 0,
        "{:?}",
        played.server.first_error
    );
    assert!(played.client.client.user_us > 0.0);
    assert!(played.client.client.rss_at_end_kib > 0);
    assert!(played.client.client.peak_rss_kib >= played.client.client.rss_at_end_kib);
    // An ML-KEM-768 share or ciphertext, and the data around it.
    assert!(played.client.handshake_traffic.sent_bytes > 20 * 1200);
    assert!(played.client.data_traffic.received_bytes > 20 * 2 * 3000);
}

#[test]
fn sessions_are_resumed_also_when_many_are_under_way() {
    for resumption in [Resumption::Psk, Resumption::ZeroRtt] {
        let cell = Cell {
            resumption,
            ..Cell::default()
        };
        let ops = format!(
            r#"[{{"connect": {{"connections": 60, "concurrency": 12, "ops": [{REQUEST}]}}}}]"#
        );
        let played = play_real(cell, "{}", &ops);
        // On a busy machine a few are unfinished, and are counted separately.
        let outcomes = &played.kind().outcomes;
        let not_resumed = outcomes.get("mismatch").copied().unwrap_or(0);
        let details = &played.kind().details;
        assert_eq!(
            outcomes["ok"] + not_resumed,
            60,
            "{resumption:?}: {details:?}"
        );
        assert!(not_resumed <= 6, "{resumption:?}: {details:?}");
        let early = resumption == Resumption::ZeroRtt;
        if not_resumed == 0 {
            let negotiated = &played.client.negotiated;
            assert_eq!(negotiated.resumed, Some(true));
            assert_eq!(negotiated.early_data, Some(early));
        }
    }
}

#[test]
fn an_upload_without_an_answer_arrives_before_the_connection_is_closed() {
    let ops = r#"[{"connect": {"ops": [
        {"open_uni": {"peer": [{"receive": 3000000}]}}, {"send": 3000000}, "finish"]}}]"#;
    let played = play_real(Cell::default(), "{}", ops);
    assert_eq!(
        played.outcomes(),
        [("ok", 1)],
        "{:?}",
        played.kind().details
    );
    assert_eq!(played.server.first_error, None);
    assert_eq!(played.server.process.completed, 1);
}

#[test]
fn streams_of_the_server_and_datagrams_reach_the_client() {
    let ops = r#"[{"connect": {
        "ops": [{"datagrams": {"count": 50, "bytes": 100, "rate": 10000, "echo": true}}],
        "server_ops": [
            {"open_uni": {"peer": ["receive_all"]}}, {"send": 5000}, "finish",
            {"open_uni": {"peer": [{"receive": 10}, "receive_all"]}}, {"send": 6000}, "finish",
            {"open_bidi": {"peer": ["receive_all", {"send": 20}]}}, {"send": 7}, "finish",
            {"receive": 20}
        ]}}]"#;
    let played = play_real(Cell::default(), "{}", ops);
    assert_eq!(
        played.outcomes(),
        [("ok", 1)],
        "{:?}",
        played.kind().details
    );
    assert_eq!(played.kind().stream_bytes_received, 11_007);
    assert_eq!(played.kind().datagrams.count(), 50);
    assert_eq!(played.kind().datagrams_lost, 0);
    assert_eq!(played.server.first_error, None);
}

#[test]
fn several_kinds_of_connections_are_told_apart() {
    let connect = |bytes: u32| {
        format!(
            r#"{{"connect": {{"label": "{bytes}", "connections": 3, "ops": [
                {{"open_bidi": {{"peer": ["receive_all", {{"send": {bytes}}}]}}}}, "finish", {{"receive": {bytes}}}]}}}}"#
        )
    };
    let ops = format!(r#"[{{"scope": [[{}], [{}]]}}]"#, connect(10), connect(20));
    let played = play_real(Cell::default(), "{}", &ops);
    for (label, bytes) in [("10", 30), ("20", 60)] {
        let kind = &played.client.kinds[label];
        assert_eq!(kind.outcomes.get("ok"), Some(&3), "{:?}", kind.details);
        assert_eq!(kind.stream_bytes_received, bytes);
    }
}

#[test]
fn a_server_with_several_workers_answers_on_their_threads() {
    let cell = Cell {
        workers: 3,
        ..Cell::default()
    };
    let ops = format!(
        r#"[{{"connect": {{"connections": 12, "concurrency": 6, "ops": [{REQUEST}, {REQUEST}]}}}}]"#
    );
    let played = play_real(cell, r#"{"warm_up": {"connections": 2}}"#, &ops);
    let details = &played.kind().details;
    assert_eq!(played.outcomes(), [("ok", 12)], "{details:?}");
    assert_eq!(played.server.process.completed, 12);
    assert_eq!(played.server.first_error, None);
}

#[test]
fn connections_are_held_beside_those_that_are_measured() {
    let ops = format!(
        r#"[{{"hold": {{"connections": 20, "settle": 0}}}},
            {{"connect": {{"connections": 2, "ops": [{REQUEST}]}}}}]"#
    );
    let played = play_real(Cell::default(), "{}", &ops);
    let details = &played.kind().details;
    assert_eq!(played.outcomes(), [("ok", 2)], "{details:?}");
    // They were there before the measurement, and still are at its end.
    assert_eq!(played.server.process.completed, 2);
    assert!(played.client.handshake_traffic.sent_bytes < 3 * 4000);
    assert!(played.server.process.traffic.unwrap().received_bytes < 3 * 10_000);
}
