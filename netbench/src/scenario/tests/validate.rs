//! Tests of scenarios that are refused because they can never run.

use super::*;

#[test]
fn streams_are_used_as_they_are_open() {
    let refused = [
        (r#"[{"send": 1}]"#, "ops[0].send: stream 0 is not open here"),
        (
            r#"["open_uni", {"receive": 1}]"#,
            "ops[1].receive: stream 0 is a unidirectional one and can only be sent on",
        ),
        (
            r#"[{"open_uni": {"peer": [{"send": 1}]}}]"#,
            "ops[0].open_uni.peer[0].send: stream 0 is the peer's unidirectional one",
        ),
        (
            r#"["open_bidi", "finish", {"send": 1}]"#,
            "ops[2].send: stream 0 was ended by `finish`",
        ),
        (
            r#"["open_bidi", {"iterate": {"times": 2, "ops": [{"send": 1}, "finish"]}}]"#,
            "stream 0 was ended by `finish` in the turn before",
        ),
        (
            r#"[{"scope": [["open_bidi"], [{"send": 1}]]}]"#,
            "scope[1][0].send: stream 0 is not open here",
        ),
        (
            r#"[{"scope": [["open_bidi"]]}, {"send": 1}]"#,
            "ops[1].send: stream 0 is not open here",
        ),
        (
            r#"["open_bidi", "receive_all", {"receive": 1}]"#,
            "was read to its end by `receive_all`",
        ),
        (
            r#"[{"open_bidi": {"peer": [{"request": {"ops": []}}]}}]"#,
            "only clients time requests",
        ),
        (
            r#"["open_bidi", {"send_rate": {"bytes": 0, "period": "1s"}}]"#,
            "send_rate.bytes: is 0",
        ),
        (
            r#"[{"datagrams": {"count": 1, "bytes": 70000}}]"#,
            "at most 65507",
        ),
        (r#"[{"iterate": {"ops": [{"sleep": 1}]}}]"#, "never ends"),
        (
            r#"[{"iterate": {"times": 3, "ops": []}}]"#,
            "nothing to repeat",
        ),
    ];
    for (ops, expected) in refused {
        let problem = connection(ops).unwrap_err();
        assert!(problem.contains(expected), "{ops}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
    let fine = [
        r#"["open_bidi", {"scope": [[{"send": 1}, "finish"], ["receive_all"]]}]"#,
        r#"[{"iterate": {"times": 2, "ops": ["open_bidi", {"send": 1}, "finish"]}}]"#,
        r#"[{"open_bidi": {"stream": 7}}, {"send": {"stream": 7, "bytes": "1KiB"}}, {"reset": {"stream": 7}}]"#,
        r#"["open_bidi", {"scope": [["open_bidi", "finish"]]}, {"send": 1}]"#,
    ];
    for ops in fine {
        connection(ops).unwrap();
    }
}

#[test]
fn whoever_parks_is_unparked() {
    let refused = [
        (
            r#"[{"park": 1}]"#,
            "nothing on this end unparks checkpoint 1",
        ),
        (
            r#"[{"park": 1}, {"unpark": 1}]"#,
            "is unparked only after it",
        ),
        (
            r#"[{"unpark": 3}]"#,
            "nothing on this end parks at checkpoint 3",
        ),
        // The other end has checkpoints of its own.
        (
            r#"[{"open_bidi": {"peer": [{"unpark": 1}]}}, {"park": 1}]"#,
            "checkpoint 1",
        ),
    ];
    for (ops, expected) in refused {
        let problem = connection(ops).unwrap_err();
        assert!(problem.contains(expected), "{ops}: {problem}");
    }
    connection(r#"[{"scope": [[{"park": 1}], [{"unpark": 1}]]}]"#).unwrap();
    connection(r#"[{"unpark": 1}, {"park": 1}]"#).unwrap();
    connection(
        r#"[{"open_bidi": {"peer": [{"park": 1}]}}, {"open_bidi": {"peer": [{"unpark": 1}]}}]"#,
    )
    .unwrap();
    let problem = client(r#"[{"connect": {}}, {"park": 9}]"#).unwrap_err();
    assert!(problem.contains("ops[1].park: waits for ever"), "{problem}");
}

#[test]
fn connections_that_never_begin_or_never_end_are_refused() {
    let refused = [
        ("[]", "it never connects"),
        (
            r#"[{"connect": {"connections": 0}}]"#,
            "connect.connections: is 0",
        ),
        (
            r#"[{"connect": {"concurrency": 0}}]"#,
            "connect.concurrency: is 0",
        ),
        (
            r#"[{"connect": {"connections": "unlimited"}}]"#,
            "needs `phases.measure`",
        ),
        (
            r#"[{"connect": {"timeout": 0}}]"#,
            "connect.timeout: is no time",
        ),
        (r#"[{"connect": {"rate": 0}}]"#, "a rate per second above 0"),
        (
            r#"[{"connect": {"arrivals": "poisson"}}]"#,
            "without `rate`",
        ),
        (
            r#"[{"connect": {"server": 1}}]"#,
            "server 1 is used but server 0 is not",
        ),
        (
            r#"[{"pool": {"ops": []}}]"#,
            "pool.requests: give their number",
        ),
        (
            r#"[{"pool": {"requests": 1, "ops": []}}]"#,
            "pool.ops: is empty",
        ),
        (
            r#"[{"pool": {"requests": 1, "rate": 1, "every": 1, "ops": [{"sleep": 1}]}}]"#,
            "`rate` and `every`",
        ),
        (
            r#"[{"pool": {"requests": 1, "burst": 2, "ops": [{"sleep": 1}]}}]"#,
            "need `rate` or `every`",
        ),
    ];
    for (ops, expected) in refused {
        let problem = client(ops).unwrap_err();
        assert!(problem.contains(expected), "{ops}: {problem}");
    }
}
