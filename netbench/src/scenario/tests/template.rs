//! Templates and their parameters.

use std::time::Duration;

use super::*;

#[test]
fn every_bundled_scenario_resolves_and_is_named_as_it_is_listed() {
    for name in bundled() {
        let template = Template::load(name).unwrap();
        assert_eq!(template.name(), name);
        assert!(!template.description().is_empty(), "{name}");
        for param in template.params() {
            assert!(!param.help.is_empty(), "{name}: {}", param.name);
        }
        let scenario = template.resolve(&BTreeMap::new()).unwrap();
        assert_eq!(scenario.name, name);
    }
    assert_eq!(bundled().count(), 17);
}

#[test]
fn a_resolved_scenario_reads_back_as_itself() {
    for name in bundled() {
        let scenario = Template::load(name)
            .unwrap()
            .resolve(&BTreeMap::new())
            .unwrap();
        let text = serde_json::to_string_pretty(&scenario).unwrap();
        assert_eq!(
            serde_json::from_str::<Scenario>(&text).unwrap(),
            scenario,
            "{name}"
        );
        let again = read(&text).unwrap();
        assert_eq!(again, scenario, "{name}");
        assert_eq!(again.id(), scenario.id(), "{name}");
    }
}

#[test]
fn the_numbers_of_the_command_line_reach_the_script() {
    let template = Template::load("request_response").unwrap();
    let scenario = template
        .resolve(&set(&[
            ("connections", 10_000),
            ("payload", 5),
            ("response_size", 9),
        ]))
        .unwrap();
    let ClientOp::Connect(connect) = &scenario.clients[0].ops[0] else {
        panic!("{scenario:?}");
    };
    assert_eq!(connect.connections, Some(10_000));
    assert_eq!(connect.concurrency, 1);
    let script = serde_json::to_string(&connect.ops).unwrap();
    assert!(
        script.contains(r#"{"send":{"stream":0,"bytes":5}}"#),
        "{script}"
    );
    assert!(
        script.contains(r#"{"send":{"stream":0,"bytes":9}}"#),
        "{script}"
    );
    assert_eq!(scenario.params["request_size"], 5);
    assert_eq!(scenario.params["response_size"], 9);
}

#[test]
fn an_open_loop_is_not_held_back_to_one_connection() {
    let of = |params: &[(&str, u64)]| {
        let scenario = Template::load("connect")
            .unwrap()
            .resolve(&set(params))
            .unwrap();
        match &scenario.clients[0].ops[0] {
            ClientOp::Connect(connect) => (connect.rate, connect.concurrency),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(&[]), (None, 1));
    assert_eq!(of(&[("rate", 500)]), (Some(500.0), 10_000));
    assert_eq!(of(&[("rate", 500), ("concurrency", 8)]), (Some(500.0), 8));
}

#[test]
fn an_unknown_scenario_or_parameter_is_told_with_those_there_are() {
    let unknown = Template::load("request-responce").unwrap_err().to_string();
    assert!(
        unknown.contains("did you mean `request-response`?"),
        "{unknown}"
    );
    assert!(unknown.contains("overload"), "{unknown}");
    let missing = Template::load("no/such/file.json").unwrap_err().to_string();
    assert!(
        missing.starts_with("cannot read the scenario no/such/file.json: "),
        "{missing}"
    );
    let template = Template::load("connect").unwrap();
    let unknown = template
        .resolve(&set(&[("conections", 1)]))
        .unwrap_err()
        .to_string();
    assert_eq!(
        unknown,
        "connect: unknown parameter `conections`; did you mean `connections`? valid: \
         concurrency, connections, rate, warm_up"
    );
    let mut axes = crate::scenario::axes::Axes::default();
    axes.set("grupo", "1").unwrap();
    let unknown = template.check_axes(&axes).unwrap_err().to_string();
    assert!(unknown.contains("did you mean `group`?"), "{unknown}");
}

#[test]
fn the_id_is_of_what_is_done_and_not_of_names() {
    let template = Template::load("connect").unwrap();
    let scenario = template.resolve(&BTreeMap::new()).unwrap();
    let mut renamed = scenario.clone();
    renamed.name = "other".to_owned();
    renamed.description.clear();
    renamed.params.clear();
    assert_eq!(renamed.id(), scenario.id());
    assert_eq!(scenario.id().len(), 64);
    let other = template.resolve(&set(&[("connections", 7)])).unwrap();
    assert_ne!(other.id(), scenario.id());
}

#[test]
fn times_may_be_parameters_with_a_unit() {
    let scenario = Template::load("pool")
        .unwrap()
        .resolve(&set(&[("seconds", 3)]))
        .unwrap();
    assert_eq!(scenario.phases.measure, Some(Duration::from_secs(3)));
    let bursts = Template::load("bursts")
        .unwrap()
        .resolve(&BTreeMap::new())
        .unwrap();
    let ClientOp::Pool(pool) = &bursts.clients[0].ops[0] else {
        panic!("{bursts:?}");
    };
    assert_eq!(pool.every, Some(Duration::from_secs(5)));
    assert_eq!(pool.keep, Some(Duration::from_secs(1)));
    assert_eq!((pool.connections, pool.burst), (10, 10));
}

#[test]
fn defaults_that_name_each_other_in_a_circle_are_refused() {
    let problem = read(
        r#"{"netbench": 1, "name": "x", "params": {"a": "$b", "b": "$a"}, "clients": [
            {"name": "c", "ops": [{"connect": {"connections": "$a"}}]}]}"#,
    )
    .unwrap_err();
    assert!(problem.contains("comes back to itself"), "{problem}");
    let problem = read(
        r#"{"netbench": 1, "name": "x", "params": {"a": 1}, "clients": [
            {"name": "c", "ops": [{"connect": {"connections": "$b"}}]}]}"#,
    )
    .unwrap_err();
    assert_eq!(
        problem,
        "test.json: line 2, column 48: clients[0].ops[0].connect.connections: unknown parameter \"$b\"; `params` \
         declares a"
    );
}
