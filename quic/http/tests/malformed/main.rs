//! Answers that RFC 9114 and RFC 9204 demand of a server when a client breaks their rules: the
//! HTTP/3 cases of h3spec, and their kin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cases;
mod h3_alone;
mod peers;
mod scripts;
mod servers;
#[path = "../support/mod.rs"]
mod support;

use std::{collections::HashSet, net::SocketAddr, time::Duration};

use axum::Router;
use bytes::Bytes;
use cases::{
    Expected::{Connection as Closes, Stream as Resets},
    MESSAGE_ERROR,
    On::{Bidi, Uni},
};
use http::Method;
use hybriq::{
    ClientConfig, Connection, ConnectionError, Endpoint, ReadError, RecvStream, TransportConfig,
    Trust,
    tls::{CertificateDer, Side},
};
use hybriq_h3::{Config, Connection as Core, Received, Receiver, Settings};
use scripts::{Last, Outcome, Script};
use support::{Certificate, Http3, post, run, soon};

/// Returns a client for servers with this certificate, whose connections end when nothing comes for seconds.
fn client(certificate: &CertificateDer<'static>) -> Endpoint {
    let transport = TransportConfig::new().idle_timeout(Some(Duration::from_secs(4)));
    let config = ClientConfig::new().alpn([hybriq_h3::ALPN]);
    let config = config.trust(Trust::roots_der([certificate.clone()]));
    Endpoint::client(config.transport(transport)).unwrap()
}

/// Sends a script on a connection of its own. Returns what the server does, and the status of its answer.
async fn answer(client: &Endpoint, address: SocketAddr, script: &Script) -> (Outcome, u16) {
    let connection = soon(client.connect(address, "localhost")).await.unwrap();
    let mut open = Vec::new();
    for (direction, bytes) in &script.streams {
        let (mut send, recv) = match direction {
            Bidi => {
                let (send, recv) = connection.open_bidi().await.unwrap();
                (send, Some(recv))
            }
            Uni => (connection.open_uni().await.unwrap(), None),
        };
        // The connection may be closed for an earlier stream.
        let _ = send.write_all(bytes).await;
        open.push((send, recv));
    }
    let (send, recv) = open.last_mut().unwrap();
    match script.last {
        Last::Open => {}
        Last::Finished => send.finish(),
        // What was sent arrives before the answers to requests behind it.
        Last::Reset => {
            ignored(&connection).await;
            send.reset(0x10c);
        }
        Last::Stops(kind) => tokio::select! {
            biased;
            () = stop(&connection, kind) => {}
            // Not all servers open all streams.
            () = ignored(&connection) => {}
        },
    }
    let on_stream = async {
        match recv {
            Some(recv) => on_stream(recv).await,
            None => std::future::pending().await,
        }
    };
    // A connection error may be seen by the stream first.
    let (outcome, status) = tokio::select! {
        biased;
        reason = connection.closed() => (closed(&reason), 0),
        answer = on_stream => answer,
        // Nothing comes if the server ignores it: a request behind it is answered then.
        () = ignored(&connection) => (Outcome::GoesOn, 0),
    };
    if let Outcome::Fails(Resets(_)) = outcome {
        assert_eq!(connection.close_reason(), None, "{}", script.name);
    }
    (outcome, status)
}

/// Stops the stream of the other end that has this type.
async fn stop(connection: &Connection, kind: u8) {
    while let Ok(Some(mut stream)) = connection.accept_uni().await {
        if let Ok(Some(first)) = stream.read_chunk(1).await {
            if *first == [kind] {
                return stream.stop(0x10c);
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Returns what comes on a stream with a request.
async fn on_stream(recv: &mut RecvStream) -> (Outcome, u16) {
    match recv.read_to_end(10_000).await {
        Err(ReadError::Reset(code)) => (Outcome::Fails(Resets(code)), 0),
        Ok(bytes) => match status(bytes.into()) {
            // As good as the reset (RFC 9114 §4.1.2).
            Some(400) => (Outcome::Fails(Resets(MESSAGE_ERROR)), 400),
            status => (Outcome::GoesOn, status.unwrap_or_default()),
        },
        Err(_) => std::future::pending().await,
    }
}

/// Returns the status of a response.
fn status(bytes: Bytes) -> Option<u16> {
    let mut core = Core::new(Side::Client, Config::new(Settings::new()));
    let mut receiver = Receiver::response(hybriq::StreamId(0), &Method::POST);
    receiver.on_data(bytes);
    match receiver.poll(&mut core) {
        Ok(Received::Head(head)) => Some(head.status().as_u16()),
        _ => None,
    }
}

fn closed(reason: &ConnectionError) -> Outcome {
    match reason {
        ConnectionError::TimedOut => Outcome::FallsSilent,
        ConnectionError::Application { code, .. } => Outcome::Fails(Closes(*code)),
        reason => panic!("{reason}"),
    }
}

/// Returns once the server has answered a few requests after the script.
async fn ignored(connection: &Connection) {
    for _ in 0..3 {
        let Ok((mut send, mut recv)) = connection.open_bidi().await else {
            return std::future::pending().await;
        };
        let get = [1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
        if send.write_all(&get).await.is_err() {
            return std::future::pending().await;
        }
        send.finish();
        match recv.read_to_end(10_000).await {
            Ok(_) | Err(ReadError::Reset(_)) => {}
            Err(_) => return std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn broken_rules_are_answered_with_the_code_of_the_rfc() {
    let server = run(Router::new());
    let client = client(&Certificate::shared().der());
    let mut other = Http3::connect(server.address()).await;
    let scripts = scripts::all();
    let mut wrong = Vec::new();
    for script in &scripts {
        let (answer, _) = answer(&client, server.address(), script).await;
        if answer != script.expected {
            let line = format!(
                "{}: {answer:x?} instead of {:x?}",
                script.name, script.expected
            );
            wrong.push(line);
        }
        let echoed = other.ask(post("/", "fine")).await.unwrap();
        assert_eq!(echoed.body(), "fine", "{}", script.name);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let names: HashSet<_> = scripts.iter().map(|script| &script.name).collect();
    assert_eq!(names.len(), scripts.len(), "names that come twice");
    println!("{} scripts", scripts.len());
}
