//! Futures that are dropped before they are ready have done nothing, and leave nothing behind.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

use std::{
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hybriq::{EarlyConnection, Endpoint, TransportConfig, transport::DatagramConfig};

use crate::endpoint_support::{Pair, client_config, server, soon};

/// Polls once and drops.
fn cancel<F: Future>(future: F) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "nothing to cancel");
}

#[tokio::test]
async fn a_cancelled_read_takes_nothing() {
    let pair = Pair::new("127.0.0.1:0").await;
    let (mut send, _recv) = pair.client.open_bidi().await.unwrap();
    send.write_all(b"a").await.unwrap();
    let (_send, mut recv) = soon(pair.server.accept_bidi()).await.unwrap().unwrap();
    let mut buffer = [0; 8];
    assert_eq!(soon(recv.read(&mut buffer)).await, Ok(1));
    for byte in b'b'..=b'z' {
        cancel(recv.read(&mut buffer));
        cancel(recv.read_chunk(8));
        send.write_all(&[byte]).await.unwrap();
        assert_eq!(soon(recv.read(&mut buffer)).await, Ok(1));
        assert_eq!(buffer[0], byte);
    }
}

#[tokio::test]
async fn a_cancelled_accept_takes_nothing() {
    let server = server("127.0.0.1:0");
    let client = crate::endpoint_support::client();
    cancel(server.accept());
    let connecting = client.connect(server.local_address(), "localhost");
    let incoming = soon(server.accept()).await.unwrap();
    let (accepted, connected) = soon(async { tokio::join!(incoming.accept(), connecting) }).await;
    let (accepted, connected) = (accepted.unwrap(), connected.unwrap());

    cancel(accepted.accept_uni());
    cancel(accepted.accept_bidi());
    let mut send = connected.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    assert!(soon(accepted.accept_uni()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_cancelled_open_uses_up_no_stream() {
    let transport = TransportConfig::new().max_uni_streams(1);
    let server_config = crate::endpoint_support::server_config().transport(transport);
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server_config).unwrap(),
        Endpoint::client(client_config()).unwrap(),
    )
    .await;
    let mut first = pair.client.open_uni().await.unwrap();
    for _ in 0..10 {
        cancel(pair.client.open_uni());
    }
    first.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    assert_eq!(soon(recv.read_to_end(1)).await.unwrap(), b"");
    drop((first, recv));
    let second = soon(pair.client.open_uni()).await.unwrap();
    assert_eq!(second.id().index(), 1);
}

#[tokio::test]
async fn a_cancelled_write_writes_nothing() {
    let transport = TransportConfig::new().stream_receive_window(1000);
    let server_config = crate::endpoint_support::server_config().transport(transport);
    let client_config = client_config().transport(TransportConfig::new().send_buffer(1000));
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server_config).unwrap(),
        Endpoint::client(client_config).unwrap(),
    )
    .await;
    let mut send = pair.client.open_uni().await.unwrap();
    let mut written = 0;
    // Until neither the window nor the buffer has room.
    let full = async {
        loop {
            let write = poll_fn(|cx| match send.poll_write(cx, &[1; 100]) {
                Poll::Ready(count) => Poll::Ready(Some(count.unwrap())),
                Poll::Pending => Poll::Ready(None),
            });
            match write.await {
                Some(count) => written += count,
                None if written >= 2000 => break,
                None => tokio::task::yield_now().await,
            }
        }
    };
    soon(full).await;
    cancel(send.write(&[2; 100]));
    send.finish();
    let mut recv = soon(pair.server.accept_uni()).await.unwrap().unwrap();
    let all = soon(recv.read_to_end(10_000)).await.unwrap();
    assert_eq!(all, vec![1; written]);
}

#[tokio::test]
async fn a_cancelled_wait_is_taken_up_again() {
    let pair = Pair::new("127.0.0.1:0").await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    cancel(send.stopped());
    cancel(send.acknowledged());
    cancel(pair.server.closed());
    soon(send.acknowledged()).await.unwrap();
    cancel(pair.client_endpoint.idle());
    drop((pair.client, pair.server, send));
    soon(async { tokio::join!(pair.client_endpoint.idle(), pair.server_endpoint.idle()) }).await;
}

