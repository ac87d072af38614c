//! No request fails while the certificate is reloaded, nor while the server drains.
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

use axum::{Router, routing::get};
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, ClientError, Http3, Server};
use support::{Certificate, run_with};
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
