//! Connections over real loopback sockets: families, providers, sizes, runtimes.

use hybriq::{
    Backend, ConnectionError, Endpoint, Group, TransportConfig, stats::EcnState, tls::Side,
    transport::Congestion,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
};

use crate::endpoint_support::{Pair, client_config, server, server_config, soon};

/// Bytes that differ from place to place, so that a lost or repeated piece shows.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

#[tokio::test]
async fn an_echo_comes_back_over_ipv4() {
    let pair = Pair::new("127.0.0.1:0").await;
    assert!(pair.client.peer_address().is_ipv4());
    assert_eq!(pair.echo(b"hello").await, b"hello");
}

#[tokio::test]
async fn an_echo_comes_back_over_ipv6() {
    let pair = Pair::new("[::1]:0").await;
    assert!(pair.server.peer_address().is_ipv6());
    assert_eq!(pair.echo(b"hello").await, b"hello");
}

#[tokio::test]
async fn a_dual_stack_server_sees_ipv4_clients_as_such() {
    let pair = Pair::new("[::]:0").await;
    assert!(
        pair.server.peer_address().is_ipv4(),
        "{}",
        pair.server.peer_address()
    );
    assert_eq!(pair.echo(b"hello").await, b"hello");
}

#[tokio::test]
async fn marks_reach_the_other_end_of_every_family() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
        for (congestion, is_l4s) in [(Congestion::Cubic, false), (Congestion::Prague, true)] {
            let transport = TransportConfig::new().congestion(congestion);
            let pair = Pair::of(
                Endpoint::server(address, server_config().transport(transport.clone())).unwrap(),
                Endpoint::client(client_config().transport(transport)).unwrap(),
            )
            .await;
            let data = pattern(300_000);
            assert_eq!(pair.echo(&data).await, data);
            for connection in [&pair.client, &pair.server] {
                let (stats, path) = (connection.stats(), connection.path_stats());
                assert_eq!(path.ecn, EcnState::Capable, "{address}: {stats:?}");
                let (sent, received) = (stats.ecn_sent, stats.ecn_received);
                for (counts, what) in [(sent, "sent"), (received, "received")] {
                    let (marked, other) = if is_l4s {
                        (counts.ect1, counts.ect0)
                    } else {
                        (counts.ect0, counts.ect1)
                    };
                    assert!(
                        marked > 100 && other == 0,
                        "{what} over {address}: {counts:?}"
                    );
                }
                assert!(path.delivery_rate > Some(0) && path.pacing_rate > Some(0));
            }
        }
    }
}

#[tokio::test]
async fn both_ends_report_the_same_post_quantum_handshake() {
    let pair = Pair::new("127.0.0.1:0").await;
    for connection in [&pair.client, &pair.server] {
        let handshake = connection.handshake();
        assert_eq!(handshake.key_exchange.group, Group::X25519MLKEM768);
        assert_eq!(handshake.key_exchange.to_string(), "X25519MLKEM768");
        assert!(!handshake.key_exchange.hello_retry);
        assert_eq!(handshake.alpn.as_deref(), Some(&b"test"[..]));
    }
    assert_eq!(
        (pair.client.side(), pair.server.side()),
        (Side::Client, Side::Server)
    );
    assert_eq!(pair.client.peer_certificates().len(), 1);
    assert_eq!(pair.server.peer_certificates().len(), 0);
}

#[tokio::test]
async fn every_provider_talks_to_every_provider() {
    for server in Backend::ALL {
        for client in Backend::ALL {
            let pair = Pair::of(
                Endpoint::server("127.0.0.1:0", server_config().tls(server)).unwrap(),
                Endpoint::client(client_config().tls(client)).unwrap(),
            )
            .await;
            assert_eq!(
                pair.client.handshake().key_exchange.group,
                Group::X25519MLKEM768
            );
            assert_eq!(
                pair.echo(b"crossed").await,
                b"crossed",
                "{client:?} to {server:?}"
            );
        }
    }
}

#[tokio::test]
async fn megabytes_come_back_whole() {
    let pair = Pair::new("127.0.0.1:0").await;
    let message = pattern(8 << 20);
    assert!(pair.echo(&message).await == message);
}

#[tokio::test]
async fn megabytes_come_back_whole_without_gso() {
    let server = Endpoint::builder().server(server_config()).without_gso();
    let client = Endpoint::builder().client(client_config()).without_gso();
    let pair = Pair::of(
        server.bind("127.0.0.1:0").unwrap(),
        client.bind("127.0.0.1:0").unwrap(),
    )
    .await;
    let message = pattern(2 << 20);
    assert!(pair.echo(&message).await == message);
    let stats = pair.client_endpoint.stats();
    assert_eq!(stats.send_calls, stats.datagrams_sent);
}

