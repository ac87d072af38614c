//! Servers and clients over loopback.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test file uses a part of it; a failure here is a failed test"
)]

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, mpsc},
    time::Duration,
};

use axum::{
    Extension, Router,
    body::{Body, Bytes},
    response::Response,
    routing::any,
};
use http::{Method, Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Empty, Full};
use hybriq::{
    ClientConfig, Endpoint, Identity, ServerConfig, Trust,
    stage::Stage,
    stats::Census,
    tls::{CertificateDer, PrivateKeyDer},
};
use hybriq_http::{Handle, Peer, Server, ServerBuilder};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::oneshot;
use tokio_rustls::{TlsConnector, rustls};

/// Returns what `.ci/judges` has installed under this name, or says that nothing is.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = env::var_os("HYBRIQ_JUDGES").map(|folder| Path::new(&folder).join(name));
    let found = path.filter(|path| path.exists());
    if found.is_none() {
        test_summary::skip(format!(
            "HYBRIQ_JUDGES names no folder with {name}: .ci/judges makes one"
        ));
    }
    found
}

/// A self-signed certificate for `localhost` and its key.
#[derive(Clone)]
pub struct Certificate(Arc<(Vec<u8>, Vec<u8>)>);

impl Certificate {
    pub fn new() -> Self {
        Self::of("localhost")
    }

    /// The same for another host.
    pub fn of(host: &str) -> Self {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let der = (made.cert.der().to_vec(), made.signing_key.serialize_der());
        Self(Arc::new(der))
    }

    /// The one that tests share.
    pub fn shared() -> Self {
        static SHARED: OnceLock<Certificate> = OnceLock::new();
        SHARED.get_or_init(Self::new).clone()
    }

    pub fn der(&self) -> CertificateDer<'static> {
        self.0.0.clone().into()
    }

    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.0.1.clone()).unwrap()
    }

    pub fn identity(&self) -> Identity {
        Identity::from_der(vec![self.der()], self.key())
    }

    pub fn config(&self) -> ServerConfig {
        ServerConfig::new(self.identity())
    }
}

/// Answers with the facts about the connection as fields, and with the body of the request.
async fn echo(Extension(peer): Extension<Peer>, body: Bytes) -> Response {
    Response::builder()
        .header("x-version", format!("{:?}", peer.version))
        .header("x-group", peer.tls.to_string())
        .header("x-early", peer.early.to_string())
        .header("x-name", peer.tls.server_name.clone().unwrap_or_default())
        .header("x-peer", peer.address.to_string())
        .body(body.into())
        .unwrap()
}

/// A server that runs, on a thread of its own. Dropping it shuts it down, and fails the test if it holds
/// anything then.
pub struct Running {
    pub handle: Handle,
    pub serving: tokio::task::JoinHandle<()>,
    /// The runtime of the server, for its counters.
    pub runtime: tokio::runtime::Handle,
    rest: Rest,
}

/// Checks that a server comes to rest.
struct Rest {
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Census>>,
}

impl Drop for Rest {
    fn drop(&mut self) {
        drop(self.end.take());
        let left = self.thread.take().map(std::thread::JoinHandle::join);
        if let (Some(left), false) = (left, std::thread::panicking()) {
            let left = left.expect("the server panicked");
            assert!(left.is_empty(), "a server at rest holds {left}");
        }
    }
}

