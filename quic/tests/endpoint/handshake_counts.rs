//! Counts of handshakes: each is counted once, at each end, whatever happens to its packets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{net::SocketAddr, time::Duration};

use hybriq::{
    ClientConfig, Endpoint, Group, KeyExchange, ServerConfig, TransportConfig,
    error::By,
    fleet::AddressValidation,
    memory::Continuity,
    stats::{HandshakeCount, HandshakeKind, HandshakeOutcome, RefusalReason},
    tls::{Lineage, Side},
    transport::Version,
};
use tokio::net::UdpSocket;

use crate::endpoint_support::{Pair, client_config, server_config, soon};

/// Faults of a network.
#[derive(Clone, Copy)]
struct Faults {
    /// One in this many datagrams is lost.
    lost: usize,
    /// Copies of each datagram that arrives.
    copies: usize,
}

/// Passes datagrams on between one client and a server.
async fn faulty(server: SocketAddr, faults: Faults) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        let (mut client, mut number) = (None, 0);
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            if from != server {
                client = Some(from);
            }
            number += 1;
            let to = if from == server { client } else { Some(server) };
            let Some(to) = to.filter(|_| number % faults.lost != 0) else {
                continue;
            };
            for _ in 0..faults.copies {
                let _ = socket.send_to(&buffer[..len], to).await;
            }
        }
    });
    address
}

/// Number of handshakes that each test does at the same time.
const CLIENTS: usize = 8;

/// Connects many clients over a faulty network, and returns the counts of both ends.
async fn connect_all(
    server: &Endpoint,
    client: ClientConfig,
    faults: Faults,
) -> [Vec<HandshakeCount>; 2] {
    let from = Endpoint::client(client).unwrap();
    let accepting = server.clone();
    let accepted = tokio::spawn(async move {
        let mut outcomes = Vec::new();
        while let Some(incoming) = accepting.accept().await {
            // One after the other would let the last wait for the first.
            outcomes.push(tokio::spawn(async move { incoming.accept().await }));
        }
        outcomes
    });
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let through = faulty(server.local_address(), faults).await;
        let connecting = from.connect(through, "localhost");
        connections.push(tokio::spawn(connecting));
    }
    let mut kept = Vec::new();
    for connection in connections {
        kept.push(soon(connection).await.unwrap());
    }
    server.stop_accepting();
    let mut held = Vec::new();
    for outcome in soon(accepted).await.unwrap() {
        held.push(soon(outcome).await.unwrap());
    }
    let counts = [from.handshakes(), server.handshakes()];
    println!("{counts:?}");
    counts
}

fn total(counts: &[HandshakeCount]) -> u64 {
    counts.iter().map(|it| it.count).sum()
}

fn bind(config: ServerConfig) -> Endpoint {
    Endpoint::server("127.0.0.1:0", config).unwrap()
}

#[tokio::test]
async fn copies_and_losses_count_once() {
    let completed = HandshakeOutcome::Completed {
        group: Group::X25519MLKEM768,
        kind: HandshakeKind::Full,
        hello_retry: false,
        lineage: Lineage::PostQuantum,
    };
    for faults in [
        Faults {
            lost: usize::MAX,
            copies: 3,
        },
        Faults { lost: 5, copies: 2 },
    ] {
        let server = bind(server_config());
        let config = client_config().without_resumption();
        let [client, server] = connect_all(&server, config, faults).await;
        for (counts, role) in [(client, Side::Client), (server, Side::Server)] {
            let [count] = counts[..] else {
                panic!("{counts:?}");
            };
            assert_eq!((count.role, count.outcome), (role, completed));
            assert_eq!(count.count, CLIENTS as u64);
            assert!(count.outcome.is_post_quantum());
        }
    }
}

#[tokio::test]
async fn a_retry_and_another_version_and_another_share_count_once() {
    let endpoint = Endpoint::builder()
        .server(server_config().transport(TransportConfig::new().versions([Version::V1])))
        .address_validation(AddressValidation::Always)
        .bind("127.0.0.1:0")
        .unwrap();
    let groups = vec![Group::X25519, Group::X25519MLKEM768];
    let client = client_config()
        .without_resumption()
        .key_exchange(KeyExchange::Exactly(groups))
        .transport(TransportConfig::new().first_version(Version::V2));
    let faults = Faults {
        lost: usize::MAX,
        copies: 2,
    };
    for counts in connect_all(&endpoint, client, faults).await {
        let [count] = counts[..] else {
            panic!("{counts:?}");
        };
        assert_eq!(count.count, CLIENTS as u64);
        let HandshakeOutcome::Completed { hello_retry, .. } = count.outcome else {
            panic!("{count:?}");
        };
        assert!(hello_retry);
    }
}

