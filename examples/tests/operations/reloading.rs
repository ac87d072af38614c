//! A server under load gets other certificates, a bad one among them, and is told to end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use hybriq::{ConnectionError, Endpoint};
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::authority::Authority;
use crate::clients::{
    Count, ask, ask_until_asked_to_go, certificate, connect, endpoint, is_refused, soon,
};
use crate::server::Server;

/// Connections that live through everything.
const LONG: usize = 200;

/// Clients that connect, ask, leave and come back.
const SHORT: usize = 8;

/// Connects, asks and leaves until the server refuses.
async fn come_and_go(client: Endpoint, server: SocketAddr, done: Count) -> Result<(), String> {
    loop {
        let connection = match connect(&client, server).await {
            Ok(connection) => connection,
            Err(error) if is_refused(&error) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        ask(&connection, done.now()).await?;
        connection.close(0, b"done");
        done.add();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_while_certificates_change_and_the_server_ends() {
    let authority = Authority::new("reloading");
    let mut server = Server::start(&authority, &[]);
    let clients: Vec<_> = (0..4).map(|_| endpoint(authority.trust())).collect();
    let (answered, came) = (Count::default(), Count::default());

    let (mut long, mut short) = (JoinSet::new(), JoinSet::new());
    for index in 0..LONG {
        let connecting = clients[index % 4].connect(server.address, "localhost");
        let answered = answered.clone();
        long.spawn(async move {
            let connection = soon(connecting).await.map_err(|error| error.to_string())?;
            ask_until_asked_to_go(connection, answered).await
        });
    }
    answered.reaches(LONG as u64).await;
    for index in 0..SHORT {
        let client = clients[index % 4].clone();
        short.spawn(come_and_go(client, server.address, came.clone()));
    }

    // Without resumption, in which no certificate is shown.
    let address = server.address;
    let fresh = || async {
        let connection = connect(&endpoint(authority.trust()), address).await;
        certificate(&connection.unwrap())
    };
    let mut current = fresh().await;
    for round in 0..4 {
        came.grows(SHORT as u64).await;
        answered.grows(LONG as u64).await;
        if round == 2 {
            authority.spoil();
            server.signal(Signal::HUP);
            let said = server.says();
            assert!(
                said.starts_with("not reloaded, the old certificate stays: "),
                "{said}"
            );
            assert!(said.contains("key"), "{said}");
        } else {
            current = authority.renew();
            server.signal(Signal::HUP);
            assert_eq!(server.says(), "reloaded");
        }
        assert_eq!(fresh().await, current, "round {round}");
    }

    server.signal(Signal::TERM);
    assert_eq!(server.says(), "draining for at most 30 s");
    while let Some(outcome) = short.join_next().await {
        outcome.unwrap().unwrap();
    }
    // The others were asked to go, and are still served.
    let mut gone = 0;
    while let Some(outcome) = long.join_next().await {
        let connection = outcome.unwrap().unwrap();
        ask(&connection, 0).await.unwrap();
        connection.close(0, b"done");
        gone += 1;
    }
    assert_eq!(gone, LONG);
    assert_eq!(server.says(), "drained: 0 connections were cut off");
    let (status, rest) = server.ends();
    assert!(status.success() && rest.is_empty(), "{status} {rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_go_is_cut_off_at_the_deadline() {
    let authority = Authority::new("deadline");
    let mut server = Server::start(&authority, &["--drain", "0"]);
    let client = endpoint(authority.trust());
    let connection = connect(&client, server.address).await.unwrap();
    ask(&connection, 0).await.unwrap();
    server.signal(Signal::TERM);
    let closed = soon(connection.closed()).await;
    assert!(
        matches!(closed, ConnectionError::Application { code: 1, .. }),
        "{closed}"
    );
    assert_eq!(server.says(), "draining for at most 0 s");
    assert_eq!(server.says(), "drained: 1 connections were cut off");
    assert!(server.ends().0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_server_early() {
    let authority = Authority::new("early-end");
    let mut server = Server::start(&authority, &["--drain", "3600"]);
    let client = endpoint(authority.trust());
    let connection = connect(&client, server.address).await.unwrap();
    ask(&connection, 0).await.unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.says(), "draining for at most 3600 s");
    server.signal(Signal::INT);
    let closed = soon(connection.closed()).await;
    assert!(
        matches!(closed, ConnectionError::Application { code: 1, .. }),
        "{closed}"
    );
    assert_eq!(server.says(), "ended early");
    assert!(server.ends().0.success());
}

/// Returns the first line of the answer to a health check.
pub(crate) fn check(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: server\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_tell_that_the_server_drains() {
    let authority = Authority::new("health");
    let mut server = Server::start(&authority, &[]);
    let client = endpoint(authority.trust());
    let connection = connect(&client, server.address).await.unwrap();
    assert_eq!(check(server.health, "/ready"), "HTTP/1.1 200 OK");
    assert_eq!(check(server.health, "/live"), "HTTP/1.1 200 OK");
    server.signal(Signal::TERM);
    assert_eq!(server.says(), "draining for at most 30 s");
    soon(connection.accept_uni()).await.unwrap().unwrap();
    assert_eq!(
        check(server.health, "/ready"),
        "HTTP/1.1 503 Service Unavailable"
    );
    assert_eq!(check(server.health, "/live"), "HTTP/1.1 200 OK");
    connection.close(0, b"done");
    assert_eq!(server.says(), "drained: 0 connections were cut off");
}
