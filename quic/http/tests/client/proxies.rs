//! Proxies for connections over TCP, and those that answer nonsense.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::{StatusCode, Version};
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, ClientBuilder, ClientError, Http3, InvalidProxy, Proxy, ProxyError};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use crate::{
    common::{bytes, client_with, config, get, peer, post, uri},
    connections::{http1_acceptor, http1_server},
    support::{Certificate, run, soon},
};

const PASSWORD: &str = "hunter2";

/// A proxy of this scheme at an address.
fn proxy(scheme: &str, address: SocketAddr) -> Proxy {
    let proxy: Proxy = format!("{scheme}://{address}").parse().unwrap();
    proxy.credentials("me", PASSWORD).unwrap()
}

/// A proxy that reads messages of these lengths, or up to an empty line for 0, and gives these answers. Then it forwards
/// to the server. Tells what it read.
async fn forward(
    server: SocketAddr,
    script: &'static [(usize, &'static [u8])],
) -> (SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            for (len, answer) in script {
                let mut message = Vec::new();
                while message.len() < *len || *len == 0 && !message.ends_with(b"\r\n\r\n") {
                    message.push(client.read_u8().await.unwrap());
                }
                tell.send(message).unwrap();
                client.write_all(answer).await.unwrap();
            }
            let mut server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, told)
}

/// The same proxy with TLS before it.
async fn encrypted(proxy: SocketAddr) -> SocketAddr {
    let tls = http1_acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // A client may not trust it.
            let Ok(mut client) = tls.accept(client).await else {
                continue;
            };
            let mut proxy = TcpStream::connect(proxy).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut proxy).await });
        }
    });
    address
}

/// A client that can resolve no name.
fn through(proxy: Proxy, builder: ClientBuilder) -> Client {
    let literal = async |host: String, port| {
        let address = host.parse();
        let address = address.unwrap_or_else(|_| panic!("the client looks up {host}"));
        Ok(vec![SocketAddr::new(address, port)])
    };
    let builder = builder.resolver(literal).proxy(proxy);
    builder.build(config()).unwrap()
}

/// Both versions go through tunnels, the proxy resolves the names, and HTTP/3 is left out.
#[tokio::test]
async fn requests_go_through_a_proxy() {
    let http2 = run(Router::new());
    let (http1, _) = http1_server().await;
    for (server, version, body) in [
        (http2.address(), Version::HTTP_2, "hello".to_owned()),
        (
            http1,
            Version::HTTP_11,
            format!("localhost:{}", http1.port()),
        ),
    ] {
        let port = server.port();
        let script: &[(usize, &[u8])] = &[(
            0,
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 Yes\r\nx: y\r\n\r\n",
        )];
        let (address, mut told) = forward(server, script).await;
        let client = through(
            proxy("http", address),
            Client::builder().http3(Http3::First),
        );
        let response = post(&client, server, "hello").await.unwrap();
        assert_eq!(response.version(), version);
        assert_eq!(peer(&response).address, address);
        assert_eq!(bytes(response).await, body);
        // The server offers HTTP/3, which does not go through the proxy.
        assert_eq!(client.census().entries("alternatives"), 0);
        let asked = String::from_utf8(told.recv().await.unwrap()).unwrap();
        assert_eq!(
            asked,
            format!(
                "CONNECT localhost:{port} HTTP/1.1\r\nhost: localhost:{port}\r\nproxy-authorization: Basic \
                 bWU6aHVudGVyMg==\r\n\r\n"
            )
        );
        // With TLS within TLS.
        let outer = encrypted(address).await;
        let named = format!("https://localhost:{}", outer.port());
        let named: Proxy = named.parse().unwrap();
        let client = client_with(Client::builder().proxy(named.clone()), config());
        let response = post(&client, server, "hello").await.unwrap();
        assert_eq!(response.version(), version);
        assert_eq!(peer(&response).address, outer);
        assert_eq!(bytes(response).await, body);
        told.recv().await.unwrap();
        // A certificate that nobody trusts.
        let strange = ClientConfig::new().trust(Trust::roots_der([Certificate::new().der()]));
        let error = failed(&client_with(Client::builder().proxy(named), strange)).await;
        assert!(matches!(*error, ProxyError::Io(_)), "{error}");
        let script: &[(usize, &[u8])] = &[
            (4, &[5, 2]),
            (12, &[1, 0]),
            (16, b"\x05\0\0\x03\x04here\0\x01"),
        ];
        let (address, mut told) = forward(server, script).await;
        let client = through(proxy("socks5", address), Client::builder());
        let response = post(&client, server, "hello").await.unwrap();
        assert_eq!(
            (response.version(), bytes(response).await),
            (version, body.into())
        );
        assert_eq!(told.recv().await.unwrap(), [5, 2, 0, 2]);
        assert_eq!(told.recv().await.unwrap(), b"\x01\x02me\x07hunter2");
        let mut asked = b"\x05\x01\0\x03\x09localhost".to_vec();
        asked.extend(port.to_be_bytes());
        assert_eq!(told.recv().await.unwrap(), asked);
    }
}

/// Asks through a proxy that sends these bytes whatever the request is, and then nothing more.
async fn refused(scheme: &str, answer: impl Into<Vec<u8>>) -> Arc<ProxyError> {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        // The client may have heard enough.
        let _ = client.write_all(&answer).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut Vec::new()).await;
    });
    failed(&through(proxy(scheme, address), Client::builder())).await
}