/// Serves until the test is over. Returns what is left then.
async fn serve(
    server: Server,
    router: Router,
    tell: mpsc::Sender<(Handle, tokio::task::JoinHandle<()>, tokio::runtime::Handle)>,
    end: oneshot::Receiver<()>,
) -> Census {
    let handle = server.handle();
    let serving = tokio::spawn(async move { server.serve(router).await.unwrap() });
    let runtime = tokio::runtime::Handle::current();
    tell.send((handle.clone(), serving, runtime)).unwrap();
    // It is dropped.
    let _ = end.await;
    handle.shutdown(Duration::ZERO).await;
    let nothing = Census::default();
    // Tasks end a moment after their connections.
    for _ in 0..500 {
        if handle.census().grown_since(&nothing).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    handle.census().grown_since(&nothing)
}

pub fn run(router: Router) -> Running {
    run_with(Server::builder(), Certificate::shared().config(), router)
}

pub fn run_with(builder: ServerBuilder, config: ServerConfig, router: Router) -> Running {
    run_prepared(|| {}, builder, config, router)
}

/// The same, on a thread that was prepared.
pub fn run_prepared(
    prepare: impl FnOnce() + Send + 'static,
    builder: ServerBuilder,
    config: ServerConfig,
    router: Router,
) -> Running {
    let router = router.fallback(any(echo));
    let (tell, told) = mpsc::channel();
    let (end, ends) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        prepare();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let server = builder.bind("127.0.0.1:0", config).unwrap();
            serve(server, router, tell, ends).await
        })
    });
    let (handle, serving, runtime) = told.recv().expect("the server does not start");
    Running {
        handle,
        serving,
        runtime,
        rest: Rest {
            end: Some(end),
            thread: Some(thread),
        },
    }
}

impl Running {
    /// Returns the number of tasks of the server and its services.
    pub fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    pub fn address(&self) -> SocketAddr {
        self.handle.local_address()
    }
}

pub type Requests = h3::client::SendRequest<hybriq_h3::adapter::OpenStreams, Bytes>;
pub type Driver = h3::client::Connection<hybriq_h3::adapter::Connection, Bytes>;

/// A client of HTTP/3.
pub struct Http3 {
    pub endpoint: Endpoint,
    pub connection: hybriq::Connection,
    pub requests: Requests,
    pub driver: tokio::task::JoinHandle<h3::error::ConnectionError>,
}

pub fn client_config(certificate: &Certificate) -> ClientConfig {
    let trust = Trust::roots_der([certificate.der()]);
    ClientConfig::new().alpn([hybriq_h3::ALPN]).trust(trust)
}

impl Http3 {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::with(address, client_config(&Certificate::shared())).await
    }

    pub async fn with(address: SocketAddr, config: ClientConfig) -> Self {
        let endpoint = Endpoint::client(config).unwrap();
        let connection = soon(endpoint.connect(address, "localhost")).await.unwrap();
        let transport = hybriq_h3::adapter::Connection::new(connection.clone());
        let mut builder = h3::client::builder();
        let (mut driver, requests): (Driver, Requests) =
            soon(builder.build(transport)).await.unwrap();
        let driver =
            tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
        Self {
            endpoint,
            connection,
            requests,
            driver,
        }
    }

    /// Sends a request and reads the response.
    pub async fn ask(
        &mut self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, h3::error::StreamError> {
        ask(&mut self.requests, request).await
    }
}

pub async fn ask<S: Stage>(
    requests: &mut h3::client::SendRequest<hybriq_h3::adapter::OpenStreams<S>, Bytes>,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, h3::error::StreamError> {
    let (parts, body) = request.into_parts();
    let head = http::Request::from_parts(parts, ());
    let mut stream = soon(requests.send_request(head)).await?;
    // A server may answer before the end of the request has arrived, and needs the rest no more (RFC 9114 §4.1).
    let unless_answered = |sent| match sent {
        Err(h3::error::StreamError::RemoteTerminate { code, .. })
            if code == h3::error::Code::H3_NO_ERROR =>
        {
            Ok(())
        }
        sent => sent,
    };
    if !body.is_empty() {
        unless_answered(soon(stream.send_data(body)).await)?;
    }
    unless_answered(soon(stream.finish()).await)?;
    let response = soon(stream.recv_response()).await?;
    let mut all = Vec::new();
    while let Some(mut data) = soon(stream.recv_data()).await? {
        let len = bytes::Buf::remaining(&data);
        all.extend(bytes::Buf::copy_to_bytes(&mut data, len));
    }
    Ok(response.map(|()| all.into()))
}

/// Does a handshake of TLS over TCP.
pub async fn connect_tls(
    address: SocketAddr,
    alpn: &str,
) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    let stream = tokio::net::TcpStream::connect(address).await?;
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    soon(TlsConnector::from(Arc::new(tls)).connect(name, stream)).await
}

