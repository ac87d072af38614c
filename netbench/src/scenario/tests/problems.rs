//! Tests of messages about invalid files.

use super::*;

#[test]
fn malformed_json_is_told_with_line_and_column() {
    let problem = read("{\n  \"netbench\": 1,\n  \"name\" \"x\"\n}").unwrap_err();
    assert_eq!(problem, "test.json: line 3, column 10: expected `:`");
    let problem = read("{\"netbench\": 1,").unwrap_err();
    assert!(
        problem.starts_with("test.json: line 1, column 15: the file ends within"),
        "{problem}"
    );
    assert!(read("").unwrap_err().contains("line 1, column 0"));
    let deep = "[".repeat(100_000);
    assert!(read(&deep).unwrap_err().contains("recursion limit"));
}

#[test]
fn what_is_no_scenario_is_told_what_is_missing() {
    assert!(read("[]").unwrap_err().contains("expected a scenario"));
    assert!(read("{}").unwrap_err().contains("the key `netbench`"));
    assert!(
        read(r#"{"netbench": 2}"#)
            .unwrap_err()
            .contains("reads format 1")
    );
    assert_eq!(
        read(r#"{"netbench": 1, "name": "x"}"#).unwrap_err(),
        "test.json: the key `clients` is missing"
    );
}

#[test]
fn unknown_keys_are_told_with_their_path_and_what_may_be_meant() {
    assert_eq!(
        client("[\n  {\"connect\": {\"concurency\": 3}}]").unwrap_err(),
        "test.json: line 2, column 16: clients[0].ops[0].connect.concurency: unknown key `concurency`; did you mean \
         `concurrency`? valid: server, label, connections, concurrency, rate, arrivals, timeout, \
         on_error, ops, server_ops"
    );
    let problem = connection(r#"[{"recieve": 1}]"#).unwrap_err();
    assert!(
        problem.contains("clients[0].ops[0].connect.ops[0]"),
        "{problem}"
    );
    assert!(
        problem.contains("unknown operation `recieve`; did you mean `receive`?"),
        "{problem}"
    );
    let problem = connection(r#"["open_bidi", {"send": {"stream": 0, "bites": 1}}]"#).unwrap_err();
    assert!(problem.contains("did you mean `bytes`?"), "{problem}");
    let problem = read(r#"{"netbench": 1, "name": "x", "client": []}"#).unwrap_err();
    assert!(problem.contains("did you mean `clients`?"), "{problem}");
}

#[test]
fn values_of_the_wrong_kind_are_told_what_is_expected() {
    let refused = [
        (
            r#"[{"sleep": "5 parsecs"}]"#,
            "expected a time, such as \"10ms\"",
        ),
        (r#"[{"sleep": []}]"#, "expected a time, such as \"10ms\""),
        (r#"[{"sleep": -1}]"#, "expected a time"),
        (r#"[{"sleep": 1e300}]"#, "expected a time"),
        (
            r#"["open_bidi", {"send": "1KB"}]"#,
            "expected a number of bytes",
        ),
        (
            r#"["open_bidi", {"send": 1.5}]"#,
            "expected a number of bytes",
        ),
        (
            r#"["open_bidi", {"send": null}]"#,
            "expected a number of bytes",
        ),
        (
            r#"["open_bidi", {"send": {"stream": "a", "bytes": 1}}]"#,
            "expected a whole number",
        ),
        (r#"[{"park": -1}]"#, "expected a whole number"),
        (
            r#"[{"iterate": {"times": 1, "rate": "5", "ops": []}}]"#,
            "expected a rate per second",
        ),
        (r#"["close"]"#, "close"),
        ("[5]", "clients[0].ops[0].connect.ops[0]"),
        (
            r#"[{"send": 1, "receive": 1}]"#,
            "clients[0].ops[0].connect.ops[0]",
        ),
    ];
    for (ops, expected) in refused {
        let problem = connection(ops).unwrap_err();
        assert!(problem.contains(expected), "{ops}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
    let problem = read(r#"{"netbench": 1, "name": "x", "params": {"a": {"defualt": 1}}}"#);
    assert!(
        problem
            .unwrap_err()
            .contains("params.a: unknown key `defualt`")
    );
    let problem = read(
        r#"{"netbench": 1, "name": "x", "axes": {"grp": 1}, "clients": [
        {"name": "c", "ops": [{"connect": {}}]}]}"#,
    );
    assert!(
        problem
            .unwrap_err()
            .contains("unknown axis or parameter `grp`")
    );
}

#[test]
fn operations_may_stand_as_their_name_alone() {
    let bare = connection(r#"["open_bidi", "finish", "receive_all"]"#).unwrap();
    let spelled_out =
        connection(r#"[{"open_bidi": {}}, {"finish": {"stream": 0}}, {"receive_all": {}}]"#);
    assert_eq!(bare, spelled_out.unwrap());
}

#[test]
fn units_say_the_same_as_numbers() {
    let with_units = connection(
        r#"["open_bidi", {"sleep": "2s"}, {"send": "1KiB"}, {"send_rate": {"bytes": "1MiB", "period": "100us"}}]"#,
    );
    let numbers = connection(
        r#"["open_bidi", {"sleep": 2000}, {"send": 1024}, {"send_rate": {"bytes": 1048576, "period": 0.1}}]"#,
    );
    assert_eq!(with_units.unwrap(), numbers.unwrap());
}
