//! Servers over TCP that send what they like.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls, server::TlsStream};

use crate::support::Certificate;

/// A frame of HTTP/2.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) id: u32,
}

pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;

/// Listens for clients of this protocol, and serves each in its own task.
pub(crate) async fn listen<F>(
    alpn: &str,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let certificate = Certificate::shared();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der()], certificate.key())
        .unwrap();
    config.alpn_protocols = vec![alpn.into()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = acceptor.accept(stream).await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Reads the head of a request of HTTP/1.1. `None` if there is none.
pub(crate) async fn http1_head(stream: &mut TlsStream<TcpStream>) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// Begins a connection of HTTP/2.
pub(crate) async fn http2_begin(stream: &mut TlsStream<TcpStream>) {
    stream.read_exact(&mut [0; 24]).await.unwrap();
    write(stream, &frame(SETTINGS, 0, 0, &[])).await;
}

/// Reads a frame of HTTP/2. `None` if there is none.
pub(crate) async fn http2_read(stream: &mut TlsStream<TcpStream>) -> Option<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, _flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some(Frame {
        kind,
        id: u32::from_be_bytes(id),
    })
}

/// Returns a frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = len[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Sends bytes. Returns false if the connection is over.
pub(crate) async fn write(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok() && stream.flush().await.is_ok()
}
