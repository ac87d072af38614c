//! Runs that cannot begin: one line, no file, and the exit says so.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
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

/// Stands between clients and an agent, and changes what the agent says. The function gets the number of the
/// line, and the line with its end.
fn between(agent: &Agent, change: fn(usize, String) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, agent) = (listener.local_addr().unwrap(), agent.address);
    // The threads end with the test's process if nobody comes.
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let agent = TcpStream::connect(agent).unwrap();
            let (to_client, to_agent) = (client.try_clone().unwrap(), agent.try_clone().unwrap());
            thread::spawn(move || pass(client, to_agent, |_, line| line));
            thread::spawn(move || pass(agent, to_client, change));
        }
    });
    address
}

fn pass(from: TcpStream, mut to: TcpStream, change: fn(usize, String) -> String) {
    let mut from = BufReader::new(from);
    for number in 0.. {
        let mut line = String::new();
        if let Ok(0) | Err(_) = from.read_line(&mut line) {
            break;
        }
        if to.write_all(change(number, line).as_bytes()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// What somebody in between makes of a line with this number.
type Change = fn(usize, String) -> String;

#[test]
fn somebody_in_between_who_changes_what_the_agent_says() {
    let agent = Agent::start(&["--token", "correct horse"]);
    let token = ["--token", "correct horse"];
    let run = |name: &str, change| {
        let address = between(&agent, change).to_string();
        Client::start(name, &address, &token).finish()
    };
    let changes: [(&str, Change, &str); 5] = [
        // The client must not go on without what it was told to ask for.
        (
            "asks-for-nothing",
            |number, line| match number {
                0 => {
                    let mut welcome: serde_json::Value = serde_json::from_str(&line).unwrap();
                    welcome["Ok"]["nonce"] = serde_json::Value::Null;
                    format!("{welcome}\n")
                }
                _ => line,
            },
            "asks for no token",
        ),
        (
            "other-number",
            |number, line| match number {
                0 => line.replace("\"nonce\":\"", "\"nonce\":\"0"),
                _ => line,
            },
            "in between",
        ),
        (
            "accepts-by-itself",
            |number, line| match number {
                0 => line,
                _ => "{\"Ok\":null}\n".to_owned(),
            },
            "in between",
        ),
        (
            "other-server",
            |_, line| line.replace("127.0.0.1:", "127.0.0.1:1"),
            "in between",
        ),
        (
            "repeats",
            |number, line| match number {
                1 => line.repeat(2),
                _ => line,
            },
            "in between",
        ),
    ];
    for (name, change, told) in changes {
        let ran = run(name, change);
        assert!(!ran.is_success, "{name}");
        assert!(ran.stderr.contains(told), "{name}: {}", ran.stderr);
    }
    // Who only passes lines on is a network.
    let args = [&token[..], &["--connections", "10", "--repetitions", "1"]].concat();
    let address = between(&agent, |_, line| line).to_string();
    let ran = Client::start("passes-on", &address, &args).finish();
    assert!(ran.is_success, "{}", ran.stderr);
}

#[test]
fn an_agent_without_the_clients_token() {
    let agent = Agent::start(&[]);
    let ran = Client::start(
        "asks-for-none",
        &agent.address.to_string(),
        &["--token", "correct horse"],
    )
    .finish();
    assert!(ran.refusal().contains("asks for no token"));
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