/// Largest number of polls before a call is dropped.
const POLLS: usize = 5;

/// Polls up to `polls` times, lets everybody else run in between, and drops the future then.
async fn abandon<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx)));
        if let Poll::Ready(output) = polled.await {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Abandons a call after this many polls and makes it again, unless it was already ready.
macro_rules! again {
    ($polls:expr, $call:expr) => {
        match abandon($call, $polls).await {
            Some(output) => output,
            None => soon($call).await,
        }
    };
}

/// Returns a pair on which almost everything has to wait.
async fn narrow_pair(polls: usize) -> Pair {
    let datagrams = DatagramConfig::new().send_queue(1000);
    let narrow = TransportConfig::new()
        .max_uni_streams(1)
        .max_bidi_streams(1)
        .stream_receive_window(1000)
        .datagrams(datagrams);
    let client = TransportConfig::new()
        .send_buffer(1000)
        .datagrams(datagrams);
    let server_config = crate::endpoint_support::server_config().transport(narrow);
    let server_endpoint = Endpoint::server("127.0.0.1:0", server_config).unwrap();
    let client_endpoint = Endpoint::client(client_config().transport(client)).unwrap();
    // The handshake that is given up is refused or closed, and leaves nothing that the next one meets.
    let address = server_endpoint.local_address();
    let given_up = abandon(client_endpoint.connect(address, "localhost"), polls).await;
    assert!(given_up.is_none_or(|result| result.is_ok()));
    let accepting = server_endpoint.clone();
    let accept = tokio::spawn(async move {
        loop {
            let incoming = again!(polls, accepting.accept()).expect("the endpoint is open");
            if let Ok(connection) = incoming.accept().await {
                // The connection of the client that gave up is over at once.
                if abandon(connection.closed(), 50).await.is_none() {
                    return connection;
                }
            }
        }
    });
    let client = soon(client_endpoint.connect(address, "localhost")).await;
    Pair {
        client: client.unwrap(),
        server: soon(accept).await.unwrap(),
        server_endpoint,
        client_endpoint,
    }
}

async fn each_stream_call(pair: &Pair, polls: usize) {
    let write = async {
        let mut written = 0;
        let mut send = again!(polls, pair.client.open_uni()).unwrap();
        for _ in 0..4 {
            written += again!(polls, send.write(&[1; 700])).unwrap();
            let mut chunks = [vec![1; 400].into(), vec![1; 300].into()];
            again!(polls, send.write_chunks(&mut chunks)).unwrap();
            written += 700;
        }
        again!(polls, send.acknowledged()).unwrap();
        assert_eq!(again!(polls, send.stopped()), Ok(None));
        drop(send);
        // The only stream that is allowed has ended.
        let mut send = again!(polls, pair.client.open_uni()).unwrap();
        send.write_all(b"x").await.unwrap();
        send.reset(7);
        (written, send)
    };
    let read = async {
        let mut recv = again!(polls, pair.server.accept_uni()).unwrap().unwrap();
        let (mut read, mut buffer) = (0, [0; 100]);
        let mut chunks = [const { Bytes::new() }; 2];
        loop {
            read += again!(polls, recv.read(&mut buffer)).unwrap();
            let chunk = again!(polls, recv.read_chunk(100)).unwrap();
            read += chunk.map_or(0, |chunk| chunk.len());
            match again!(polls, recv.read_chunks(&mut chunks)).unwrap() {
                Some(count) => read += chunks[..count].iter().map(Bytes::len).sum::<usize>(),
                None => break,
            }
        }
        assert_eq!(again!(polls, recv.received_reset()), Ok(None));
        drop(recv);
        let mut recv = again!(polls, pair.server.accept_uni()).unwrap().unwrap();
        assert_eq!(again!(polls, recv.received_reset()), Ok(Some(7)));
        read
    };
    let ((written, _send), read) = soon(async { tokio::join!(write, read) }).await;
    assert_eq!(written, read);
}

async fn each_connection_call(pair: &Pair, polls: usize) {
    let ask = async {
        let (mut send, mut recv) = again!(polls, pair.client.open_bidi()).unwrap();
        send.write_all(b"question").await.unwrap();
        send.finish();
        let mut answer = Vec::new();
        while let Some(chunk) = again!(polls, recv.read_unordered(3)).unwrap() {
            answer.extend_from_slice(&chunk.bytes);
        }
        for _ in 0..3 {
            again!(polls, pair.client.send_datagram_wait(vec![0; 900].into())).unwrap();
        }
        answer.len()
    };
    let answer = async {
        let (mut send, mut recv) = again!(polls, pair.server.accept_bidi()).unwrap().unwrap();
        let question = recv.read_to_end(100).await.unwrap();
        send.write_all(&question).await.unwrap();
        send.finish();
        for _ in 0..3 {
            again!(polls, pair.server.recv_datagram()).unwrap().unwrap();
        }
        send
    };
    let (answered, _send) = soon(async { tokio::join!(ask, answer) }).await;
    assert_eq!(answered, b"question".len());
}

/// Every waiting call, dropped after any number of polls, and made again: nothing is lost.
#[tokio::test]
async fn each_call_can_be_dropped_after_any_poll() {
    for polls in 0..=POLLS {
        let pair = narrow_pair(polls).await;
        each_stream_call(&pair, polls).await;
        each_connection_call(&pair, polls).await;
        // A migration continues when its future is dropped; a later one replaces it.
        let local = ([127, 0, 0, 1], 0).into();
        let moved = again!(polls, pair.client.migrate(local)).unwrap();
        assert_eq!(pair.client.local_address(), moved);
        pair.client.close(7, b"");
        assert!(!again!(polls, pair.server.closed()).is_clean());
    }
}

/// Connects with a ticket, after a connection that brings one if there is none.
async fn early_connection(client: &Endpoint, address: SocketAddr) -> EarlyConnection {
    loop {
        let connecting = match soon(client.connect(address, "localhost").early()).await {
            Ok(early) => return early,
            Err(connecting) => connecting,
        };
        let connection = soon(connecting).await.unwrap();
        let (mut send, mut recv) = connection.open_bidi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        send.finish();
        assert_eq!(soon(recv.read_to_end(1)).await.unwrap(), b"x");
        connection.close(0, b"");
    }
}

/// An early connection that is given up after any number of polls ends, and another one works.
#[tokio::test]
async fn each_call_before_the_handshake_is_over_can_be_dropped() {
    let config = crate::endpoint_support::server_config().accept_early_data();
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let address = server.local_address();
    let client = Endpoint::client(client_config().offer_early_data()).unwrap();
    let serving = server.clone();
    let serve = tokio::spawn(async move {
        while let Some(incoming) = serving.accept().await {
            tokio::spawn(async move {
                let connection = incoming.accept().await.ok()?;
                while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
                    let question = recv.read_to_end(100).await.ok()?;
                    send.write_all(&question).await.ok()?;
                    send.acknowledged().await.ok()?;
                }
                Some(())
            });
        }
    });
    for polls in 0..=POLLS {
        drop(early_connection(&client, address).await);
        drop(abandon(client.connect(address, "localhost").early(), polls).await);
        let early = early_connection(&client, address).await;
        let (mut send, mut recv) = again!(polls, early.open_bidi()).unwrap();
        send.write_all(b"early").await.unwrap();
        send.finish();
        drop(abandon(early.accept_uni(), polls).await);
        drop(abandon(early.accept_bidi(), polls).await);
        drop(abandon(early.recv_datagram(), polls).await);
        let (connection, _) = again!(polls, early.complete()).unwrap();
        assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"early");
        let given_up = early_connection(&client, address).await;
        drop(abandon(given_up.established(), polls).await);
        connection.close(0, b"");
    }
    server.close(0, b"");
    soon(serve).await.unwrap();
}