#[tokio::test]
async fn a_refused_handshake_counts_once() {
    for policy in [
        // Refused before there is a connection, and by the library.
        KeyExchange::RequirePostQuantum,
        KeyExchange::Exactly(vec![Group::SECP384R1]),
    ] {
        let server = bind(server_config().key_exchange(policy));
        let client = client_config().key_exchange(KeyExchange::Exactly(vec![Group::X25519]));
        let faults = Faults {
            lost: usize::MAX,
            copies: 2,
        };
        let both = connect_all(&server, client, faults).await;
        for (counts, by) in both.into_iter().zip([By::Peer, By::Local]) {
            let [count] = counts[..] else {
                panic!("{counts:?}");
            };
            let reason = RefusalReason::KeyExchange;
            assert_eq!(count.outcome, HandshakeOutcome::Refused { by, reason });
            assert_eq!(count.count, CLIENTS as u64);
        }
    }
}

#[tokio::test]
async fn a_downgrade_that_is_refused_counts_once() {
    let server = bind(server_config());
    let config = client_config()
        .without_resumption()
        .continuity(Continuity::Refuse);
    let client = Endpoint::client(config).unwrap();
    let _first = Pair::of(server.clone(), client.clone()).await;
    let classical = server_config().key_exchange(KeyExchange::OnlyClassical);
    server.set_server_config(classical).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (refused, heard) = soon(async { tokio::join!(connecting, accepting) }).await;
    refused.unwrap_err();
    let heard = heard.unwrap_err().to_string();
    assert!(
        heard.ends_with("give it a post-quantum group again)"),
        "{heard}"
    );
    for (endpoint, by, reason) in [
        (client, By::Local, RefusalReason::Downgrade),
        (server, By::Peer, RefusalReason::Parameters),
    ] {
        let counts = endpoint.handshakes();
        assert_eq!(total(&counts), 2, "{counts:?}");
        let refused = HandshakeOutcome::Refused { by, reason };
        assert!(counts.iter().any(|it| it.outcome == refused), "{counts:?}");
    }
}

#[tokio::test]
async fn a_handshake_without_an_answer_counts_once() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let impatient = TransportConfig::new().handshake_timeout(Duration::from_millis(100));
    let client = Endpoint::client(client_config().transport(impatient)).unwrap();
    let connecting = client.connect(silent.local_addr().unwrap(), "localhost");
    soon(connecting).await.unwrap_err();
    let counts = client.handshakes();
    assert_eq!(
        (total(&counts), counts[0].outcome),
        (1, HandshakeOutcome::Failed)
    );
}

#[tokio::test]
async fn a_handshake_that_nobody_waits_for_counts_once() {
    let server = bind(server_config());
    let client = Endpoint::client(client_config()).unwrap();
    drop(client.connect(server.local_address(), "localhost"));
    let kept = Pair::of(server.clone(), client.clone()).await;
    client.close(0, b"");
    server.close(0, b"");
    soon(client.idle()).await;
    drop(kept);
    let counts = client.handshakes();
    assert!((1..=2).contains(&total(&counts)), "{counts:?}");
}

#[tokio::test]
async fn a_session_is_counted_with_its_lineage() {
    let server = bind(server_config().key_exchange(KeyExchange::OnlyClassical));
    let client = Endpoint::client(client_config()).unwrap();
    let pair = Pair::of(server.clone(), client.clone()).await;
    // The ticket comes before the answer.
    let serve = async {
        let mut send = pair.server.open_uni().await.unwrap();
        send.finish();
    };
    let ((), stream) = soon(async { tokio::join!(serve, pair.client.accept_uni()) }).await;
    stream.unwrap().unwrap();
    let _second = Pair::of(server.clone(), client.clone()).await;
    for endpoint in [server, client] {
        let counts = endpoint.handshakes();
        let kinds = counts.iter().map(|it| match it.outcome {
            HandshakeOutcome::Completed { kind, lineage, .. } => {
                assert_eq!(lineage, Lineage::Classical);
                assert!(!it.outcome.is_post_quantum());
                (kind, it.count)
            }
            other => panic!("{other:?}"),
        });
        let expected = [(HandshakeKind::Full, 1), (HandshakeKind::Resumed, 1)];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }
}
