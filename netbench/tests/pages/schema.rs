//! The schema of results says what results are, no more and no less.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jsonschema::Validator;
use serde_json::{Value, json};

fn schema() -> Validator {
    let text = include_str!("../../schema/results.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

/// Returns the errors that the schema finds in the results.
fn errors(results: &Value) -> Vec<String> {
    let schema = schema();
    let errors = schema.iter_errors(results);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn results_are_as_the_schema_says() {
    for results in [
        crate::synthetic::groups(),
        crate::synthetic::stacks(),
        crate::synthetic::groups_at(0, 1),
        crate::synthetic::results("nothing", Vec::new()),
    ] {
        assert_eq!(errors(&results), [""; 0]);
    }
}

#[test]
fn what_a_run_writes_is_as_the_schema_says() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("schema-run.json");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args([
            "run",
            "request-response",
            "--group",
            "X25519",
            "--connections",
            "20",
        ])
        .args(["--repetitions", "2", "--json"])
        .arg(&path)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let results = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(errors(&results), [""; 0]);
}

/// Every object of results, by the way to it.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(path.to_owned());
            for (name, value) in fields {
                objects(value, &format!("{path}/{}", name.replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                objects(first, &format!("{path}/0"), found);
            }
        }
        _ => {}
    }
}

/// Returns true if the names in that object are free: labels, crates, parameters.
fn is_map(path: &str) -> bool {
    let free = [
        "crates", "params", "kinds", "outcomes", "details", "requests",
    ];
    free.iter().any(|name| path.ends_with(&format!("/{name}"))) || path.starts_with("/scenario")
}

#[test]
fn an_unknown_key_anywhere_is_refused() {
    let results = crate::synthetic::groups();
    let mut paths = Vec::new();
    objects(&results, "", &mut paths);
    assert!(paths.len() > 15, "{paths:?}");
    for path in paths.iter().filter(|path| !is_map(path)) {
        let mut changed = results.clone();
        changed.pointer_mut(path).unwrap()["unknown"] = json!(1);
        assert!(!errors(&changed).is_empty(), "{path}");
    }
}

#[test]
fn a_missing_key_anywhere_is_refused() {
    let results = crate::synthetic::groups();
    let optional = ["/breakdowns"];
    let mut paths = Vec::new();
    objects(&results, "", &mut paths);
    let is_free =
        |path: &str| is_map(path) || path.ends_with("/metrics") || path.ends_with("/summary");
    for path in paths.iter().filter(|path| !is_free(path)) {
        let names: Vec<String> = results
            .pointer(path)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for name in names {
            if optional.contains(&format!("{path}/{name}").as_str()) {
                continue;
            }
            let mut changed = results.clone();
            changed
                .pointer_mut(path)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(&name);
            assert!(!errors(&changed).is_empty(), "{path}/{name}");
        }
    }
}

#[test]
fn wrong_types_are_refused() {
    for (path, value) in [
        ("/netbench_results", json!(2)),
        ("/complete", json!("yes")),
        ("/about/build", json!("fast")),
        ("/cells/0/cell/certificate", json!("dsa")),
        ("/cells/0/repetitions/0/samples/0/connections", json!(-1)),
        ("/cells/0/summary/server_cpu_us/median", json!(null)),
    ] {
        let mut changed = crate::synthetic::groups();
        *changed.pointer_mut(path).unwrap() = value;
        assert!(!errors(&changed).is_empty(), "{path}");
    }
}
