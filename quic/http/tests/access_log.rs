//! The access log of requests over each version of HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use axum::{Router, routing::any};
use hybriq_http::{AccessEntry, AccessLog, Peer};
use support::{Http3, ask_over_tcp, get, post, run, soon};
use tokio::sync::mpsc;

/// Returns a router whose requests are told, and where they are told.
fn logged(router: Router) -> (Router, mpsc::UnboundedReceiver<AccessEntry>) {
    let (told, entries) = mpsc::unbounded_channel();
    let log = AccessLog::new(move |entry: &AccessEntry| drop(told.send(entry.clone())));
    (router.layer(log), entries)
}

fn peer(entry: &AccessEntry) -> &Peer {
    entry.peer.as_ref().unwrap()
}

#[tokio::test]
async fn a_line_names_all_facts_of_the_connection() {
    let (router, mut entries) = logged(Router::new().route("/hello", any(async || "hello")));
    let server = run(router);
    let mut client = Http3::connect(server.address()).await;
    client.ask(get("/hello?secret")).await.unwrap();
    let entry = soon(entries.recv()).await.unwrap();
    let address = client.endpoint.local_address();
    assert_eq!(peer(&entry).address.port(), address.port());
    let line = entry.to_string();
    let (_, line) = line.split_once(' ').unwrap();
    let micros = entry.time.as_micros();
    assert_eq!(
        line,
        format!(
            "version=HTTP/3.0 method=GET path=\"/hello\" status=200 micros={micros} \
             group=X25519MLKEM768 hrr=false lineage=post-quantum resumed=false early=false \
             suite={} sni=\"localhost\" alpn=\"h3\"",
            peer(&entry).tls.suite.unwrap()
        )
    );
}

#[tokio::test]
async fn requests_over_tcp_are_told_too() {
    let (router, mut entries) = logged(Router::new().route("/in", any(async || "hello")));
    let server = run(router);
    for (alpn, version) in [("h2", "HTTP/2.0"), ("http/1.1", "HTTP/1.1")] {
        let asked = ask_over_tcp(server.address(), alpn, None, post("/in", "x"));
        asked.await.unwrap();
        let entry = soon(entries.recv()).await.unwrap();
        assert_eq!(entry.status.unwrap(), 200);
        let line = entry.to_string();
        let begin = format!("version={version} method=POST path=\"/in\" status=200 ");
        assert!(line.contains(&begin), "{line}");
        assert!(
            line.ends_with(&format!("sni=\"localhost\" alpn=\"{alpn}\"")),
            "{line}"
        );
        assert!(line.contains(" group=X25519"), "{line}");
    }
}

#[tokio::test]
async fn a_request_that_the_client_gives_up_is_told_without_a_status() {
    let never = any(async || std::future::pending::<()>().await);
    let (router, mut entries) = logged(Router::new().route("/never", never));
    let server = run(router);
    let mut client = Http3::connect(server.address()).await;
    let request = http::Request::get("https://localhost/never")
        .body(())
        .unwrap();
    let mut stream = soon(client.requests.send_request(request)).await.unwrap();
    soon(stream.finish()).await.unwrap();
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    let entry = soon(entries.recv()).await.unwrap();
    assert_eq!(entry.status, None);
    assert!(
        entry.to_string().contains("path=\"/never\" status=- "),
        "{entry}"
    );
}