/// Returns why a proxy makes no connection.
async fn failed(client: &Client) -> Arc<ProxyError> {
    let failed = soon(client.get("https://localhost:1/")).await.unwrap_err();
    let text = format!("{failed} {failed:?} {client:?}");
    assert!(!text.contains(PASSWORD) && !text.contains("bWU6"), "{text}");
    match failed {
        ClientError::Proxy { cause, .. } => cause,
        failed => panic!("{failed}"),
    }
}

#[tokio::test]
async fn a_proxy_that_answers_nonsense_is_told() {
    let refused_by = async |answer: &str| refused("http", answer).await;
    let refusal = refused_by("HTTP/1.1 407 Who?\r\n\r\n").await;
    assert!(matches!(*refusal, ProxyError::Credentials), "{refusal}");
    let refusal = refused_by("HTTP/1.0 403\r\ncontent-length: 2\r\n\r\nno").await;
    assert!(
        matches!(*refusal, ProxyError::Refused(StatusCode::FORBIDDEN)),
        "{refusal}"
    );
    for answer in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nmore",
        "HTTP/1.1 OK\r\n\r\n",
    ] {
        let refusal = refused_by(answer).await;
        assert!(
            matches!(*refusal, ProxyError::Malformed("HTTP/1.1")),
            "{answer}: {refusal}"
        );
    }
    for answer in ["x", "HTTP/1.1 103 Wait\r\n\r\n"] {
        let refusal = refused_by(&format!("HTTP/1.1 103 x{}", answer.repeat(20_000))).await;
        assert!(
            matches!(*refusal, ProxyError::TooLong(_)),
            "{answer}: {refusal}"
        );
    }
    let refused_by = async |answer: &[u8]| refused("socks5", answer).await;
    for answer in [&[5, 0xff][..], &[5, 2, 1, 9]] {
        let refusal = refused_by(answer).await;
        assert!(
            matches!(*refusal, ProxyError::Credentials),
            "{answer:?}: {refusal}"
        );
    }
    for answer in [
        &[4, 0][..],
        &[5, 1],
        &[5, 0, 4, 0, 0, 1],
        &[5, 0, 5, 0, 0, 9],
    ] {
        let refusal = refused_by(answer).await;
        assert!(
            matches!(*refusal, ProxyError::Malformed("SOCKS5")),
            "{answer:?}: {refusal}"
        );
    }
    let refusal = refused_by(&[5, 2, 1, 0, 5, 2, 0, 1]).await;
    assert!(matches!(*refusal, ProxyError::Reply(2)), "{refusal}");
    for (scheme, answer) in [
        ("http", &b"HTTP/1.1 200 O"[..]),
        ("http", &[]),
        ("socks5", &[5, 0, 5, 0]),
    ] {
        let ended = refused(scheme, answer).await;
        let is_end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        assert!(
            matches!(&*ended, ProxyError::Io(error) if is_end(error)),
            "{ended}"
        );
    }
}

#[tokio::test]
async fn a_proxy_that_is_silent_or_gone_is_given_up() {
    for scheme in ["http", "socks5"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = proxy(scheme, listener.local_addr().unwrap());
        let builder = Client::builder().connect_timeout(Duration::from_millis(100));
        let error = failed(&through(silent.clone(), builder)).await;
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        assert!(
            matches!(&*error, ProxyError::Io(error) if is_late(error)),
            "{error}"
        );
        drop(listener);
        let error = failed(&through(silent.clone(), Client::builder())).await;
        assert!(matches!(*error, ProxyError::Io(_)), "{error}");
        // Nothing goes around it.
        let only = Client::builder().http3(Http3::Only);
        let error = failed(&through(silent.clone(), only)).await;
        assert!(matches!(*error, ProxyError::Http3), "{error}");
        let server = run(Router::new());
        let builder = Client::builder().http3(Http3::Only);
        let client = client_with(builder.proxy(silent.except("localhost")), config());
        assert_eq!(
            get(&client, server.address()).await.version(),
            Version::HTTP_3
        );
        let other = soon(client.get(uri(server.address(), "/").replace("local", "notlocal"))).await;
        assert!(matches!(other, Err(ClientError::Proxy { .. })));
    }
}

#[test]
fn a_proxy_is_a_scheme_and_a_place() {
    for (text, shown) in [
        ("http://proxy", "http://proxy:80"),
        ("socks5://[::1]/", "socks5://[::1]:1080"),
        ("http://PROXY:8080", "http://proxy:8080"),
        ("https://proxy", "https://proxy:443"),
    ] {
        assert_eq!(format!("{:?}", text.parse::<Proxy>().unwrap()), shown);
    }
    for text in [
        "proxy:80",
        "https://me@proxy",
        "http://me:hunter2@proxy",
        "http://proxy/path",
        "http://",
        "",
    ] {
        let refused = text.parse::<Proxy>().map(drop).unwrap_err();
        assert_eq!(refused, InvalidProxy::Uri, "{text}");
        assert!(!refused.to_string().contains(PASSWORD));
    }
    let proxy: Proxy = "http://proxy".parse().unwrap();
    for (user, password) in [
        ("", "x"),
        ("a:b", "x"),
        ("me", ""),
        ("me", &*"x".repeat(256)),
    ] {
        let refused = proxy.clone().credentials(user, password).map(drop);
        assert_eq!(refused, Err(InvalidProxy::Credentials));
    }
}
