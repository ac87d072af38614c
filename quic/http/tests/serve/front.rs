//! Servers behind something else: a proxy, or a redirected port.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hybriq_http::{AltSvc, BindError, Limits, ProxyProtocol, Server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, rustls};

use super::support::{Certificate, Http3, Running, ask_over_tcp, get, run_with, soon};

#[tokio::test]
async fn clients_are_told_of_the_outer_port_or_nothing() {
    let host = "www.example.com".to_owned();
    let cases = [
        (AltSvc::Port(443), Some("h3=\":443\"; ma=86400")),
        (
            AltSvc::Host { host, port: 444 },
            Some("h3=\"www.example.com:444\"; ma=86400"),
        ),
        (AltSvc::Off, None),
    ];
    let day = Duration::from_secs(86_400);
    let cases = cases.map(|(alt_svc, expected)| (alt_svc, day, expected));
    let ages = [
        (AltSvc::Port(443), Duration::ZERO, None),
        (AltSvc::Port(443), day / 1440, Some("h3=\":443\"; ma=60")),
    ];
    for (alt_svc, age, expected) in cases.into_iter().chain(ages) {
        let builder = Server::builder().alt_svc(alt_svc).alt_svc_age(age);
        let server = run_with(builder, Certificate::shared().config(), Router::new());
        for alpn in ["h2", "http/1.1"] {
            let asked = ask_over_tcp(server.address(), alpn, None, get("/"));
            let response = asked.await.unwrap();
            let field = response.headers().get("alt-svc");
            assert_eq!(field.map(|field| field.to_str().unwrap()), expected);
        }
        let mut quic = Http3::connect(server.address()).await;
        let response = quic.ask(get("/")).await.unwrap();
        assert!(!response.headers().contains_key("alt-svc"));
    }
}

#[tokio::test]
async fn impossible_fronts_are_refused_with_advice() {
    let bind = |alt_svc| {
        let config = Certificate::shared().config();
        let bound = Server::builder()
            .alt_svc(alt_svc)
            .bind("127.0.0.1:0", config);
        bound.unwrap_err()
    };
    let at = |host: &str, port| AltSvc::Host {
        host: host.to_owned(),
        port,
    };
    for alt_svc in [AltSvc::Port(0), at("localhost", 0)] {
        let error = bind(alt_svc);
        assert!(matches!(error, BindError::AltSvcPort), "{error}");
    }
    for wrong in [
        "",
        "a b",
        "a\"b",
        "user@host",
        "host:1",
        "::1",
        "a/b",
        "h\r\nx: y",
    ] {
        let error = bind(at(wrong, 443));
        assert!(
            matches!(&error, BindError::AltSvcHost(host) if host == wrong),
            "{error}"
        );
    }
    let config = Certificate::shared().config();
    let proxies = ProxyProtocol::from_networks(["127.0.0.1"]).unwrap();
    let builder = Server::builder().proxy_protocol(proxies.on_port(1));
    let error = builder.bind("127.0.0.1:0", config).unwrap_err();
    assert!(matches!(error, BindError::ProxyPort(1)), "{error}");
}

fn behind(networks: &[&str], limits: Limits) -> Running {
    let proxies = ProxyProtocol::from_networks(networks).unwrap();
    let builder = Server::builder().limits(limits).proxy_protocol(proxies);
    run_with(builder, Certificate::shared().config(), Router::new())
}

/// Asks over TCP behind a header. Returns the address that the service sees.
async fn seen(server: SocketAddr, alpn: &str, header: &[u8]) -> String {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    let mut stream = TcpStream::connect(server).await.unwrap();
    // Bytes that trickle are a header, too.
    for byte in header.chunks(1) {
        stream.write_all(byte).await.unwrap();
        tokio::task::yield_now().await;
    }
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let stream = soon(TlsConnector::from(Arc::new(tls)).connect(name, stream)).await;
    let io = TokioIo::new(stream.unwrap());
    let uri = if alpn == "h2" {
        "https://localhost/"
    } else {
        "/"
    };
    let request = http::Request::post(uri).header("host", "localhost");
    let request = request.body(Empty::<axum::body::Bytes>::new()).unwrap();
    let response = if alpn == "h2" {
        let shake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut send, connection) = shake.await.unwrap();
        tokio::spawn(connection);
        soon(send.send_request(request)).await.unwrap()
    } else {
        let (mut send, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        soon(send.send_request(request)).await.unwrap()
    };
    assert_eq!(response.status(), StatusCode::OK);
    let seen = response.headers()["x-peer"].to_str().unwrap().to_owned();
    response.into_body().collect().await.unwrap();
    seen
}

