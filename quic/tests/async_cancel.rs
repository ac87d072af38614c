//! Futures that are dropped before they are ready have done nothing, and leave nothing behind.

mod endpoint_support;

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use endpoint_support::{Pair, client_config, server, soon};
use hybriq::{Endpoint, TransportConfig};

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
    let client = endpoint_support::client();
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
    let server_config = endpoint_support::server_config().transport(transport);
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
    let server_config = endpoint_support::server_config().transport(transport);
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
            let write = std::future::poll_fn(|cx| match send.poll_write(cx, &[1; 100]) {
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
