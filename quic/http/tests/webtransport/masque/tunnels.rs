//! Tunnels of our own client.

use std::{net::Ipv4Addr, time::Duration};

use bytes::Bytes;
use http::{StatusCode, Version};
use hybriq_http::masque::{
    self, ConnectError, Limits, MAX_PAYLOAD, Target, TunnelError, UdpTunnel, forward,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UdpSocket,
};

use super::{Host, echo, echo_at, open, ping, router, target};
use crate::support::{self, Certificate, Http3, client_config, post, run, soon, upgrade_to};

#[tokio::test]
async fn payloads_pass_through_a_proxy() {
    let host = Host::new();
    let client = host.client().await;
    let port = echo().await.port();
    let mut targets = vec![
        target(&format!("127.0.0.1:{port}")),
        target(&format!("echo.test:{port}")),
    ];
    targets.push(target(&format!("[::ffff:127.0.0.1]:{port}")));
    // Not every machine has IPv6.
    targets.extend(echo_at("[::1]:0").await.map(Target::from));
    for target in targets {
        let tunnel = open(&client, &target).await.unwrap();
        assert!(tunnel.has_datagrams());
        ping(&tunnel, b"ping").await;
        ping(&tunnel, b"").await;
        let most = tunnel.max_payload();
        // Frame, number of the request and context take a few bytes.
        assert!(most > 1280, "{most}");
        let large = Bytes::from(vec![7; most]);
        tunnel.send(large.clone()).unwrap();
        assert_eq!(soon(tunnel.recv()).await.unwrap().unwrap(), large);
        let len = most + 1_000;
        let refused = tunnel.send(vec![7; len].into());
        assert!(matches!(refused, Err(TunnelError::TooLarge { len: shown, .. }) if shown == len));
        assert_eq!(tunnel.stats().too_large, 1);
        ping(&tunnel, b"pong").await;
    }
    host.until_open(0).await;
}

/// HTTP/3 with post-quantum key exchange inside of HTTP/3 with post-quantum key exchange.
#[tokio::test]
async fn quic_runs_inside_of_a_tunnel() {
    let host = Host::new();
    let inner = run(axum::Router::new());
    let client = host.client().await;
    assert!(client.connection().handshake().is_post_quantum());
    let tunnel = open(&client, &inner.address().into()).await.unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let forwarding = tokio::spawn(forward(socket, tunnel).unwrap());
    let mut inside = Http3::connect(address).await;
    assert!(inside.connection.handshake().is_post_quantum());
    let body = vec![7; 300_000];
    let response = inside.ask(post("/", body.clone())).await.unwrap();
    assert!(response.body() == &body);
    assert!(
        response.headers()["x-group"]
            .to_str()
            .unwrap()
            .contains("MLKEM")
    );
    // The target sees the proxy.
    let seen = response.headers()["x-peer"].to_str().unwrap();
    let local = inside.endpoint.local_address().port();
    assert!(!seen.ends_with(&format!(":{local}")), "{seen}");
    drop(inside);
    forwarding.abort();
    let _ = forwarding.await;
    host.until_open(0).await;
}

