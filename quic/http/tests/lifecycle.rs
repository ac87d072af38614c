//! No request fails while the certificate is reloaded, while the server drains, nor while it hands over to a successor.
//!
//! CI makes some thousand requests. For more, set `HYBRIQ_REQUESTS`:
//!
//! ```sh
//! HYBRIQ_REQUESTS=100000 cargo test --release -p hybriq-http --test lifecycle -- --nocapture
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Bytes, routing::get};
use http_body_util::{BodyExt as _, Empty};
use hybriq::{ClientConfig, Trust, fleet::FleetKeys};
use hybriq_http::{Client, ClientError, Http3, Server};
use hyper_util::rt::TokioIo;
use support::{Certificate, connect_tls, run_with, soon};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Number of reloads.
const RELOADS: usize = 10;

/// Number of clients at once. Every third speaks HTTP/2.
const CLIENTS: usize = 12;

/// Number of requests after which a client connects anew, and sees the certificate of that time.
const PER_CONNECTION: usize = 25;

/// Number of requests in CI.
const REQUESTS: usize = 3000;

fn client(number: usize, server: SocketAddr, trusted: &[Certificate]) -> Client {
    let http3 = if number % 3 == 2 {
        Http3::Off
    } else {
        Http3::Only
    };
    let trust = Trust::roots_der(trusted.iter().map(Certificate::der));
    Client::builder()
        .http3(http3)
        .resolve("localhost", [server])
        .build(ClientConfig::new().trust(trust))
        .unwrap()
}

