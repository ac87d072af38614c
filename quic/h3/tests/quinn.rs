//! Requests between hybriq and quinn, each with its adapter for the `h3` crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::large_futures, reason = "those of the h3 crate are large")]

mod support;

use std::{future::Future, net::SocketAddr, sync::Arc};

use bytes::{Buf, Bytes};
use h3::quic::{self, BidiStream, OpenStreams, RecvStream, SendStream};
use http::{Request, Response, StatusCode};
use hybriq_h3::adapter::Connection;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use support::{certificate, client, server, soon};

const BODY: usize = 300_000;

/// Answers one request with its own body.
async fn serve_one<C>(connection: C)
where
    C: quic::Connection<Bytes>,
    C::BidiStream: BidiStream<Bytes>,
{
    let mut connection = h3::server::Connection::new(connection).await.unwrap();
    let request = connection.accept().await.unwrap().unwrap();
    let (request, mut stream) = request.resolve_request().await.unwrap();
    assert_eq!(request.uri().path(), "/echo");
    stream.send_response(Response::new(())).await.unwrap();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        let len = data.remaining();
        stream.send_data(data.copy_to_bytes(len)).await.unwrap();
    }
    stream.finish().await.unwrap();
    // Until the client has closed the connection.
    while let Ok(Some(_)) = connection.accept().await {}
}

/// Sends a request with a body, and checks the response.
async fn ask<C, O>(connection: C)
where
    C: quic::Connection<Bytes, OpenStreams = O>,
    O: OpenStreams<Bytes>,
    O::BidiStream: BidiStream<Bytes>,
    <O::BidiStream as BidiStream<Bytes>>::SendStream: SendStream<Bytes>,
    <O::BidiStream as BidiStream<Bytes>>::RecvStream: RecvStream,
{
    let (mut driver, mut requests) = h3::client::new(connection).await.unwrap();
    let request = Request::post("https://localhost/echo").body(()).unwrap();
    let (mut send, mut recv) = requests.send_request(request).await.unwrap().split();
    let upload = async {
        send.send_data(Bytes::from(vec![7; BODY])).await.unwrap();
        send.finish().await.unwrap();
    };
    let download = async {
        let response = recv.recv_response().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut len = 0;
        while let Some(data) = recv.recv_data().await.unwrap() {
            len += data.remaining();
        }
        assert_eq!(len, BODY);
        drop(requests);
    };
    let end = std::future::poll_fn(|cx| driver.poll_close(cx));
    let ((), (), end) = tokio::join!(upload, download, end);
    assert!(end.is_h3_no_error(), "{end}");
}

fn quinn_server() -> quinn::Endpoint {
    let (chain, key) = certificate();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider);
    let tls = tls
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    tls.alpn_protocols = vec![hybriq_h3::ALPN.into()];
    let config = QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(config));
    quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap()
}

fn quinn_client() -> quinn::Endpoint {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate().0).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![hybriq_h3::ALPN.into()];
    let config = QuicClientConfig::try_from(tls).unwrap();
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
    endpoint
}

async fn both(server: impl Future<Output = ()>, client: impl Future<Output = ()>) {
    soon(async { tokio::join!(server, client) }).await;
}

#[tokio::test]
async fn quinn_asks_hybriq() {
    let server = server();
    let address: SocketAddr = server.local_address();
    let serve = async {
        let connection = server.accept().await.unwrap().accept().await.unwrap();
        assert!(connection.handshake().key_exchange.is_post_quantum());
        serve_one(Connection::new(connection)).await;
    };
    let client = quinn_client();
    let ask = async {
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        ask(h3_quinn::Connection::new(connection)).await;
    };
    both(serve, ask).await;
}

#[tokio::test]
async fn hybriq_asks_quinn() {
    let server = quinn_server();
    let address = server.local_addr().unwrap();
    let serve = async {
        let connection = server.accept().await.unwrap().await.unwrap();
        serve_one(h3_quinn::Connection::new(connection)).await;
    };
    let client = client();
    let ask = async {
        let connection = client.connect(address, "localhost").await.unwrap();
        ask(Connection::new(connection)).await;
    };
    both(serve, ask).await;
}
