//! A client that writes its bytes itself.

use bytes::Bytes;
use hybriq::{Endpoint, StreamId};
use hybriq_h3::{Code, DatagramCapsules, put_datagram_capsule_head};
use hybriq_http::masque::MAX_PAYLOAD;

use super::{Host, echo};
use crate::{
    peer::{Peer, Request},
    support::{Certificate, client_config, soon},
};

const DATAGRAMS: &[(u64, u64)] = &[(0x33, 1)];

async fn connect(host: &Host, settings: &[(u64, u64)]) -> Peer {
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    Peer::with(endpoint, host.server.address(), settings).await
}

async fn ask(client: &Peer, name: &str, port: u16) -> Request {
    let path = format!("/.well-known/masque/udp/{name}/{port}/");
    client.ask_for_udp(&path).await
}

/// Asks for a tunnel to a socket that sends everything back.
async fn tunnel(client: &Peer) -> Request {
    let mut request = ask(client, "echo.test", echo().await.port()).await;
    let head = request.head().await;
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()["capsule-protocol"], "?1");
    request
}

/// Returns a capsule with this content.
fn capsule(content: &[u8]) -> Vec<u8> {
    let mut capsule = Vec::new();
    put_datagram_capsule_head(content.len(), &mut capsule);
    capsule.extend(content);
    capsule
}

#[tokio::test]
async fn other_contexts_are_dropped() {
    let host = Host::new();
    let client = connect(&host, DATAGRAMS).await;
    let mut request = tunnel(&client).await;
    // Of contexts 1 and 64, one without a whole id, and one in a capsule.
    for datagram in [&b"\x01no"[..], b"\x40\x40no", b"\x40", b""] {
        client.send_datagram(request.id(), datagram);
    }
    request.send_data(&capsule(b"\x02no")).await;
    // A capsule of another type.
    request.send_data(&[0x17, 2, 9, 9]).await;
    client.send_datagram(request.id(), b"\x00yes");
    assert_eq!(client.recv_datagram().await, "\x00yes");
    // The answer to a capsule is a datagram, because the client takes them.
    request.send_data(&capsule(b"\x00capsule")).await;
    assert_eq!(client.recv_datagram().await, "\x00capsule");
    request.send.finish();
    assert_eq!(request.data().await, Ok(None));
    host.until_open(0).await;
    let stats = host.proxy.stats();
    assert_eq!(
        (stats.to_targets, stats.to_clients, stats.dropped),
        (2, 2, 5)
    );
}

/// A client that does not announce datagrams gets none (RFC 9297 §2.1.1).
#[tokio::test]
async fn a_client_without_datagrams_gets_capsules() {
    let host = Host::new();
    let client = connect(&host, &[]).await;
    let mut request = tunnel(&client).await;
    let large = [&[0][..], &[7; 3_000]].concat();
    let mut capsules = DatagramCapsules::new(1 << 16);
    for payload in [&b"\x00one"[..], &large] {
        request.send_data(&capsule(payload)).await;
        let mut data = Bytes::new();
        let echoed = loop {
            if let Some(datagram) = capsules.next(&mut data).unwrap() {
                break datagram;
            }
            data = request.data().await.unwrap().expect("a capsule");
        };
        assert_eq!(echoed, payload);
    }
}

/// The stream is reset, and the connection goes on.
#[tokio::test]
async fn capsules_that_cannot_be_end_the_tunnel() {
    let host = Host::new();
    let client = connect(&host, DATAGRAMS).await;
    let mut too_long = Vec::new();
    put_datagram_capsule_head(9 + MAX_PAYLOAD, &mut too_long);
    let long = capsule(&vec![0; 2 + MAX_PAYLOAD]);
    for capsule in [too_long, long] {
        let mut request = tunnel(&client).await;
        request.send_data(&capsule).await;
        assert_eq!(request.data().await, Err(Code::H3_MESSAGE_ERROR));
        host.until_open(0).await;
    }
    // A stream that ends inside of a capsule, which trickles.
    let mut request = tunnel(&client).await;
    let mut cut = Vec::new();
    put_datagram_capsule_head(MAX_PAYLOAD, &mut cut);
    for byte in cut.into_iter().chain([0; 100]) {
        request.send_data(&[byte]).await;
    }
    request.send.finish();
    assert_eq!(request.data().await, Err(Code::H3_MESSAGE_ERROR));
    host.until_open(0).await;
    client.get().await;
}

/// Datagrams wait for the answer to their request, and those for other requests do not disturb.
#[tokio::test]
async fn datagrams_may_overtake_the_answer() {
    let host = Host::new();
    let client = connect(&host, DATAGRAMS).await;
    let first = tunnel(&client).await;
    let mut second = ask(&client, "slow.test", echo().await.port()).await;
    client.send_datagram(second.id(), b"\x00early");
    client.send_datagram(StreamId(200), b"\x00unknown");
    client.send_datagram(first.id(), b"\x00first");
    // It has passed the early one.
    assert_eq!(client.recv_datagram().await, "\x00first");
    assert_eq!(
        host.server
            .handle
            .census()
            .entries("datagrams without request"),
        2
    );
    host.lookups.add_permits(1);
    assert_eq!(second.status().await, 200);
    assert_eq!(client.recv_datagram().await, "\x00early");
    drop(first);
    drop(second);
    host.until_open(0).await;
    soon(async {
        while host
            .server
            .handle
            .census()
            .entries("requests with datagrams")
            > 0
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
