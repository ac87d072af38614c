//! What the system says about datagrams that cannot be sent, or did not arrive, over loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{io, net::SocketAddr};

use crate::endpoint_support::{Pair, client_config, server, server_config, soon};
use hybriq::{ConnectError, ConnectionError, Endpoint};

fn client_at(address: &str) -> Endpoint {
    let client = Endpoint::builder().client(client_config());
    client.bind(address).unwrap()
}

/// Returns an address at which nobody receives.
fn closed_port(ip: &str) -> SocketAddr {
    let socket = std::net::UdpSocket::bind((ip, 0)).unwrap();
    socket.local_addr().unwrap()
}

async fn fails(client: &Endpoint, to: SocketAddr) -> (SocketAddr, io::ErrorKind, String) {
    let error = soon(client.connect(to, "localhost")).await.unwrap_err();
    let text = error.to_string();
    let ConnectError::Connection(ConnectionError::Unreachable { peer, reason }) = error else {
        panic!("{text}");
    };
    assert_eq!(text.lines().count(), 1);
    (peer, reason.kind, text)
}

/// An endpoint that accepts connections as well listens to reports only while it connects.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_closed_port_ends_a_connect_at_once() {
    let both = Endpoint::builder()
        .server(server_config())
        .client(client_config())
        .bind("[::]:0")
        .unwrap();
    for (client, ip) in [
        (client_at("127.0.0.1:0"), "127.0.0.1"),
        (client_at("[::1]:0"), "::1"),
        (client_at("[::]:0"), "127.0.0.1"),
        (client_at("[::]:0"), "::1"),
        (both.clone(), "127.0.0.1"),
        (both, "::1"),
    ] {
        for _ in 0..2 {
            let address = closed_port(ip);
            let (peer, kind, text) = fails(&client, address).await;
            assert_eq!((peer, kind), (address, io::ErrorKind::ConnectionRefused));
            assert!(text.contains("start the server"), "{text}");
        }
    }
}

/// A loopback address leads to this machine alone.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_way_that_does_not_exist_ends_a_connect_at_once() {
    let client = client_at("127.0.0.1:0");
    let address = "192.0.2.1:4433".parse().unwrap();
    let (peer, _, text) = fails(&client, address).await;
    assert_eq!(peer, address);
    assert!(
        !text.contains("check the server's address and port"),
        "{text}"
    );
    assert!(text.contains("os error"), "the system's reason: {text}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_ends_a_connect_leaves_other_connections_alone() {
    let pair = Pair::of(server("127.0.0.1:0"), client_at("127.0.0.1:0")).await;
    let message = vec![7; 50_000];
    for _ in 0..20 {
        let echo = pair.echo(&message);
        let connect = fails(&pair.client_endpoint, closed_port("127.0.0.1"));
        let (echo, _) = tokio::join!(echo, connect);
        assert!(echo == message);
    }
    let stats = pair.client_endpoint.stats();
    assert_eq!(stats.send_errors, 0, "{stats:?}");
}

/// One datagram from port 0 changes nothing: it is dropped, and trains leave in single calls as before.
/// Needs the right to open raw sockets.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_datagram_from_port_0_slows_nobody() {
    use socket2::{Domain, Protocol, Socket, Type};

    let raw = Socket::new(
        Domain::IPV4,
        Type::from(libc::SOCK_RAW),
        Some(Protocol::UDP),
    );
    let raw = match raw {
        Ok(raw) => raw,
        Err(error) => {
            test_summary::skip(format!("raw sockets need root: {error}"));
            return;
        }
    };
    let pair = Pair::of(server("127.0.0.1:0"), client_at("127.0.0.1:0")).await;
    let to = pair.server_endpoint.local_address();
    // A version that nobody speaks, from port 0 and without a checksum.
    let mut datagram = [
        &[0, 0][..],
        &to.port().to_be_bytes(),
        &1208_u16.to_be_bytes(),
    ]
    .concat();
    datagram.extend_from_slice(&[0, 0]);
    datagram.extend_from_slice(&[0xc0, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    datagram.resize(1208, 0);
    let to = SocketAddr::new(to.ip(), 0).into();
    raw.send_to(&datagram, &to).unwrap();
    soon(async {
        while pair.server_endpoint.stats().drops.impossible_source == 0 {
            pair.echo(b"are you there?").await;
        }
    })
    .await;
    let before = pair.server_endpoint.stats();
    assert_eq!((before.send_errors, before.version_negotiations), (0, 0));
    pair.echo(&vec![7; 4 << 20]).await;
    let after = pair.server_endpoint.stats();
    let calls = after.send_calls - before.send_calls;
    let datagrams = after.datagrams_sent - before.datagrams_sent;
    assert!(
        datagrams > 2 * calls,
        "{datagrams} datagrams left in {calls} calls"
    );
}
