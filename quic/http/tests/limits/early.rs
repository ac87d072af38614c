//! Requests of clients that come back, as early as the version allows.

use std::{net::SocketAddr, sync::Arc};

use axum::Router;
use hybriq_http::{Limits, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsConnector, rustls};

use crate::{
    client::{VERSIONS, Version},
    support::{Certificate, Http3, ask, client_config, post, run_with, soon},
};

/// Returns the status of an unsafe request of a client that comes back, and whether it was early.
async fn ask_again(version: Version, server: SocketAddr) -> (u16, bool) {
    match version {
        Version::Http1 => ask_again_over_tcp(server, "http/1.1").await,
        Version::Http2 => ask_again_over_tcp(server, "h2").await,
        Version::Http3 => {
            let config = client_config(&Certificate::shared()).offer_early_data();
            let mut first = Http3::with(server, config).await;
            first.ask(post("/", "ticket")).await.unwrap();
            let connecting = first.endpoint.connect(server, "localhost");
            let Ok(early) = soon(connecting.early()).await else {
                return (0, false);
            };
            let transport = hybriq_h3::adapter::Connection::new(early.clone());
            let mut builder = h3::client::builder();
            let (_driver, mut requests) = soon(builder.build(transport)).await.unwrap();
            let response = ask(&mut requests, post("/", "x")).await.unwrap();
            (response.status().as_u16(), true)
        }
    }
}

/// The same over TCP, where the second connection has a ticket too, and sends early what that allows.
async fn ask_again_over_tcp(server: SocketAddr, alpn: &str) -> (u16, bool) {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    tls.enable_early_data = true;
    let connector = TlsConnector::from(Arc::new(tls));
    let (mut is_early, mut status) = (false, 0);
    for is_back in [false, true] {
        let stream = tokio::net::TcpStream::connect(server).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let mut had_early = false;
        let connecting = connector.connect_with(name, stream, |connection| {
            had_early = connection.early_data().is_some();
        });
        let mut stream = soon(connecting).await.unwrap();
        let kind = stream.get_ref().1.handshake_kind();
        let resumed = kind == Some(rustls::HandshakeKind::Resumed);
        assert_eq!(resumed, is_back, "{alpn}");
        is_early = had_early;
        status = if alpn == "h2" {
            // The preface, empty SETTINGS, and `POST /` for the authority `a`.
            let asked = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x83\x84\x87\x41\x01a";
            stream.write_all(asked).await.unwrap();
            stream.flush().await.unwrap();
            soon(http2_status(&mut stream)).await
        } else {
            let asked = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(asked).await.unwrap();
            stream.flush().await.unwrap();
            let mut head = [0; 12];
            soon(stream.read_exact(&mut head)).await.unwrap();
            String::from_utf8_lossy(&head[9..]).parse().unwrap()
        };
    }
    (status, is_early)
}

/// Reads frames up to a response, and returns its status, if that is 200.
async fn http2_status(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> u16 {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; len as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == 1 {
            return if payload[0] == 0x88 { 200 } else { 0 };
        }
    }
}

/// An unsafe request that may be a replay is not answered. Tickets of TLS over TCP allow no early data, so that
/// none of those can be one.
#[tokio::test]
async fn unsafe_requests_that_may_be_replays_are_not_answered() {
    for version in VERSIONS {
        let config = Certificate::shared().config().accept_early_data();
        let builder = Server::builder().limits(Limits::default());
        let server = run_with(builder, config, Router::new());
        let asked = ask_again(version, server.address()).await;
        let expected = match version {
            Version::Http1 | Version::Http2 => (200, false),
            Version::Http3 => (425, true),
        };
        assert_eq!(asked, expected, "{version:?}");
    }
}
