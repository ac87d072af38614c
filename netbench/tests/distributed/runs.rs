//! A run against an agent is like one on this host.

use serde_json::Value;

use crate::agent::{Agent, netbench};
use crate::client::{Client, number, repetition, succeeded};

const SMALL: [&str; 4] = ["--connections", "10", "--repetitions", "2"];

/// Lists the names and types in a JSON value, without the values themselves.
fn shape(value: &Value, path: &str, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                shape(value, &format!("{path}.{name}"), all);
            }
        }
        // The numbers of samples and buckets are chance.
        Value::Array(values) => {
            if let Some(first) = values.first() {
                shape(first, &format!("{path}[]"), all);
            }
        }
        _ => all.push(path.to_owned()),
    }
}

fn shape_of(results: &Value) -> Vec<String> {
    let mut all = Vec::new();
    shape(results, "", &mut all);
    // What else the machine did is not the results' shape.
    all.retain(|path| {
        !path.starts_with(".about.servers")
            && !path.ends_with(".other_cores")
            && !path.ends_with(".disturbed")
    });
    all
}

#[test]
fn results_are_like_those_of_a_run_on_one_host() {
    let agent = Agent::start(&[]);
    let far = Client::start("far", &agent.address.to_string(), &SMALL)
        .finish()
        .results();
    let mut command = netbench();
    command
        .args(["run", "request-response", "--group", "X25519"])
        .args(SMALL);
    let near = Client::of("near", command).finish().results();

    assert_eq!(shape_of(&far), shape_of(&near));
    assert_eq!(far["scenario_id"], near["scenario_id"]);
    assert_eq!(far["about"]["servers"].as_array().unwrap().len(), 1);
    for results in [&far, &near] {
        assert_eq!(results["complete"], true);
        for index in 0..2 {
            let repetition = repetition(results, index);
            assert_eq!(succeeded(repetition), 10);
            for side in ["client", "server"] {
                let process = &repetition[side];
                assert_eq!(process["completed"], 10, "{side}");
                assert!(number(&process["user_us"]) + number(&process["system_us"]) > 0.0);
            }
            let (client, server) = (&repetition["client"], &repetition["server"]);
            for (sent, received) in [(client, server), (server, client)] {
                assert_eq!(
                    sent["traffic"]["sent_bytes"],
                    received["traffic"]["received_bytes"]
                );
            }
        }
    }
}

#[test]
fn an_agent_serves_one_client_after_the_other_and_several_at_once() {
    let agent = Agent::start(&[]);
    for name in ["first", "second"] {
        let results = Client::start(name, &agent.address.to_string(), &SMALL)
            .finish()
            .results();
        assert_eq!(succeeded(repetition(&results, 1)), 10);
    }
    let both =
        ["left", "right"].map(|name| Client::start(name, &agent.address.to_string(), &SMALL));
    for client in both {
        assert_eq!(succeeded(repetition(&client.finish().results(), 1)), 10);
    }
}

#[test]
fn the_environment_sets_up_both_ends_as_that_of_s2n_netbench_does() {
    let mut server = netbench();
    server
        .arg("server")
        .env("PORT", "0")
        .env("SCENARIO", "connect");
    let agent = Agent::of(server);
    let client = |name: &str, scenario: &str| {
        let mut client = netbench();
        client
            .arg("client")
            .args(["--group", "X25519", "--repetitions", "1"])
            .env("SCENARIO", scenario)
            .env("SERVER_0", format!("localhost:{}", agent.address.port()));
        Client::of(name, client).finish()
    };
    let results = client("environment", "connect").results();
    assert_eq!(results["scenario"]["name"], "connect");
    assert!(succeeded(repetition(&results, 0)) > 0);

    let other = client("environment-other", "ping");
    assert!(other.refusal().contains("serves the scenario"));
}

#[test]
fn the_token_opens_the_port_and_is_not_in_the_results() {
    let agent = Agent::start(&["--token", "correct horse"]);
    let secret = ["--token", "correct horse"];
    let args = [&SMALL[..], &secret].concat();
    let results = Client::start("token", &agent.address.to_string(), &args)
        .finish()
        .results();
    assert!(!results.to_string().contains("correct horse"));
}