#[tokio::test]
async fn the_peer_of_a_request_is_the_client_of_the_proxy() {
    let server = behind(&["127.0.0.0/8"], Limits::default());
    let v1 = b"PROXY TCP4 192.0.2.1 198.51.100.1 4096 443\r\n";
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\x10\0\x01\xbb";
    for alpn in ["h2", "http/1.1"] {
        assert_eq!(seen(server.address(), alpn, v1).await, "192.0.2.1:4096");
        assert_eq!(seen(server.address(), alpn, v2).await, "192.0.2.1:4096");
        let own = seen(server.address(), alpn, b"PROXY UNKNOWN\r\n").await;
        assert!(own.starts_with("127.0.0.1:"), "{own}");
    }
    // Over QUIC, no proxy of this kind is in front.
    let mut quic = Http3::connect(server.address()).await;
    let response = quic.ask(get("/")).await.unwrap();
    let own = response.headers()["x-peer"].to_str().unwrap();
    assert!(own.starts_with("127.0.0.1:"), "{own}");
}

/// Other listeners have clients of their own.
#[tokio::test]
async fn only_one_port_may_be_behind_a_proxy() {
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (behind, open) = (listen(), listen());
    let [behind_at, open_at] = [&behind, &open].map(|it| it.local_addr().unwrap());
    let proxies = ProxyProtocol::from_networks(["127.0.0.0/8"]).unwrap();
    let builder = Server::builder().proxy_protocol(proxies.on_port(behind_at.port()));
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = Certificate::shared().config();
    let server = builder.bind_sockets([udp], [behind, open], config).unwrap();
    let page = async |peer: hybriq_http::Peer| [("x-peer", peer.address.to_string())];
    let app = Router::new().route("/", axum::routing::any(page));
    let serving = tokio::spawn(server.serve(app));
    let v1 = b"PROXY TCP4 192.0.2.1 198.51.100.1 4096 443\r\n";
    assert_eq!(seen(behind_at, "h2", v1).await, "192.0.2.1:4096");
    let own = seen(open_at, "h2", b"").await;
    assert!(own.starts_with("127.0.0.1:"), "{own}");
    serving.abort();
}

/// A header that is missing, lies, stays away or comes from elsewhere ends its connection, and no other.
#[tokio::test]
async fn bad_headers_of_proxies_end_their_connection() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(200);
    let server = behind(&["127.0.0.0/8"], limits);
    let lies: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PROXY TCP4 ::1 ::2 1 2\r\n",
        b"PROXY TCP4 192.0.2.1",
        b"",
    ];
    for lie in lies {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(lie).await.unwrap();
        let mut answer = Vec::new();
        // It may be reset.
        let _ = soon(stream.read_to_end(&mut answer)).await;
        assert_eq!(answer, b"", "{}", lie.escape_ascii());
    }
    let without = ask_over_tcp(server.address(), "h2", None, get("/")).await;
    assert!(without.is_err());

    // Nobody waits for a header while the server shuts down.
    let mut limits = Limits::default();
    limits.header_time = Duration::from_secs(3600);
    let server = behind(&["127.0.0.0/8"], limits);
    let _silent = TcpStream::connect(server.address()).await.unwrap();
    soon(async {
        while server.handle.connections() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    soon(server.handle.shutdown(Duration::from_secs(3600))).await;

    let server = behind(&["192.0.2.0/24"], Limits::default());
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let _ = stream.write_all(b"PROXY UNKNOWN\r\n").await;
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    assert_eq!(answer, b"");
}