#[tokio::test]
async fn refusals_say_why() {
    let mut limits = Limits::default();
    limits.lookup_time = Duration::from_millis(10);
    let host = Host::with(limits);
    let client = host.client().await;
    let refusals = [
        ("192.0.2.1:1", 403, "destination_ip_prohibited"),
        ("[::ffff:192.0.2.1]:1", 403, "destination_ip_prohibited"),
        ("outside.test:1", 403, "destination_ip_prohibited"),
        ("255.255.255.255:1", 502, "destination_ip_unroutable"),
        ("unknown.test:1", 502, "dns_error"),
        ("nowhere.test:1", 502, "dns_error"),
        ("hangs.test:1", 504, "dns_timeout"),
    ];
    let port_0 = Target::from(std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let refusals = refusals.map(|(name, status, reason)| (target(name), status, reason));
    for (target, expected, why) in refusals
        .into_iter()
        .chain([(port_0, 400, "http_request_error")])
    {
        let refused = open(&client, &target).await.unwrap_err();
        let ConnectError::Refused { status, reason } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(
            (status.as_u16(), reason.as_deref()),
            (expected, Some(why)),
            "{target}"
        );
    }
    let stats = host.proxy.stats();
    assert_eq!((stats.open, stats.accepted, stats.refused), (0, 0, 8));
    let plain = run(axum::Router::new());
    let template = format!("localhost:{}", plain.address().port());
    let template = masque::Template::well_known(&template).unwrap();
    let target = target("127.0.0.1:1");
    let connect = masque::connect_udp(&host.endpoint, template, &target);
    let refused = soon(connect).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unsupported), "{refused}");
}

/// Places are free again when tunnels end.
#[tokio::test]
async fn tunnels_are_limited() {
    let mut limits = Limits::default();
    (limits.tunnels, limits.tunnels_per_connection) = (3, 2);
    let host = Host::with(limits);
    let (one, other) = (host.client().await, host.client().await);
    let target = Target::from(echo().await);
    let is_full = async |client| {
        let refused = open(client, &target).await.unwrap_err();
        matches!(&refused, ConnectError::Refused { status: StatusCode::SERVICE_UNAVAILABLE, reason }
            if reason.as_deref() == Some("connection_limit_reached"))
    };
    let first = open(&one, &target).await.unwrap();
    let _second = open(&one, &target).await.unwrap();
    assert!(is_full(&one).await);
    let _third = open(&other, &target).await.unwrap();
    assert!(is_full(&other).await);
    ping(&first, b"ping").await;
    drop(first);
    host.until_open(2).await;
    let again = open(&one, &target).await.unwrap();
    ping(&again, b"ping").await;
}

#[tokio::test]
async fn a_tunnel_ends_with_either_end() {
    let mut limits = Limits::default();
    limits.idle_time = Duration::from_millis(100);
    let host = Host::with(limits);
    let client = host.client().await;
    let target = Target::from(echo().await);
    // The proxy ends what is idle.
    let tunnel = open(&client, &target).await.unwrap();
    assert_eq!(soon(tunnel.recv()).await, Ok(None));
    assert_eq!(tunnel.send("late".into()), Err(TunnelError::Closed));
    drop(tunnel);
    let host = Host::new();
    let client = host.client().await;
    let connection = client.connection().clone();
    let (first, second) = (
        open(&client, &target).await.unwrap(),
        open(&client, &target).await.unwrap(),
    );
    drop(client);
    drop(first);
    host.until_open(1).await;
    // The other one keeps the connection.
    ping(&second, b"ping").await;
    drop(second);
    host.until_open(0).await;
    soon(connection.closed()).await;
    // With its connection.
    let client = host.client().await;
    let tunnel = open(&client, &target).await.unwrap();
    client.connection().close(0x100, b"");
    assert!(matches!(
        soon(tunnel.recv()).await,
        Err(TunnelError::Connection(_))
    ));
    host.until_open(0).await;
}

/// Over HTTP/1.1 and HTTP/2, payloads go in capsules, of any size that UDP has.
#[tokio::test]
async fn payloads_pass_in_capsules_over_tcp() {
    let host = Host::new();
    let port = echo().await.port();
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for path in ["/.well-known/masque/udp", "/other"] {
            let path = format!("{path}/echo.test/{port}/");
            let server = host.server.address();
            let stream = upgrade_to("connect-udp", version, server, &path).await;
            let tunnel = UdpTunnel::over_stream(stream);
            assert!(!tunnel.has_datagrams());
            ping(&tunnel, b"ping").await;
            ping(&tunnel, b"").await;
            let large = Bytes::from(vec![7; 40_000]);
            tunnel.send(large.clone()).unwrap();
            assert_eq!(
                soon(tunnel.recv()).await.unwrap().unwrap(),
                large,
                "{version:?}"
            );
            let refused = tunnel.send(vec![7; MAX_PAYLOAD + 1].into());
            assert!(
                matches!(refused, Err(TunnelError::TooLarge { .. })),
                "{version:?}"
            );
            drop(tunnel);
            host.until_open(0).await;
        }
    }
}

