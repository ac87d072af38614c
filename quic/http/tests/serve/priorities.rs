//! The order of responses (RFC 9218).

use std::sync::Arc;

use axum::{Router, body::Bytes, response::AppendHeaders, routing::any};
use http::Request;
use hybriq::{Endpoint, RecvStream, tls::Side};
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

/// The first two responses begin together. The more urgent one overtakes the other, by its field, or by a
/// PRIORITY_UPDATE that came before the request (§7). A field of the response changes what it names alone (§8).
#[tokio::test]
async fn urgent_responses_are_sent_first() {
    for (fields, update, response, early) in [
        (["u=7", "u=0"], &[][..], None, false),
        (["u=7", "u=0"], &[], Some("i"), false),
        (["u=3", "u=7"], UPDATE, None, false),
        (["u=3", "u=7"], UPDATE, None, true),
    ] {
        let both = Arc::new(Barrier::new(2));
        let answer = any(async move || {
            both.wait().await;
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
        let server = run_with(Server::builder(), config, router);
        let client = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let connecting = client.connect(server.address(), "localhost");
        let connection = soon(connecting).await.unwrap();
        let mut core = Connection::new(Side::Client, Config::new(Settings::new()));
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&[0, 4, 0]).await.unwrap();
        control.write_all(update).await.unwrap();
        let mut responses = Vec::new();
        for field in fields {
            let (mut send, recv) = connection.open_bidi().await.unwrap();
            let request = Request::get("https://localhost/long").header("priority", field);
            let mut bytes = Vec::new();
            core.write_request(send.id(), &request.body(()).unwrap(), &mut bytes)
                .unwrap();
            send.write_all(&bytes).await.unwrap();
            send.finish();
            responses.push(recv);
        }
        let [first, second] = &mut responses[..] else {
            unreachable!()
        };
        let overtaken = tokio::select! {
            biased;
            () = read(first) => false,
            () = read(second) => true,
        };
        assert!(overtaken, "{fields:?}, {early}");
    }
}
