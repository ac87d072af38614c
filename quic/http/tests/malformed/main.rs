//! Answers that RFC 9114 and RFC 9204 demand of a server when a client breaks their rules: the
//! HTTP/3 cases of h3spec, and their kin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cases;
mod fields;
mod h3_alone;
#[path = "../support/mod.rs"]
mod support;

use axum::Router;
use cases::{
    CASES, Case, End,
    Expected::{self, Connection as Closes, Stream as Resets},
    MESSAGE_ERROR,
    On::{Bidi, Uni},
};
use hybriq::{Connection, ConnectionError, Endpoint};
use support::{Certificate, Http3, client_config, post, run, soon};

/// Sends a case on a connection of its own. Returns the server's answer.
async fn answer(client: &Endpoint, address: std::net::SocketAddr, case: &Case) -> Option<Expected> {
    let connection = soon(client.connect(address, "localhost")).await.unwrap();
    let mut open = Vec::new();
    for (direction, bytes) in case.streams {
        let (mut send, recv) = match direction {
            Bidi => {
                let (send, recv) = connection.open_bidi().await.unwrap();
                (send, Some(recv))
            }
            Uni => (connection.open_uni().await.unwrap(), None),
        };
        send.write_all(bytes).await.unwrap();
        open.push((send, recv));
    }
    let (send, recv) = open.last_mut().unwrap();
    match case.end {
        End::Open => {}
        End::Finish => send.finish(),
    }
    let on_stream = async {
        match recv {
            Some(recv) => match recv.read_to_end(10_000).await {
                Err(hybriq::ReadError::Reset(code)) => Some(Resets(code)),
                // HEADERS with `:status 400`, entry 67 of the static table.
                Ok(bytes) if is_bad_request(&bytes) => Some(Resets(MESSAGE_ERROR)),
                Ok(_) => None,
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    };
    // A connection error may be seen by the stream first.
    let answer = tokio::select! {
        biased;
        reason = connection.closed() => code(&reason),
        answer = on_stream => answer,
        // Nothing comes if the server ignores it: a request behind it is answered then.
        () = ignored(&connection) => None,
    };
    if let Some(Resets(_)) = answer {
        assert_eq!(connection.close_reason(), None, "{}", case.name);
    }
    answer
}

fn is_bad_request(response: &[u8]) -> bool {
    // HEADERS, and `:status` from the static table: index 67 does not fit into six bits.
    response.first() == Some(&1) && response.windows(2).any(|pair| pair == [0xff, 67 - 63])
}

fn code(reason: &ConnectionError) -> Option<Expected> {
    match reason {
        ConnectionError::Application { code, .. } => Some(Closes(*code)),
        _ => None,
    }
}

/// Returns once the server has answered a few requests after the case.
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
        if recv.read_to_end(10_000).await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[tokio::test]
async fn broken_rules_are_answered_with_the_code_of_the_rfc() {
    let server = run(Router::new());
    let client = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let mut other = Http3::connect(server.address()).await;
    let mut wrong = Vec::new();
    for case in CASES.iter().chain(&fields::cases()) {
        let answer = answer(&client, server.address(), case).await;
        if answer != Some(case.expected) {
            wrong.push(format!(
                "{}: {answer:x?} instead of {:x?}",
                case.name, case.expected
            ));
        }
        let echoed = other.ask(post("/", "fine")).await.unwrap();
        assert_eq!(echoed.body(), "fine", "{}", case.name);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