/// What is longer than a datagram takes is not cut.
#[tokio::test]
async fn an_answer_that_is_too_large_is_dropped_as_a_whole() {
    let host = Host::new();
    let client = host.client().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let tunnel = open(&client, &socket.local_addr().unwrap().into()).await;
    let tunnel = tunnel.unwrap();
    tunnel.send("query".into()).unwrap();
    let (_, from) = soon(socket.recv_from(&mut [0; 9])).await.unwrap();
    for answer in [&vec![7; 2_000][..], b"small"] {
        socket.send_to(answer, from).await.unwrap();
    }
    assert_eq!(soon(tunnel.recv()).await.unwrap().unwrap(), "small");
    drop(tunnel);
    host.until_open(0).await;
    assert_eq!(host.proxy.stats().dropped, 1);
}

/// A connection has a quarter of the lookups, and leaves the rest to others.
#[tokio::test]
async fn lookups_are_limited() {
    let mut limits = Limits::default();
    limits.lookups = 4;
    let host = Host::with(limits);
    let (one, other) = (host.client().await, host.client().await);
    let port = echo().await.port();
    let slow = target(&format!("slow.test:{port}"));
    let waiting = tokio::spawn({
        let (one, slow) = (one.clone(), slow.clone());
        async move { one.connect_udp(&slow).await }
    });
    host.until_open(1).await;
    let fast = target(&format!("echo.test:{port}"));
    let refused = open(&one, &fast).await.unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
    ping(&open(&other, &fast).await.unwrap(), b"ping").await;
    host.lookups.add_permits(1);
    ping(&soon(waiting).await.unwrap().unwrap(), b"ping").await;
    ping(&open(&one, &fast).await.unwrap(), b"ping").await;
}

/// Returns the status of the answer to a request with `upgrade: connect-udp` over HTTP/1.1.
async fn status_over_http1(server: &support::Running, method: &str) -> String {
    let mut stream = support::connect_tls(server.address(), "http/1.1")
        .await
        .unwrap();
    let head = format!(
        "{method} /.well-known/masque/udp/127.0.0.1/1/ HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\
         connection: upgrade\r\nupgrade: connect-udp\r\n\r\n"
    );
    soon(stream.write_all(head.as_bytes())).await.unwrap();
    let mut status = [0; 12];
    soon(stream.read_exact(&mut status)).await.unwrap();
    String::from_utf8(status[9..].to_vec()).unwrap()
}

/// A layer makes no proxy of a server that does not allow it, and over HTTP/1.1 only GET asks for a tunnel (RFC 9298 §3.2).
#[tokio::test]
async fn tunnels_over_http1_are_allowed_by_the_server_and_asked_for_with_get() {
    let host = Host::new();
    assert_eq!(status_over_http1(&host.server, "GET").await, "101");
    assert_eq!(status_over_http1(&host.server, "POST").await, "404");
    let server = run(router().layer(host.proxy.clone()));
    assert_eq!(status_over_http1(&server, "GET").await, "404");
    host.until_open(0).await;
}

#[tokio::test]
async fn other_requests_pass_by_the_proxy() {
    let host = Host::new();
    let mut client =
        Http3::with(host.server.address(), client_config(&Certificate::shared())).await;
    let response = client.ask(post("/", "fine")).await.unwrap();
    assert_eq!(response.body(), "fine");
    let ordinary = client
        .ask(support::get("/.well-known/masque/udp/echo.test/1/"))
        .await
        .unwrap();
    assert_eq!(ordinary.status(), StatusCode::NOT_FOUND);
}
