//! Data that a call has accepted leaves without another call.

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use axum::{Extension, Router, response::Response, routing::any};
use http::{StatusCode, Version};
use hybriq::TransportConfig;
use hybriq_http::{Server, Upgrade};
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::{
    common::{VERSIONS, connect},
    support::{Certificate, Http3, agreed, run_with, soon, upgrade},
};

/// Writes until there is no room, and then does nothing. Tells how much was accepted.
fn write(version: Version, upgrade: Upgrade, accepted: mpsc::UnboundedSender<usize>) -> Response {
    tokio::spawn(async move {
        let mut upgraded = upgrade.upgraded().await.unwrap();
        let data = vec![7; 60_000];
        let mut all = 0;
        let fill = poll_fn(|cx| {
            while let Poll::Ready(written) = Pin::new(&mut upgraded).poll_write(cx, &data) {
                all += written.unwrap();
            }
            Poll::Ready(())
        });
        fill.await;
        accepted.send(all).unwrap();
        std::future::pending::<()>().await;
    });
    agreed(version)
}

#[tokio::test]
async fn what_a_tunnel_accepted_leaves_without_another_call() {
    for version in VERSIONS {
        // Smaller than a frame, and no multiple of anything.
        let transport = TransportConfig::new()
            .send_buffer(50_021)
            .max_send_buffer(50_021);
        let config = Certificate::shared().config().transport(transport);
        let (accepted, mut told) = mpsc::unbounded_channel();
        let write = async move |version, Extension(upgrade)| write(version, upgrade, accepted);
        let router = Router::new().route("/upgrade", any(write));
        let server = run_with(Server::builder().extended_connect(), config, router);
        if version == Version::HTTP_3 {
            let client = Http3::connect(server.address()).await;
            let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
            soon(send.write_all(&connect())).await.unwrap();
            let all = soon(told.recv()).await.unwrap();
            arrives(version, all, read_frames(recv, all)).await;
        } else {
            let mut stream = upgrade(version, server.address(), "/upgrade").await;
            let all = soon(told.recv()).await.unwrap();
            let mut data = vec![0; all];
            arrives(version, all, async {
                stream.read_exact(&mut data).await.unwrap();
            })
            .await;
        }
    }
}

/// A send buffer that has no room for the header of a frame takes it in pieces.
#[tokio::test]
async fn a_tiny_send_buffer_takes_frames_too() {
    for room in [1, 3, 6, 7] {
        let transport = TransportConfig::new()
            .send_buffer(room)
            .max_send_buffer(room);
        let config = Certificate::shared().config().transport(transport);
        let flush = async |Extension(upgrade): Extension<Upgrade>| {
            tokio::spawn(async move {
                let mut upgraded = upgrade.upgraded().await.unwrap();
                upgraded.write_all(b"hello").await.unwrap();
                upgraded.shutdown().await.unwrap();
            });
            StatusCode::OK
        };
        let router = Router::new().route("/upgrade", any(flush));
        let server = run_with(Server::builder().extended_connect(), config, router);
        let client = Http3::connect(server.address()).await;
        let (mut send, mut recv) = soon(client.connection.open_bidi()).await.unwrap();
        soon(send.write_all(&connect())).await.unwrap();
        let all = soon(recv.read_to_end(1000)).await.unwrap();
        let has = |byte| all.contains(&byte);
        assert!(b"hello".iter().all(|&byte| has(byte)), "{room}: {all:?}");
    }
}

/// Reads the payload of DATA frames until all of it has come.
async fn read_frames(mut recv: hybriq::RecvStream, all: usize) {
    let mut read = 0;
    while read < all {
        let kind = integer(&mut recv).await;
        let mut payload = vec![0; integer(&mut recv).await];
        recv.read_exact(&mut payload).await.unwrap();
        read += if kind == 0 { payload.len() } else { 0 };
    }
}

async fn arrives(version: Version, all: usize, read: impl Future<Output = ()>) {
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    assert!(read.is_ok(), "{version:?}: not all of {all} bytes come");
}

/// Reads an integer of 1, 2, 4 or 8 bytes (RFC 9000 §16).
async fn integer(recv: &mut hybriq::RecvStream) -> usize {
    let first = recv.read_u8().await.unwrap();
    let mut number = usize::from(first & 0x3f);
    for _ in 1..1 << (first >> 6) {
        number = number << 8 | usize::from(recv.read_u8().await.unwrap());
    }
    number
}