#[tokio::test]
async fn trains_of_datagrams_save_calls_to_the_system() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.echo(&pattern(4 << 20)).await;
    let stats = pair.client_endpoint.stats();
    assert!(stats.send_calls * 4 < stats.datagrams_sent, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_streams_share_a_connection_on_many_threads() {
    const STREAMS: usize = 300;
    let pair = Pair::new("127.0.0.1:0").await;
    let server = pair.server.clone();
    let serve = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        while let Some((mut send, mut recv)) = server.accept_bidi().await.unwrap() {
            tasks.spawn(async move {
                tokio::io::copy(&mut recv, &mut send).await.unwrap();
                send.acknowledged().await.unwrap();
            });
        }
    });
    let mut tasks = JoinSet::new();
    for number in 0..STREAMS {
        let client = pair.client.clone();
        tasks.spawn(async move {
            let message = pattern(1 + number * 97);
            let (mut send, mut recv) = client.open_bidi().await.unwrap();
            send.write_all(&message).await.unwrap();
            send.finish();
            assert!(recv.read_to_end(1 << 20).await.unwrap() == message);
        });
    }
    soon(async { while tasks.join_next().await.transpose().unwrap().is_some() {} }).await;
    pair.client.close(0, b"done");
    soon(serve).await.unwrap();
}

#[tokio::test]
async fn one_endpoint_accepts_and_connects_on_one_socket() {
    let both = || {
        let endpoint = Endpoint::builder()
            .server(server_config())
            .client(client_config());
        endpoint.bind("127.0.0.1:0").unwrap()
    };
    let pair = Pair::of(both(), both()).await;
    assert_eq!(
        pair.server.peer_address(),
        pair.client_endpoint.local_address()
    );
    let pair = Pair::of(pair.client_endpoint.clone(), pair.server_endpoint.clone()).await;
    assert_eq!(pair.echo(b"back").await, b"back");
}

#[tokio::test]
async fn streams_are_tokio_readers_and_writers() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut send, b"one line\nrest")
        .await
        .unwrap();
    send.shutdown().await.unwrap();
    let recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let mut lines = tokio::io::BufReader::new(recv);
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line)
        .await
        .unwrap();
    assert_eq!(line, "one line\n");
    let mut rest = Vec::new();
    soon(lines.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"rest");
}

#[tokio::test]
async fn chunks_cross_without_a_copy_at_the_edges() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    let chunk = bytes::Bytes::from(pattern(100_000));
    send.write_chunk(chunk.clone()).await.unwrap();
    send.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let mut all = Vec::new();
    while let Some(piece) = soon(recv.read_chunk(5_000)).await.unwrap() {
        assert!((1..=5_000).contains(&piece.len()));
        all.extend_from_slice(&piece);
    }
    assert!(all == chunk);
    assert_eq!(
        recv.read_chunk(1).await.unwrap(),
        None,
        "the end is told again"
    );
}

/// Goal of the first part: connect, one byte each way and close fit into nine datagrams.
#[tokio::test]
async fn a_short_connection_takes_few_datagrams() {
    let server = server("127.0.0.1:0");
    let client = crate::endpoint_support::client();
    let serving = server.clone();
    let serve = tokio::spawn(async move {
        let connection = serving.accept().await.unwrap().accept().await.unwrap();
        while let Some((mut send, mut recv)) = connection.accept_bidi().await.unwrap() {
            let request = recv.read_to_end(1).await.unwrap();
            send.write_all(&request).await.unwrap();
            send.finish();
        }
    });
    let connection = soon(client.connect(server.local_address(), "localhost"))
        .await
        .unwrap();
    let (mut send, mut recv) = connection.open_bidi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    send.finish();
    assert_eq!(soon(recv.read_to_end(1)).await.unwrap(), b"x");
    connection.close(0, b"");
    soon(serve).await.unwrap();
    soon(async { tokio::join!(server.idle(), client.idle()) }).await;
    let (to, from) = (client.stats().datagrams_sent, server.stats().datagrams_sent);
    assert!(to + from <= 9, "{to} to the server and {from} back");
}

/// More than are started in one turn of a worker.
#[tokio::test]
async fn many_connections_start_at_once() {
    const CONNECTIONS: usize = 60;
    let (server, client) = (server("127.0.0.1:0"), crate::endpoint_support::client());
    let address = server.local_address();
    let serving = server.clone();
    let serve = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let connecting = serving.accept().await.unwrap().accept();
            tasks.spawn(async move {
                let connection = connecting.await.unwrap();
                let mut send = connection.open_uni().await.unwrap();
                send.write_all(b"welcome").await.unwrap();
                send.finish();
                connection.closed().await
            });
        }
        assert!(tasks.join_all().await.iter().all(ConnectionError::is_clean));
    });
    let connecting: Vec<_> = (0..CONNECTIONS)
        .map(|_| client.connect(address, "localhost"))
        .collect();
    for connecting in connecting {
        let connection = soon(connecting).await.unwrap();
        let mut recv = soon(connection.accept_uni()).await.unwrap().unwrap();
        assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"welcome");
    }
    soon(serve).await.unwrap();
    soon(async { tokio::join!(client.idle(), server.idle()) }).await;
    assert_eq!(
        (client.stats().connections, server.stats().connections),
        (0, 0)
    );
}

#[test]
fn handles_go_to_any_thread() {
    fn anywhere<T: Send + Sync>() {}
    anywhere::<Endpoint>();
    anywhere::<hybriq::Incoming>();
    anywhere::<hybriq::Connecting>();
    anywhere::<hybriq::Connection>();
    anywhere::<hybriq::SendStream>();
    anywhere::<hybriq::RecvStream>();
}

#[tokio::test]
async fn nothing_is_told_of_a_path_where_careful_resume_is_off() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.echo(&pattern(2 << 20)).await;
    assert_eq!(pair.client.saved_path(), None);
    assert_eq!(pair.server.saved_path(), None);
}
