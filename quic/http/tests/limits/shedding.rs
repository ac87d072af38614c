//! Whoever fills the budget of memory, others are served.

use std::{net::SocketAddr, time::Duration};

use axum::Router;
use hybriq::Endpoint;
use tokio::{net::UdpSocket, task::JoinSet};

use crate::{
    client::{Client, Outcome, VERSIONS, Version},
    serve,
    support::{Certificate, client_config, soon},
};

const BUDGET: u64 = 1 << 20;

/// Connects and asks. `None` if the server refuses.
async fn served(version: Version, address: SocketAddr) -> Option<Client> {
    let connecting = tokio::spawn(Client::connect(version, address));
    let mut client = connecting.await.ok()?;
    let outcome = client.ask("/").await;
    (outcome == Outcome::Answered(200)).then_some(client)
}

/// Clients that neither read nor heed GOAWAY make room for others even so.
#[tokio::test]
async fn idle_clients_that_ignore_the_end_make_room() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.memory = BUDGET;
            // Nothing else ends them.
            limits.header_time = Duration::from_secs(3600);
            limits.idle_time = Duration::from_secs(3600);
        });
        let mut clients = Vec::new();
        while let Some(client) = served(version, server.address()).await {
            clients.push(client);
        }
        assert!(!clients.is_empty(), "{version:?}");
        for _ in 0..8 {
            let newcomer = soon(async {
                loop {
                    while server.handle.memory() > BUDGET {
                        tokio::task::yield_now().await;
                    }
                    if let Some(client) = served(version, server.address()).await {
                        return client;
                    }
                }
            });
            clients.push(newcomer.await);
        }
    }
}

/// Returns true for a Retry of version 1 (RFC 9000 §17.2.5).
fn is_retry(datagram: &[u8]) -> bool {
    matches!(datagram, [first, 0, 0, 0, 1, ..] if first >> 4 == 0xf)
}

/// First packets from addresses that nobody has proved take half of the budget, and are told to prove theirs. Other
/// clients stay, and new ones are served, in each version.
#[tokio::test]
async fn forged_addresses_lock_nobody_out_of_the_budget() {
    let server = serve(Router::new(), |limits| limits.memory = BUDGET);
    let (handle, address) = (&server.handle, server.address());
    let mut honest = Vec::new();
    for version in VERSIONS {
        honest.push(soon(served(version, address)).await.unwrap());
    }
    let before = handle.memory();
    // Nobody passes the answers on.
    let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let forger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = receiver.local_addr().unwrap();
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let mut connecting = JoinSet::new();
    let (mut first, mut answer) = ([0; 2048], [0; 2048]);
    let flood = async {
        loop {
            let endpoint = endpoint.clone();
            connecting.spawn(async move { endpoint.connect(to, "localhost").await.is_ok() });
            loop {
                tokio::select! {
                    first_len = receiver.recv(&mut first) => {
                        let datagram = &first[..first_len.unwrap()];
                        forger.send_to(datagram, address).await.unwrap();
                    }
                    len = forger.recv(&mut answer) => {
                        if is_retry(&answer[..len.unwrap()]) {
                            return;
                        }
                        break;
                    }
                }
            }
        }
    };
    soon(flood).await;
    let forged = handle.census().entries("handshakes") as u64;
    assert!(forged > 5, "{forged}");
    assert!(
        handle.memory() >= before + forged * (11 << 10),
        "they count"
    );
    assert!(handle.memory() < BUDGET * 3 / 4, "{}", handle.memory());
    for version in VERSIONS {
        let client = soon(served(version, address)).await;
        assert!(client.is_some(), "{version:?}");
    }
    for (client, version) in honest.iter_mut().zip(VERSIONS) {
        assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
    }
}
