//! Information that handles give, and polling them by hand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure is a failed test"
)]

use std::future::poll_fn;

use crate::endpoint_support::{Pair, client, client_config, reachable, server_config, soon};
use bytes::Bytes;
use hybriq::{ConnectError, ConnectionError};

#[tokio::test]
async fn both_ends_know_a_connection_by_the_same_id() {
    let pair = Pair::new("127.0.0.1:0").await;
    let other = Pair::new("127.0.0.1:0").await;
    assert_eq!(pair.client.id(), pair.server.id());
    assert_ne!(pair.client.id(), other.client.id());
    assert!(pair.client.id().to_string().len() >= 16, "8 bytes or more");
    pair.client.rotate_cids();
    pair.echo(b"after a change").await;
    assert_eq!(pair.client.id(), pair.server.id());
}

#[tokio::test]
async fn a_connection_tells_its_addresses() {
    let pair = Pair::new("127.0.0.1:0").await;
    pair.echo(b"hello").await;
    let server = reachable(&pair.server_endpoint);
    assert_eq!(pair.server.local_address(), server);
    assert_eq!(pair.client.peer_address(), server);
    let port = pair.client_endpoint.local_address().port();
    assert_eq!(pair.client.local_address().port(), port);
    assert_eq!(pair.server.peer_address().port(), port);
}

#[tokio::test]
async fn the_reason_of_the_end_is_there_without_waiting() {
    let pair = Pair::new("127.0.0.1:0").await;
    assert_eq!(pair.client.close_reason(), None);
    pair.server.close(7, b"enough");
    let told = soon(pair.client.closed()).await;
    assert_eq!(pair.client.close_reason(), Some(told.clone()));
    assert!(matches!(told, ConnectionError::Application { code: 7, .. }));
}

#[tokio::test]
async fn streams_are_opened_and_accepted_by_polling() {
    let mut pair = Pair::new("127.0.0.1:0").await;
    let server = &mut pair.server;
    let serve = async {
        let (mut send, mut recv) = poll_fn(|cx| server.poll_accept_bidi(cx))
            .await
            .unwrap()
            .unwrap();
        let request = recv.read_to_end(100).await.unwrap();
        send.write_all(&request).await.unwrap();
        send.finish();
        let mut uni = poll_fn(|cx| server.poll_accept_uni(cx))
            .await
            .unwrap()
            .unwrap();
        (uni.read_to_end(100).await.unwrap(), send)
    };
    let client = &mut pair.client;
    let ask = async {
        let (mut send, mut recv) = poll_fn(|cx| client.poll_open_bidi(cx)).await.unwrap();
        send.write_all(b"ping").await.unwrap();
        send.finish();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"ping");
        let mut uni = poll_fn(|cx| client.poll_open_uni(cx)).await.unwrap();
        uni.write_all(b"one way").await.unwrap();
        uni.finish();
        poll_fn(|cx| uni.poll_stopped(cx)).await.unwrap();
    };
    let ((read, _send), ()) = soon(async { tokio::join!(serve, ask) }).await;
    assert_eq!(read, b"one way");
}

#[tokio::test]
async fn datagrams_and_the_end_come_by_polling() {
    let mut pair = Pair::new("127.0.0.1:0").await;
    pair.client.send_datagram("now".into()).unwrap();
    let datagram = soon(poll_fn(|cx| pair.server.poll_recv_datagram(cx))).await;
    assert_eq!(datagram.unwrap().unwrap(), "now");
    let client = pair.client.clone();
    let close = async {
        tokio::task::yield_now().await;
        client.close(3, b"");
    };
    let closed = poll_fn(|cx| pair.server.poll_closed(cx));
    let (error, ()) = soon(async { tokio::join!(closed, close) }).await;
    assert!(matches!(
        error,
        ConnectionError::Application { code: 3, .. }
    ));
}

/// One task per accepted stream: each stream wakes somebody, however many wait.
#[tokio::test]
async fn every_waiting_task_gets_its_stream() {
    const TASKS: usize = 50;
    let pair = Pair::new("127.0.0.1:0").await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let server = pair.server.clone();
        tasks.push(tokio::spawn(async move {
            let mut stream = server.accept_uni().await.unwrap().unwrap();
            stream.read_to_end(100).await.unwrap()
        }));
        // Some give up while they wait.
        let server = pair.server.clone();
        let impatient = tokio::spawn(async move { server.accept_uni().await.is_ok() });
        tokio::task::yield_now().await;
        impatient.abort();
    }
    for number in 0..TASKS {
        let mut stream = pair.client.open_uni().await.unwrap();
        stream.write_all(&[number as u8]).await.unwrap();
        stream.finish();
    }
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(soon(task).await.unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..TASKS as u8).collect::<Vec<_>>());
}

#[tokio::test]
async fn chunks_are_written_with_the_end_of_the_stream() {
    let pair = Pair::new("127.0.0.1:0").await;
    for len in [0, 1, 1000, 3 << 20] {
        let mut send = pair.client.open_uni().await.unwrap();
        let write = async {
            let body = Bytes::from(vec![b'x'; len]);
            let mut chunks = [Bytes::from("head"), Bytes::new(), body];
            send.finish_with(&mut chunks).await.unwrap();
            assert!(chunks.iter().all(Bytes::is_empty));
            assert_eq!(send.write(b"more").await, Err(hybriq::WriteError::Closed));
        };
        let read = async {
            let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
            recv.read_to_end(4 << 20).await.unwrap()
        };
        let ((), read) = tokio::join!(write, read);
        assert_eq!(read.len(), 4 + len);
    }
    // Nothing but the end.
    let mut send = pair.client.open_uni().await.unwrap();
    send.finish_with(&mut []).await.unwrap();
    let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
    assert_eq!(recv.read_to_end(1).await.unwrap(), b"");
}

