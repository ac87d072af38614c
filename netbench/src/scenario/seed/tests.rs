//! Tests of the conversion of s2n-netbench's scenarios.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scenario::{ClientOp, Connect, Scenario, Template};

const CONNECT: &str = include_str!("../../../tests/seed/connect.json");
const PING: &str = include_str!("../../../tests/seed/ping.json");
const REQUEST_RESPONSE: &str = include_str!("../../../tests/seed/request_response.json");

fn read(text: &str) -> Result<Scenario, String> {
    Template::parse("out/request_response.json", text)
        .and_then(|template| template.resolve(&BTreeMap::new()))
        .map_err(|problem| problem.to_string())
}

fn connects(scenario: &Scenario) -> Vec<&Connect> {
    (scenario.clients[0].ops.iter())
        .map(|op| match op {
            ClientOp::Connect(connect) => connect.as_ref(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn script(ops: &impl serde::Serialize) -> Value {
    serde_json::to_value(ops).unwrap()
}

/// Returns a file with one connection whose client, and whose server on stream 0, run these
/// operations.
fn file(ops: &Value, peer: &Value) -> String {
    json!({
        "id": "x",
        "clients": [{
            "scenario": [{"connect": {
                "server_id": 0, "server_connection_id": 0, "client_connection_id": 0
            }}],
            "connections": [{"ops": ops}],
        }],
        "servers": [{
            "connections": [{"peer_streams": [peer]}],
            "private_key": 1, "certificate": 2, "certificate_authority": 0,
        }],
    })
    .to_string()
}

#[test]
fn equal_connects_in_a_row_become_one_with_a_count() {
    let scenario = read(CONNECT).unwrap();
    let connects = connects(&scenario);
    assert_eq!(connects.len(), 1);
    assert_eq!(connects[0].connections, Some(25));
    assert_eq!(connects[0].concurrency, 1);
    assert_eq!(
        script(&connects[0].ops),
        json!([
            {"open_bidi": {"stream": 0, "peer": [
                {"receive": {"stream": 0, "bytes": 1}}, {"send": {"stream": 0, "bytes": 1}},
                {"finish": {"stream": 0}}, {"receive_all": {"stream": 0}}
            ]}},
            {"send": {"stream": 0, "bytes": 1}}, {"receive": {"stream": 0, "bytes": 1}},
            {"finish": {"stream": 0}}, {"receive_all": {"stream": 0}}
        ])
    );
}

#[test]
fn profiles_become_requests_with_the_traces_as_labels() {
    let scenario = read(REQUEST_RESPONSE).unwrap();
    assert_eq!(scenario.name, "request_response");
    let connects = connects(&scenario);
    assert_eq!(connects[0].connections, Some(100));
    let ops = script(&connects[0].ops);
    assert_eq!(ops[1]["request"]["label"], "lbl");
    assert_eq!(ops[1]["request"]["ops"][0]["request"]["label"], "request");
    assert_eq!(ops[1]["request"]["ops"][1]["request"]["label"], "response");
    // Only clients time.
    assert_eq!(
        ops[0]["open_bidi"]["peer"][0],
        json!({"receive": {"stream": 0, "bytes": 1}})
    );
}

#[test]
fn different_connects_stay_apart_and_loops_keep_their_time() {
    let scenario = read(PING).unwrap();
    let connects = connects(&scenario);
    assert_eq!(connects.len(), 4);
    let ops = script(&connects[3].ops);
    assert_eq!(ops[1]["iterate"]["time"], 15000.0);
    assert_eq!(ops[1]["iterate"]["ops"][0]["request"]["label"], "ping 1MB");
}

#[test]
fn an_unpark_that_nobody_waits_for_does_nothing() {
    let text = file(
        &json!([
            {"scope": {"threads": [
                [{"park": {"checkpoint": 4}}, {"sleep": {"amount_ms": 5}}],
                [{"unpark": {"checkpoint": 4}}, {"unpark": {"checkpoint": 5}}]
            ]}},
            {"trace": {"trace_id": 0}}
        ]),
        &json!([]),
    );
    let scenario = read(&text).unwrap();
    assert_eq!(
        script(&connects(&scenario)[0].ops),
        json!([{"scope": [[{"park": 4}, {"sleep": 5.0}], [{"unpark": 4}]]}])
    );
}

#[test]
fn what_cannot_be_done_here_is_refused_in_one_line() {
    let mut routed: Value = serde_json::from_str(CONNECT).unwrap();
    routed["clients"][0]["scenario"][1]["connect"]["router_id"] = 0.into();
    let problem = read(&routed.to_string()).unwrap_err();
    assert!(
        problem.contains("clients[0].scenario[1].connect.router_id: "),
        "{problem}"
    );
    assert!(problem.contains("netbench link"), "{problem}");
    routed["routers"] = json!([{"scenario": []}]);
    assert!(read(&routed.to_string()).unwrap_err().contains("routers: "));

    let refused = [
        (
            json!([{"open_bidirectional_stream": {"stream_id": 3}}]),
            json!([]),
            "no script for it",
        ),
        (
            json!([{"recieve": {"stream_id": 3}}]),
            json!([]),
            "did you mean `receive`?",
        ),
        (
            json!([{"send": {"stream_id": 0, "bytes": 1, "rate": 1}}]),
            json!([]),
            "unknown key `rate`",
        ),
        (
            json!([{"profile": {"trace_id": 9, "operations": []}}]),
            json!([]),
            "no trace 9",
        ),
        (
            json!([{"open_bidirectional_stream": {"stream_id": 0}}]),
            json!([{"open_send_stream": {"stream_id": 0}}]),
            "opens another",
        ),
        (
            json!([{"open_bidirectional_stream": {"stream_id": 0}}]),
            json!([{"send_finish": {"stream_id": 1}}]),
            "the script of stream 0 uses stream 1",
        ),
    ];
    for (ops, peer, expected) in refused {
        let problem = read(&file(&ops, &peer)).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}