async fn ask(client: &Client, server: SocketAddr, path: &str) -> Result<usize, ClientError> {
    let uri = format!("https://localhost:{}{path}", server.port());
    let response = client.get(uri).await?;
    assert_eq!(response.status(), 200);
    let body = response.into_body().bytes(1 << 20).await;
    Ok(body.map_or(0, |body| body.len()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_the_certificate_is_reloaded() {
    let most = std::env::var("HYBRIQ_REQUESTS").map_or(REQUESTS, |most| most.parse().unwrap());
    let certificates: Vec<_> = (0..=RELOADS).map(|_| Certificate::new()).collect();
    let router = Router::new().route("/", get(async || "x".repeat(100)));
    let server = run_with(Server::builder(), certificates[0].config(), router);
    let address = server.address();
    let begun = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (begun, certificates) = (begun.clone(), certificates.clone());
        clients.spawn(async move {
            let mut failed = Vec::new();
            loop {
                let client = client(number, address, &certificates);
                for _ in 0..PER_CONNECTION {
                    if begun.fetch_add(1, Ordering::Relaxed) >= most {
                        return failed;
                    }
                    match ask(&client, address, "/").await {
                        Ok(len) => assert_eq!(len, 100),
                        Err(error) => failed.push(error.to_string()),
                    }
                }
            }
        });
    }
    for (number, certificate) in certificates.iter().enumerate().skip(1) {
        while begun.load(Ordering::Relaxed) < most / (RELOADS + 1) * number {
            tokio::task::yield_now().await;
        }
        server.handle.reload(certificate.config()).unwrap();
    }
    let failed: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    println!("{} of {most} requests failed", failed.len());
    assert!(failed.is_empty(), "{failed:?}");
    // The last certificate is in use: who trusts no other is served.
    let last = client(0, address, &certificates[RELOADS..]);
    assert_eq!(ask(&last, address, "/").await.unwrap(), 100);
}

/// Requests that are under way when the server begins to drain are answered, however many and slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_the_server_drains() {
    const UNDER_WAY: usize = 200;
    let (drains, draining) = watch::channel(false);
    let waiting = Arc::new(Semaphore::new(0));
    let came = waiting.clone();
    let slow = async move || {
        came.add_permits(1);
        let _ = draining.clone().wait_for(|draining| *draining).await;
        "x".repeat(100_000)
    };
    let router = Router::new().route("/slow", get(slow));
    let certificate = Certificate::shared();
    let server = run_with(Server::builder(), certificate.config(), router);
    let address = server.address();
    let mut asking = JoinSet::new();
    for number in 0..4 {
        let client = client(number, address, std::slice::from_ref(&certificate));
        for _ in 0..UNDER_WAY / 4 {
            let client = client.clone();
            asking.spawn(async move { ask(&client, address, "/slow").await.unwrap() });
        }
    }
    let all = waiting.acquire_many(UNDER_WAY as u32).await;
    drop(all.unwrap());
    let answers = async {
        // The server tells its clients first.
        tokio::task::yield_now().await;
        drains.send_replace(true);
        asking.join_all().await
    };
    let shutdown = server.handle.shutdown(Duration::from_secs(5));
    let ((), answers) = tokio::join!(shutdown, answers);
    assert_eq!(answers, [100_000; UNDER_WAY]);
    server.serving.await.unwrap();
}

/// A client of HTTP/1.1 that keeps its connection until the server closes it after a response.
#[derive(Default)]
struct OneByOne(Option<hyper::client::conn::http1::SendRequest<Empty<Bytes>>>);

impl OneByOne {
    async fn ask(&mut self, server: SocketAddr, path: &str) -> Result<usize, String> {
        let mut send = if let Some(send) = self.0.take() {
            send
        } else {
            let stream = connect_tls(server, "http/1.1").await;
            let stream = TokioIo::new(stream.map_err(|error| error.to_string())?);
            let shake = hyper::client::conn::http1::handshake(stream).await;
            let (send, connection) = shake.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            send
        };
        let request = http::Request::get(path).header("host", "localhost");
        let response = send.send_request(request.body(Empty::new()).unwrap()).await;
        let response = response.map_err(|error| error.to_string())?;
        let is_last = response.headers().contains_key("connection");
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if !is_last {
            self.0 = Some(send);
        }
        Ok(body.len())
    }
}

/// Requests over each version go on while one server hands over to the next, several times. The number is
/// `HYBRIQ_REQUESTS`, for each version:
///
/// ```sh
/// HYBRIQ_REQUESTS=10000 cargo test --release -p hybriq-http --test lifecycle -- --nocapture hands_over
/// ```
#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_a_server_hands_over() {
    const HANDOVERS: usize = 3;
    let most = std::env::var("HYBRIQ_REQUESTS").map_or(300, |most| most.parse().unwrap());
    let folder = std::env::temp_dir().join(format!("hybriq-http-restart-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let keys = FleetKeys::from_secret(&[7; 32]).unwrap();
    let start = async |generation: usize| {
        let builder = Server::builder().fleet_keys(&keys);
        let config = Certificate::shared().config().tickets(keys.tickets());
        let server = builder.take_over_or_bind(&path, "127.0.0.1:0", config);
        let server = soon(Box::pin(server)).await.unwrap();
        assert_eq!(
            usize::from(server.handle().endpoint().generation()),
            generation
        );
        let answers = Arc::new(AtomicUsize::new(0));
        let counted = answers.clone();
        let answer = async move || {
            counted.fetch_add(1, Ordering::Relaxed);
            "x".repeat(1000)
        };
        let handle = server.handle();
        let serving = tokio::spawn(server.serve(Router::new().route("/", get(answer))));
        (handle, serving, answers)
    };
    let mut current = Box::pin(start(0)).await;
    let address = current.0.local_address();
    let certificate = Certificate::shared();
    let counts = [0; 3].map(|_| Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    let (ends, over) = watch::channel(false);
    for number in 0..6 {
        let over = over.clone();
        let count = counts[number % 3].clone();
        // 1 and 2: HTTP/3 and HTTP/2.
        let client = client(number, address, std::slice::from_ref(&certificate));
        let mut one_by_one = OneByOne::default();
        clients.spawn(async move {
            let mut failed = Vec::new();
            while count.fetch_add(1, Ordering::Relaxed) < most || !*over.borrow() {
                let asked = if number % 3 == 0 {
                    soon(one_by_one.ask(address, "/")).await
                } else {
                    let asked = soon(ask(&client, address, "/")).await;
                    asked.map_err(|error| error.to_string())
                };
                match asked {
                    Ok(len) => assert_eq!(len, 1000),
                    Err(error) => failed.push(format!("{}: {error}", number % 3)),
                }
            }
            failed
        });
    }
    let least = || {
        counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .min()
    };
    for round in 1..=HANDOVERS {
        while least().unwrap() < most / (HANDOVERS + 1) * round {
            tokio::task::yield_now().await;
        }
        let old = current.0.clone();
        let waiting = tokio::spawn({
            let (old, path) = (old.clone(), path.clone());
            async move { old.hand_over(path).await }
        });
        while tokio::net::UnixStream::connect(&path).await.is_err() {
            tokio::task::yield_now().await;
        }
        let next = Box::pin(start(round)).await;
        soon(waiting).await.unwrap().unwrap();
        assert_eq!(next.0.local_address(), address);
        let (_, serving, answers) = std::mem::replace(&mut current, next);
        // Its clients leave although they go on asking.
        soon(old.shutdown(Duration::from_secs(20))).await;
        serving.await.unwrap().unwrap();
        assert!(answers.load(Ordering::Relaxed) > 0);
    }
    ends.send_replace(true);
    let failed: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    let asked = counts.iter().map(|count| count.load(Ordering::Relaxed));
    println!(
        "{} of {} requests failed",
        failed.len(),
        asked.sum::<usize>()
    );
    assert!(failed.is_empty(), "{failed:?}");
    // The last server has the listener alone.
    assert_eq!(OneByOne::default().ask(address, "/").await.unwrap(), 1000);
    current.0.shutdown(Duration::ZERO).await;
    soon(current.1).await.unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
