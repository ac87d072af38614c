//! One end dies or falls silent in the middle of a measurement.

use crate::agent::{Agent, netbench};
use crate::client::{Client, Ran, repetition, succeeded};
use crate::processes::{busy, child, eventually, plays, signal};

const ENDLESS: [&str; 4] = ["--connections", "1000000000", "--repetitions", "3"];
const SMALL: [&str; 4] = ["--connections", "5", "--repetitions", "1"];

/// A client that measures, and the server process that it measures.
fn measuring(name: &str, agent: &Agent) -> (Client, u32) {
    let client = Client::start(name, &agent.address.to_string(), &ENDLESS);
    let server = child(agent.child.id(), "serve");
    busy(child(client.child.id(), "drive"));
    (client, server)
}

/// The client has kept what it had, and says what went wrong in one line.
fn is_kept_and_marked(ran: &Ran, complaint: &str) {
    let results = ran.partial();
    assert_eq!(results["complete"], false);
    assert_eq!(results["problems"].as_array().unwrap().len(), 1);
    let repetition = repetition(&results, 0);
    let error = repetition["error"].as_str().unwrap();
    assert!(error.contains(complaint), "{error}");
    assert!(succeeded(repetition) > 0);
    let progress = |line: &&str| line.starts_with("netbench: [");
    let lines: Vec<_> = ran.stderr.lines().filter(|line| !progress(line)).collect();
    assert_eq!(lines.len(), 1, "{}", ran.stderr);
    assert!(lines[0].contains(complaint), "{}", ran.stderr);
}

fn serves_the_next(agent: &Agent, name: &str) {
    let results = Client::start(name, &agent.address.to_string(), &SMALL)
        .finish()
        .results();
    assert_eq!(succeeded(repetition(&results, 0)), 5);
}

#[test]
fn an_agent_that_is_killed_takes_its_server_with_it_and_the_client_keeps_what_it_has() {
    let agent = Agent::start(&[]);
    let address = agent.address;
    let (client, server) = measuring("agent-killed", &agent);
    agent.kill();
    assert!(!plays(server, "serve"));
    is_kept_and_marked(&client.finish(), &format!("the agent at {address}: "));
}

#[test]
fn an_agent_that_is_gone_is_not_looked_for_again_for_each_cell() {
    let agent = Agent::start(&[]);
    let address = agent.address;
    let cells = ["--group", "X25519,X25519MLKEM768,SecP256r1MLKEM768"];
    let mut command = netbench();
    command
        .env("SERVER_0", address.to_string())
        .arg("client")
        .args(cells)
        .args(ENDLESS);
    let client = Client::of("agent-gone", command);
    busy(child(client.child.id(), "drive"));
    agent.kill();
    let ran = client.finish();
    let results = ran.partial();
    let problems = results["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].as_str().unwrap().contains("is gone"));
    let again = problems[1].as_str().unwrap();
    assert!(again.contains(&format!("no agent answers at {address}")));
}

#[test]
fn an_agent_that_is_asked_to_end_takes_its_server_with_it() {
    let mut agent = Agent::start(&[]);
    let (client, server) = measuring("agent-ended", &agent);
    signal(agent.child.id(), "TERM");
    assert!(agent.child.wait().unwrap().success());
    eventually("the server process ends", || {
        (!plays(server, "serve")).then_some(())
    });
    is_kept_and_marked(&client.finish(), "the agent at ");
}

#[test]
fn a_client_that_is_killed_frees_the_agent_for_the_next() {
    let agent = Agent::start(&[]);
    let (mut client, server) = measuring("client-killed", &agent);
    client.child.kill().unwrap();
    // None of its processes is left.
    client.finish();
    eventually("the server process ends", || {
        (!plays(server, "serve")).then_some(())
    });
    serves_the_next(&agent, "after-killed");
    agent.kill();
}

#[test]
fn a_server_process_that_dies_is_told_and_the_agent_goes_on() {
    let agent = Agent::start(&[]);
    let (client, server) = measuring("server-killed", &agent);
    signal(server, "KILL");
    is_kept_and_marked(&client.finish(), "ended early (signal: 9");
    serves_the_next(&agent, "after-dead-server");
}

#[test]
fn a_client_that_is_silent_for_too_long_is_given_up() {
    // The shortest silence that there is: clients say every 5 s that they are there.
    let agent = Agent::start(&["--silence", "6", "--sessions", "1"]);
    let (client, server) = measuring("silent", &agent);
    signal(client.child.id(), "STOP");
    eventually("the server process ends", || {
        (!plays(server, "serve")).then_some(())
    });
    // Its place is free too, though the agent lets it linger for a moment.
    eventually("there is room", || {
        let ran = Client::start("after-silent", &agent.address.to_string(), &SMALL).finish();
        ran.is_success.then_some(())
    });
    signal(client.child.id(), "CONT");
    is_kept_and_marked(&client.finish(), "nothing was heard of this client for 6 s");
    let complaints = agent.kill();
    assert!(
        complaints.contains("nothing was heard of this client for 6 s"),
        "{complaints}"
    );
}
