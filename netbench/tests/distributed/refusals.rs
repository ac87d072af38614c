//! Runs that cannot begin: one line, no file, and the exit says so.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::agent::{Agent, netbench};
use crate::client::Client;

#[test]
fn an_agent_that_cannot_be_reached() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unused.local_addr().unwrap();
    drop(unused);
    let ran = Client::start("unreachable", &address.to_string(), &[]).finish();
    let line = ran.refusal();
    assert!(
        line.contains(&format!("no agent answers at {address}")),
        "{line}"
    );
    assert!(line.contains("netbench server"), "{line}");
}

#[test]
fn no_server_at_all_and_one_that_is_no_address() {
    let mut command = netbench();
    command.arg("client");
    let ran = Client::of("no-server", command).finish();
    assert!(ran.refusal().contains("SERVER_0=HOST:PORT"));

    let ran = Client::start("no-address", "http://host:1", &[]).finish();
    let line = ran.refusal();
    assert!(
        line.contains("SERVER_0") && line.contains("HOST:PORT"),
        "{line}"
    );
}

#[test]
fn another_token_or_none() {
    let agent = Agent::start(&["--token", "correct horse"]);
    let ran = Client::start(
        "other-token",
        &agent.address.to_string(),
        &["--token", "battery staple"],
    )
    .finish();
    assert!(ran.refusal().contains("the token is not this agent's"));
    let ran = Client::start("no-token", &agent.address.to_string(), &[]).finish();
    assert!(ran.refusal().contains("give --token"));
}

#[test]
fn a_fleet_of_another_size() {
    let agent = Agent::start(&["--fleet", "2"]);
    let ran = Client::start("other-fleet", &agent.address.to_string(), &["--fleet", "3"]).finish();
    assert!(ran.refusal().contains("--fleet"));
}

/// Runs a client against a server that says this line first, and returns the client's complaint.
fn greeted_with(name: &str, greeting: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the test's process if nobody comes.
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = writeln!(stream, "{greeting}");
            let _ = BufReader::new(stream).read_line(&mut String::new());
        }
    });
    Client::start(name, &address.to_string(), &[])
        .finish()
        .refusal()
        .to_owned()
}

#[test]
fn an_agent_of_another_version() {
    let line = greeted_with(
        "newer",
        r#"{"Ok":{"netbench":"99.0.0","protocol":7,"more":[]}}"#,
    );
    assert!(line.contains("netbench 99.0.0 with protocol 7"), "{line}");
    assert!(line.contains(env!("CARGO_PKG_VERSION")), "{line}");
}

#[test]
fn a_server_of_something_else() {
    for (name, greeting) in [
        ("ssh", "SSH-2.0-OpenSSH_9.6"),
        ("json", "{}"),
        ("text", "["),
    ] {
        let line = greeted_with(name, greeting);
        assert!(
            line.contains("does not speak as `netbench server`"),
            "{line}"
        );
    }
}
