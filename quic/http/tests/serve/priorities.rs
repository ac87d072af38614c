//! The order of responses (RFC 9218).

use std::{future::poll_fn, sync::Arc};

use axum::{Router, body::Bytes, response::AppendHeaders, routing::any};
use http::Request;
use hybriq::{Endpoint, RecvStream, StreamId, tls::Side};
use hybriq_h3::{Config, Connection, Settings};
use hybriq_http::Server;
use tokio::sync::Barrier;

use crate::support::{Certificate, client_config, run_with, soon};

/// PRIORITY_UPDATE for the second request, with the priority `u=0`.
const UPDATE: &[u8] = b"\x80\x0f\x07\0\x04\x04u=0";

async fn read(stream: &mut RecvStream) {
    let read = soon(stream.read_to_end(1 << 20)).await.unwrap();
    assert!(read.len() > 400_000);
}

/// When a PRIORITY_UPDATE comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Update {
    None,
    Early,
    /// After the requests, and before their responses.
    Late,
}

/// Waits until the peer has received everything on a stream.
async fn acknowledged(connection: &hybriq::Connection, stream: StreamId) {
    let is_taken = poll_fn(|cx| connection.poll_stream_room(stream, usize::MAX, cx));
    // A stream that is over has been received, too.
    let _ = soon(is_taken).await;
}

/// The first two responses begin together. The more urgent one overtakes the other, by its field, the lines of which are
/// one (RFC 9110 §5.3), or by a PRIORITY_UPDATE, whether it comes before the request (§7) or after. A field of the response
/// changes what it names alone (§8).
#[tokio::test]
async fn urgent_responses_are_sent_first() {
    let plain = [&["u=7"][..], &["u=0"]];
    let updated = [&["u=3"][..], &["u=7"]];
    let joined = [&["u=7"][..], &["u=7", "u=0"]];
    for (fields, update, response, early) in [
        (plain, Update::None, None, false),
        (joined, Update::None, None, false),
        (plain, Update::None, Some("i"), false),
        (updated, Update::Early, None, false),
        (updated, Update::Early, None, true),
        (updated, Update::Late, None, false),
        (updated, Update::Late, Some("i"), false),
    ] {
        let all = Arc::new(Barrier::new(3));
        let begin = all.clone();
        let answer = any(async move || {
            all.wait().await;
            let priority = response.map(|priority| [("priority", priority)]);
            (
                AppendHeaders(priority.into_iter().flatten()),
                Bytes::from(vec![1; 400_000]),
            )
        });
        let config = Certificate::shared().config();
        let config = if early {
            config.accept_early_data()
        } else {
            config
        };
        let router = Router::new().route("/long", answer);
        let router = router.route("/begin", any(async move || _ = begin.wait().await));
        let server = run_with(Server::builder(), config, router);
        let client = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let connecting = client.connect(server.address(), "localhost");
        let connection = soon(connecting).await.unwrap();
        let mut core = Connection::new(Side::Client, Config::new(Settings::new()));
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        if update == Update::Early {
            control.write_all(UPDATE).await.unwrap();
        }
        let mut responses = Vec::new();
        for (path, lines) in ["long", "long", "begin"]
            .into_iter()
            .zip([fields[0], fields[1], &[]])
        {
            let (mut send, recv) = connection.open_bidi().await.unwrap();
            if path == "begin" && update == Update::Late {
                // The server reads in the order in which data arrives.
                acknowledged(&connection, StreamId(4)).await;
                control.write_all(UPDATE).await.unwrap();
                acknowledged(&connection, control.id()).await;
            }
            let mut request = Request::get(format!("https://localhost/{path}"));
            for line in lines {
                request = request.header("priority", *line);
            }
            let mut bytes = Vec::new();
            core.write_request(send.id(), &request.body(()).unwrap(), &mut bytes)
                .unwrap();
            send.write_all(&bytes).await.unwrap();
            send.finish();
            responses.push(recv);
        }
        let [first, second, _] = &mut responses[..] else {
            unreachable!()
        };
        let overtaken = tokio::select! {
            biased;
            () = read(first) => false,
            () = read(second) => true,
        };
        assert!(overtaken, "{fields:?}, {update:?}, {response:?}, {early}");
    }
}