#[tokio::test]
async fn a_copy_is_written_with_the_end_of_the_stream() {
    let pair = Pair::new("127.0.0.1:0").await;
    for len in [0, 1, 1000, 3 << 20] {
        let mut send = pair.client.open_uni().await.unwrap();
        let write = async {
            let body = vec![b'x'; len];
            let mut rest = &body[..];
            loop {
                let written = poll_fn(|cx| send.poll_write_last(cx, rest)).await.unwrap();
                rest = &rest[written..];
                if rest.is_empty() {
                    break;
                }
            }
            assert_eq!(send.write(b"more").await, Err(hybriq::WriteError::Closed));
        };
        let read = async {
            let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
            recv.read_to_end(4 << 20).await.unwrap()
        };
        let ((), read) = tokio::join!(write, read);
        assert_eq!(read.len(), len);
    }
}

#[tokio::test]
async fn chunks_are_written_and_read_together() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    let write = async {
        let large = Bytes::from(vec![b'x'; 3 << 20]);
        let mut chunks = [Bytes::from("head"), Bytes::new(), large, "tail".into()];
        send.write_chunks(&mut chunks).await.unwrap();
        assert!(chunks.iter().all(Bytes::is_empty));
        send.write_chunks(&mut []).await.unwrap();
        send.finish();
    };
    let read = async {
        let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
        let mut chunks = [const { Bytes::new() }; 8];
        let (mut all, mut most) = (Vec::new(), 0);
        assert_eq!(recv.read_chunks(&mut []).await.unwrap(), Some(0));
        while let Some(count) = recv.read_chunks(&mut chunks).await.unwrap() {
            assert!(count > 0);
            most = most.max(count);
            all.extend(chunks[..count].iter().flatten());
        }
        assert_eq!(recv.read_chunks(&mut chunks).await.unwrap(), None);
        (all, most)
    };
    let ((), (all, most)) = soon(async { tokio::join!(write, read) }).await;
    assert_eq!(all.len(), 8 + (3 << 20));
    assert!(all.starts_with(b"headx") && all.ends_with(b"xtail"));
    assert!(most > 1, "several chunks came under one lock");
}

#[tokio::test]
async fn a_reset_is_seen_by_polling() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"some").await.unwrap();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    send.reset(9);
    let code = soon(poll_fn(|cx| recv.poll_received_reset(cx))).await;
    assert_eq!(code.unwrap(), Some(9));
}

#[tokio::test]
async fn both_ends_export_the_same_keying_material() {
    let pair = Pair::new("127.0.0.1:0").await;
    let export = |connection: &hybriq::Connection, label: &[u8], context: &[u8]| {
        let mut out = [0; 48];
        let exported = connection.export_keying_material(label, context, &mut out);
        exported.map(|()| out)
    };
    let one = export(&pair.client, b"EXPERIMENTAL test", b"a").unwrap();
    assert_eq!(
        export(&pair.server, b"EXPERIMENTAL test", b"a").unwrap(),
        one
    );
    assert_ne!(
        export(&pair.server, b"EXPERIMENTAL test", b"b").unwrap(),
        one
    );
    assert!(export(&pair.server, b"", b"a").is_err());
}

#[test]
fn a_configuration_is_checked_without_serving() {
    server_config().check().unwrap();
    client_config().check().unwrap();
    let nonsense = hybriq::Identity::from_der(
        vec![hybriq::tls::CertificateDer::from(vec![1, 2, 3])],
        hybriq::tls::PrivateKeyDer::Pkcs8(vec![4, 5, 6].into()),
    );
    let problems = hybriq::ServerConfig::new(nonsense)
        .alpn([""])
        .check()
        .unwrap_err();
    assert_eq!(problems.iter().count(), 2, "{problems}");
}

#[test]
fn a_check_asks_a_custom_provider_for_a_session() {
    for backend in hybriq::Backend::ALL {
        let server = server_config().tls(backend).setup().unwrap().provider;
        let client = client_config().tls(backend).setup().unwrap().provider;
        let server_with = |provider| server_config().provider(provider).check();
        let client_with = |provider| client_config().provider(provider).check();
        server_with(server.clone()).unwrap();
        client_with(client.clone()).unwrap();
        // Each on the other's side.
        let error = server_with(client).unwrap_err().to_string();
        assert!(error.contains("ServerOptions"), "{error}");
        let error = client_with(server).unwrap_err().to_string();
        assert!(error.contains("ClientOptions"), "{error}");
    }
}

#[tokio::test]
async fn port_0_is_refused_before_anything_is_sent() {
    let client = client();
    let connecting = client.connect("127.0.0.1:0".parse().unwrap(), "localhost");
    let error = soon(connecting).await.unwrap_err();
    assert!(matches!(error, ConnectError::PortZero(_)));
    assert!(error.to_string().contains("port 0"), "{error}");
    soon(client.idle()).await;
    assert_eq!(client.stats().datagrams_sent, 0);
}