/// Sends a request over TCP, by HTTP/2 or HTTP/1.1, and reads the response.
pub async fn ask_over_tcp(
    address: SocketAddr,
    alpn: &str,
    groups: Option<&[rustls::NamedGroup]>,
    request: http::Request<Bytes>,
) -> std::io::Result<http::Response<Bytes>> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    if let Some(groups) = groups {
        provider
            .kx_groups
            .retain(|group| groups.contains(&group.name()));
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    let stream = tokio::net::TcpStream::connect(address).await?;
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let stream = soon(TlsConnector::from(Arc::new(tls)).connect(name, stream)).await?;
    let io = TokioIo::new(stream);
    let request = request.map(Full::new);
    let response = if alpn == "h2" {
        let executor = TokioExecutor::new();
        let (mut send, connection) = hyper::client::conn::http2::handshake(executor, io)
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        send.send_request(request).await
    } else {
        let (mut send, connection) = hyper::client::conn::http1::handshake(io)
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        send.send_request(request).await
    };
    let (parts, body) = response.map_err(std::io::Error::other)?.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?;
    Ok(http::Response::from_parts(parts, body.to_bytes()))
}

/// Returns the response that agrees to another protocol.
pub fn agreed(version: Version) -> Response {
    let response = Response::builder();
    let response = if version == Version::HTTP_11 {
        let response = response.header("upgrade", "websocket");
        response.status(StatusCode::SWITCHING_PROTOCOLS)
    } else {
        response.status(StatusCode::OK)
    };
    let response = response.header("connection", "upgrade");
    response.body(Body::empty()).unwrap()
}

/// Opens the stream of another protocol over TCP, and returns the client's end.
pub async fn upgrade(
    version: Version,
    server: SocketAddr,
    path: &str,
) -> TokioIo<hyper::upgrade::Upgraded> {
    upgrade_to("websocket", version, server, path).await
}

/// The same for any protocol.
pub async fn upgrade_to(
    protocol: &'static str,
    version: Version,
    server: SocketAddr,
    path: &str,
) -> TokioIo<hyper::upgrade::Upgraded> {
    let alpn = if version == Version::HTTP_2 {
        "h2"
    } else {
        "http/1.1"
    };
    let io = TokioIo::new(connect_tls(server, alpn).await.unwrap());
    let request = Request::builder();
    let response = if version == Version::HTTP_2 {
        let shake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut send, connection) = soon(shake).await.unwrap();
        tokio::spawn(connection);
        // The client learns from the server's SETTINGS that it may.
        soon(send.ready()).await.unwrap();
        let protocol = hyper::ext::Protocol::from_static(protocol);
        let request = request.method(Method::CONNECT).extension(protocol);
        let request = request.header("sec-websocket-version", "13");
        let request = request.uri(format!("https://localhost{path}"));
        soon(send.send_request(request.body(Empty::<Bytes>::new()).unwrap())).await
    } else {
        let shake = hyper::client::conn::http1::handshake(io);
        let (mut send, connection) = soon(shake).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        let request = request.uri(path).header("host", "localhost");
        let request = request.header("upgrade", protocol);
        let request = request.header("connection", "upgrade");
        let request = request.header("sec-websocket-version", "13");
        let request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        soon(send.send_request(request.body(Empty::<Bytes>::new()).unwrap())).await
    };
    let upgraded = hyper::upgrade::on(response.unwrap());
    TokioIo::new(soon(upgraded).await.unwrap())
}

pub fn get(path: &str) -> http::Request<Bytes> {
    let uri = format!("https://localhost{path}");
    http::Request::get(uri).body(Bytes::new()).unwrap()
}

pub fn post(path: &str, body: impl Into<Bytes>) -> http::Request<Bytes> {
    let uri = format!("https://localhost{path}");
    http::Request::post(uri).body(body.into()).unwrap()
}

/// Waits for a future that is ready within seconds unless something is broken.
pub async fn soon<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("hangs")
}
