//! The end of an endpoint without haste, and a change of its configuration, over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{net::SocketAddr, time::Duration};

use hybriq::{
    ConnectError, Connection, ConnectionError, Endpoint, EndpointError, Identity, KeyExchange,
    ServerConfig,
    error::Code,
    tls::{CertificateDer, PrivateKeyDer},
};
use tokio::net::UdpSocket;

use crate::endpoint_support::{Pair, client, client_config, server, server_config, soon};

/// Far more than the tests need.
const PATIENCE: Duration = Duration::from_secs(20);

async fn is_refused(client: &Endpoint, server: &Endpoint) -> bool {
    let outcome = soon(client.connect(server.local_address(), "localhost")).await;
    matches!(
        outcome,
        Err(ConnectError::Connection(ConnectionError::Transport {
            code: Code::CONNECTION_REFUSED,
            ..
        }))
    )
}

#[tokio::test]
async fn an_endpoint_that_stopped_accepting_refuses_clients_and_keeps_its_connections() {
    let pair = Pair::new("127.0.0.1:0").await;
    let waiting = client();
    let waits = waiting.connect(pair.server_endpoint.local_address(), "localhost");
    soon(async {
        while pair.server_endpoint.stats().waiting_incoming == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    pair.server_endpoint.stop_accepting();
    let refused = soon(waits).await.unwrap_err().to_string();
    assert!(refused.contains("CONNECTION_REFUSED"), "{refused}");
    assert!(is_refused(&client(), &pair.server_endpoint).await);
    assert!(soon(pair.server_endpoint.accept()).await.is_none());
    assert_eq!(pair.echo(b"still here").await, b"still here");
}

/// Serves until the endpoint drains: answers what was asked, and closes.
async fn serve(connection: Connection) {
    let work = async {
        while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
            tokio::io::copy(&mut recv, &mut send).await.unwrap();
            send.finish();
            let _ = send.acknowledged().await;
        }
    };
    tokio::select! {
        () = connection.draining() => connection.close(0, b"come back later"),
        () = work => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_endpoint_waits_for_its_applications() {
    for workers in [1, 4] {
        let server = Endpoint::builder().server(server_config()).workers(workers);
        let server = server.bind("127.0.0.1:0").unwrap();
        let accepting = tokio::spawn({
            let server = server.clone();
            async move {
                while let Some(incoming) = server.accept().await {
                    tokio::spawn(async move { serve(incoming.accept().await.unwrap()).await });
                }
            }
        });
        let mut clients = Vec::new();
        for _ in 0..8 {
            let client = client();
            let connection = soon(client.connect(server.local_address(), "localhost")).await;
            clients.push((client, connection.unwrap()));
        }
        let cut_off = soon(server.drain(PATIENCE, 9, b"too late")).await;
        assert_eq!(cut_off, 0);
        for (_, connection) in &clients {
            let reason = soon(connection.closed()).await;
            assert!(
                matches!(reason, ConnectionError::Application { code: 0, .. }),
                "{reason}"
            );
        }
        soon(accepting).await.unwrap();
        assert!(soon(server.accept()).await.is_none());
    }
}

#[tokio::test]
async fn connections_that_were_closed_before_are_not_cut_off() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.server.close(3, b"done");
    let drained = pair.server_endpoint.drain(Duration::ZERO, 9, b"too late");
    assert_eq!(soon(drained).await, 0);
}

#[tokio::test]
async fn connections_that_do_not_finish_are_closed_in_the_end() {
    let pair = Pair::new("127.0.0.1:0").await;
    let drained = pair
        .server_endpoint
        .drain(Duration::from_millis(20), 9, b"too late");
    assert_eq!(soon(drained).await, 1);
    let reason = soon(pair.client.closed()).await;
    assert!(
        matches!(reason, ConnectionError::Application { code: 9, .. }),
        "{reason}"
    );
    // The connection knows of it even after its end.
    soon(pair.server.draining()).await;
}

fn broken() -> ServerConfig {
    let key = PrivateKeyDer::Pkcs8(b"no key".to_vec().into());
    ServerConfig::new(Identity::from_der(
        vec![CertificateDer::from(b"none".to_vec())],
        key,
    ))
}

#[tokio::test]
async fn a_new_configuration_is_for_new_connections() {
    let client_config = client_config().alpn(["test", "next"]);
    let client = Endpoint::client(client_config).unwrap();
    let pair = Pair::of(server("127.0.0.1:0"), client).await;
    let server = pair.server_endpoint.clone();
    assert_eq!(pair.client.handshake().alpn.as_deref(), Some(&b"test"[..]));
    server
        .set_server_config(server_config().alpn(["next"]))
        .unwrap();
    for refused in [false, true] {
        if refused {
            let error = server.set_server_config(broken()).unwrap_err();
            assert!(matches!(error, EndpointError::Tls(_)), "{error}");
        }
        let next = Pair::of(server.clone(), pair.client_endpoint.clone()).await;
        assert_eq!(
            next.client.handshake().alpn.as_deref(),
            Some(&b"next"[..]),
            "a broken configuration changes nothing"
        );
    }
    assert_eq!(pair.echo(b"as before").await, b"as before");

    let error = pair.client_endpoint.set_server_config(server_config());
    assert!(matches!(error, Err(EndpointError::NoServerConfig)));
    server.close(0, b"");
    let error = server.set_server_config(server_config());
    assert!(matches!(error, Err(EndpointError::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_fails_while_the_configuration_changes() {
    let server = Endpoint::builder().server(server_config()).workers(4);
    let server = server.bind("127.0.0.1:0").unwrap();
    let accepting = tokio::spawn({
        let server = server.clone();
        async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(async move { serve(incoming.accept().await.unwrap()).await });
            }
        }
    });
    let client = client();
    for round in 0..10 {
        let connects = (0..10).map(|_| client.connect(server.local_address(), "localhost"));
        let connects: Vec<_> = connects.collect();
        server.set_server_config(server_config()).unwrap();
        for connecting in connects {
            let connection = soon(connecting).await.unwrap();
            assert!(connection.close_reason().is_none(), "{round}");
        }
    }
    assert_eq!(soon(server.drain(PATIENCE, 0, b"")).await, 0);
    soon(accepting).await.unwrap();
}

#[tokio::test]
async fn no_more_connections_than_the_operator_allows() {
    let builder = Endpoint::builder()
        .server(server_config())
        .max_connections(2);
    let server = builder.bind("127.0.0.1:0").unwrap();
    let (first, second) = (
        Pair::of(server.clone(), client()).await,
        Pair::of(server.clone(), client()).await,
    );
    assert!(is_refused(&client(), &server).await);
    // It proved its address first, and may have asked twice before it heard the answer.
    assert!(server.stats().refused_too_many >= 1);
    assert!(server.stats().retries_sent >= 1);
    first.client.close(0, b"");
    soon(async {
        while server.stats().connections > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let third = Pair::of(server.clone(), client()).await;
    assert_eq!(third.echo(b"in").await, b"in");
    assert_eq!(second.echo(b"still in").await, b"still in");
}

#[tokio::test]
async fn clients_that_wait_for_a_decision_count_as_connections() {
    let builder = Endpoint::builder()
        .server(server_config())
        .max_connections(2);
    let server = builder.bind("127.0.0.1:0").unwrap();
    let client = client();
    let address = server.local_address();
    let mut taken = Vec::new();
    let mut connecting = Vec::new();
    for _ in 0..2 {
        connecting.push(tokio::spawn(client.connect(address, "localhost")));
        taken.push(soon(server.accept()).await.unwrap());
    }
    assert!(is_refused(&client, &server).await);
    let accepted: Vec<_> = taken.into_iter().map(hybriq::Incoming::accept).collect();
    assert!(is_refused(&client, &server).await, "none is done yet");
    for (accepted, connecting) in accepted.into_iter().zip(connecting) {
        soon(accepted).await.unwrap();
        let connection = soon(connecting).await.unwrap().unwrap();
        connection.close(0, b"");
    }
    soon(async {
        while server.stats().connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // A client that is refused leaves its place.
    for _ in 0..5 {
        let refused = tokio::spawn(client.connect(address, "localhost"));
        soon(server.accept()).await.unwrap().refuse();
        assert!(soon(refused).await.unwrap().is_err());
    }
    assert!(server.stats().refused_too_many >= 2);
}

#[tokio::test]
async fn a_network_that_connects_too_fast_proves_its_addresses_and_is_refused() {
    let builder = Endpoint::builder()
        .server(server_config())
        .max_rate_per_network(1, 2);
    let server = builder.bind("127.0.0.1:0").unwrap();
    // Its hello fits into one datagram, which is answered by nothing before the Retry.
    let classical = || {
        let config = client_config().key_exchange(KeyExchange::OnlyClassical);
        Endpoint::client(config).unwrap()
    };
    let mut pairs = Vec::new();
    for retries in [0, 0, 1, 2] {
        pairs.push(Pair::of(server.clone(), classical()).await);
        assert!(server.stats().retries_sent <= retries);
    }
    // However slow this test runs, some of a hundred come within the same second.
    let mut refused = 0;
    for _ in 0..100 {
        let client = classical();
        let connecting = client.connect(server.local_address(), "localhost");
        let accepting = async {
            while let Some(incoming) = server.accept().await {
                let _ = incoming.accept().await;
            }
        };
        let outcome = tokio::select! {
            outcome = connecting => outcome,
            () = accepting => panic!("the endpoint is open"),
        };
        refused += u64::from(outcome.is_err());
    }
    assert!(refused > 0);
    let stats = server.stats();
    // A client that sends again is refused again.
    assert!(stats.refused_too_fast >= refused);
    assert!(stats.retries_sent >= refused);
}

/// Clients beyond half of the handshakes prove their address; beyond all of them they are refused.
#[tokio::test]
async fn no_more_handshakes_than_the_operator_allows() {
    for workers in [1, 2] {
        let builder = Endpoint::builder()
            .server(server_config())
            .workers(workers)
            .max_handshakes(4);
        let server = builder.bind("127.0.0.1:0").unwrap();
        // Nobody accepts them, so that they wait.
        let clients: Vec<_> = (0..8).map(|_| client()).collect();
        let mut waiting = Vec::new();
        for client in &clients {
            let before = server.stats();
            waiting.push(client.connect(server.local_address(), "localhost"));
            soon(async {
                loop {
                    let now = server.stats();
                    let changed = now.waiting_incoming > before.waiting_incoming
                        || now.refused_too_busy > before.refused_too_busy;
                    if changed {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        let stats = server.stats();
        assert_eq!(stats.waiting_incoming, 4, "{workers} workers");
        assert!(stats.retries_sent >= 2, "{workers} workers: {stats:?}");
        assert!(stats.refused_too_busy >= 4, "{workers} workers: {stats:?}");
        let mut served = Vec::new();
        for _ in 0..4 {
            let incoming = soon(server.accept()).await.unwrap();
            served.push(tokio::spawn(
                async move { incoming.accept().await.unwrap() },
            ));
        }
        let mut refused = 0;
        for connecting in waiting {
            refused += usize::from(soon(connecting).await.is_err());
        }
        assert_eq!(refused, 4, "{workers} workers");
        // There is room again.
        let client = client();
        let connect = client.connect(server.local_address(), "localhost");
        let accept = async { server.accept().await.unwrap().accept().await };
        let (connected, _accepted) = soon(async { tokio::join!(connect, accept) }).await;
        connected.unwrap();
    }
}

/// Passes the datagrams of a client on, the second one only after the first was answered.
async fn relay_one_by_one(server: SocketAddr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        let (mut client, mut held) = (None, Vec::new());
        let (mut sent, mut answered) = (0, false);
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let datagram = &buffer[..len];
            if from != server {
                client = Some(from);
                if sent > 0 && !answered {
                    held.push(datagram.to_vec());
                    continue;
                }
                sent += 1;
                socket.send_to(datagram, server).await.unwrap();
            } else if let Some(client) = client {
                answered = true;
                socket.send_to(datagram, client).await.unwrap();
                for datagram in held.drain(..) {
                    socket.send_to(&datagram, server).await.unwrap();
                }
            }
        }
    });
    address
}

/// Half of a ClientHello is not acknowledged where a proof will be asked for.
#[tokio::test]
async fn a_busy_server_asks_for_a_proof_before_it_answers_anything_else() {
    let builder = Endpoint::builder().server(server_config());
    let server = builder.max_handshakes(1).bind("127.0.0.1:0").unwrap();
    let address = relay_one_by_one(server.local_address()).await;
    let client = client();
    let connecting = client.connect(address, "localhost");
    let accept = async { server.accept().await.unwrap().accept().await };
    let (accepted, connected) = soon(async { tokio::join!(accept, connecting) }).await;
    accepted.unwrap();
    connected.unwrap();
    let stats = server.stats();
    assert!(stats.retries_sent >= 1);
    assert_eq!(stats.refused_too_busy, 0);
}

/// A client whose ClientHello was acknowledged in part would ignore a Retry, and is refused instead.
#[tokio::test]
async fn a_client_that_cannot_prove_its_address_any_more_is_counted_under_its_limit() {
    let builder = || Endpoint::builder().server(server_config());
    for (builder, busy, fast) in [(builder().max_rate_per_network(1, 1), 0, 1)] {
        let server = builder.bind("127.0.0.1:0").unwrap();
        // Uses the rate up.
        let first = Pair::of(server.clone(), client()).await;
        first.client.close(0, b"");
        let address = relay_one_by_one(server.local_address()).await;
        let client = client();
        let connecting = client.connect(address, "localhost");
        let error = soon(connecting).await.unwrap_err();
        assert!(
            matches!(
                error,
                ConnectError::Connection(ConnectionError::Transport {
                    code: Code::CONNECTION_REFUSED,
                    ..
                })
            ),
            "{error}"
        );
        let stats = server.stats();
        assert_eq!(
            (stats.refused_too_busy, stats.refused_too_fast),
            (busy, fast)
        );
        assert_eq!((stats.refused_too_many, stats.retries_sent), (0, 0));
    }
}

/// Passes the datagrams of one client on and nothing back, as if the client had forged its address.
async fn one_way(server: SocketAddr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            if from != server {
                socket.send_to(&buffer[..len], server).await.unwrap();
            }
        }
    });
    address
}

/// A client with a token of an earlier connection and one without both get in.
#[tokio::test]
async fn forged_addresses_at_the_limit_lock_nobody_out() {
    let builder = Endpoint::builder().server(server_config());
    let server = builder.max_connections(6).bind("127.0.0.1:0").unwrap();
    let address = server.local_address();
    let accepting = tokio::spawn({
        let server = server.clone();
        async move {
            while let Some(incoming) = server.accept().await {
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.accept().await {
                        connection.closed().await;
                    }
                });
            }
        }
    });
    let known = client();
    let first = soon(known.connect(address, "localhost")).await.unwrap();
    first.close(0, b"");
    soon(async {
        while server.stats().connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let flooding = client();
    let mut forged = Vec::new();
    for _ in 0..20 {
        forged.push(flooding.connect(one_way(address).await, "localhost"));
    }
    soon(async {
        while server.stats().retries_sent < 10 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let with_token = soon(known.connect(address, "localhost")).await.unwrap();
    let without = soon(client().connect(address, "localhost")).await.unwrap();
    assert!(with_token.close_reason().is_none() && without.close_reason().is_none());
    assert_eq!(server.stats().refused_too_many, 0);
    drop(forged);
    server.close(0, b"");
    soon(accepting).await.unwrap();
}
