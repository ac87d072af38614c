//! Clients of all versions, and bodies that tell when they are dropped.

use std::{
    fmt,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http::{Method, Request, Version};
use http_body::Frame;
use http_body_util::Empty;
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, Http3 as Use};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
};
use tokio_rustls::client::TlsStream;

use crate::support::{Certificate, connect_tls, soon};

/// All versions of HTTP.
pub(crate) const VERSIONS: [Version; 3] = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

/// Tells when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        // The test may not listen any more.
        let _ = self.0.send(());
    }
}

/// What the guards of a server tell.
pub(crate) struct Guards {
    tell: mpsc::UnboundedSender<()>,
    told: mpsc::UnboundedReceiver<()>,
}

impl Guards {
    pub(crate) fn new() -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self { tell, told }
    }

    /// Returns a function that makes guards.
    pub(crate) fn make(&self) -> impl Fn() -> Guard + Clone + Send + Sync + use<> {
        let tell = self.tell.clone();
        move || Guard(tell.clone())
    }

    /// Waits until one is dropped.
    pub(crate) async fn dropped(&mut self, what: impl fmt::Debug) {
        let told = tokio::time::timeout(std::time::Duration::from_secs(20), self.told.recv());
        assert!(told.await.is_ok(), "{what:?}: nothing was dropped");
    }
}

/// A body that has some data first, perhaps none, and then neither data nor an end.
pub(crate) struct Silent {
    first: Option<Bytes>,
    _guard: Guard,
}

impl Silent {
    pub(crate) fn body(first: &'static [u8], guard: Guard) -> Body {
        Body::new(Self::raw(first, guard))
    }

    pub(crate) fn raw(first: &'static [u8], guard: Guard) -> Self {
        let first = (!first.is_empty()).then(|| Bytes::from_static(first));
        Self {
            first,
            _guard: guard,
        }
    }
}

impl http_body::Body for Silent {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Poll::Pending,
        }
    }
}

/// A client that speaks one version.
pub(crate) enum Asker {
    Tcp(Box<TlsStream<TcpStream>>),
    Pooled(Client, SocketAddr),
}

/// A response whose head has come, and which is cancelled when it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "dropped")]
pub(crate) struct Begun(Option<http::Response<hybriq_http::Body>>);

impl Asker {
    pub(crate) async fn new(version: Version, server: SocketAddr) -> Self {
        if version == Version::HTTP_11 {
            let stream = connect_tls(server, "http/1.1").await.unwrap();
            return Self::Tcp(Box::new(stream));
        }
        let http3 = if version == Version::HTTP_3 {
            Use::Only
        } else {
            Use::Off
        };
        let trust = Trust::roots_der([Certificate::shared().der()]);
        let client = Client::builder()
            .http3(http3)
            .resolve("localhost", [server])
            .build(ClientConfig::new().trust(trust));
        Self::Pooled(client.unwrap(), server)
    }

    /// Sends a request without waiting for anything.
    pub(crate) async fn ask(&mut self, method: Method, path: &str, body: &'static [u8]) -> Pending {
        match self {
            Self::Tcp(stream) => {
                let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                if body.is_empty() {
                    stream.write_all(b"\r\n").await.unwrap();
                } else {
                    let length = b"content-length: 1000000\r\n\r\n";
                    stream.write_all(length).await.unwrap();
                    stream.write_all(body).await.unwrap();
                }
                stream.flush().await.unwrap();
                Pending::Tcp
            }
            Self::Pooled(client, server) => {
                let uri = format!("https://localhost:{}{path}", server.port());
                let request = Request::builder().method(method).uri(uri);
                let guard = Guards::new().make()();
                let response = if body.is_empty() {
                    client.request(request.body(Empty::<Bytes>::new()).unwrap())
                } else {
                    client.request(request.body(Silent::raw(body, guard)).unwrap())
                };
                Pending::Pooled(tokio::spawn(response))
            }
        }
    }

    /// Sends a request, and waits for the head of the response.
    pub(crate) async fn begin(&mut self, path: &str) -> Begun {
        match self.ask(Method::GET, path, b"").await {
            Pending::Tcp => {
                let Self::Tcp(stream) = self else {
                    unreachable!()
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(soon(stream.read_u8()).await.unwrap());
                }
                Begun(None)
            }
            Pending::Pooled(response) => Begun(Some(soon(response).await.unwrap().unwrap())),
        }
    }
}

/// A request without a response.
pub(crate) enum Pending {
    Tcp,
    Pooled(
        tokio::task::JoinHandle<
            Result<http::Response<hybriq_http::Body>, hybriq_http::ClientError>,
        >,
    ),
}

impl Pending {
    /// Gives the request up.
    pub(crate) fn cancel(self) {
        if let Self::Pooled(response) = self {
            response.abort();
        }
    }
}

/// HEADERS of a request of extended CONNECT for the protocol `websocket` and `/upgrade`.
pub(crate) fn connect() -> Vec<u8> {
    // CONNECT, `https`; `:authority` and `:path` by the names of the static table.
    let mut section = vec![0, 0, 0xcf, 0xd7, 0x50, 9];
    section.extend(b"localhost");
    section.extend([0x51, 8]);
    section.extend(b"/upgrade");
    section.extend([0x27, 2]);
    section.extend(b":protocol");
    section.push(9);
    section.extend(b"websocket");
    let mut frame = vec![1, 0x40, section.len() as u8];
    frame.extend(section);
    frame
}

/// HEADERS of `GET` or `POST` for a path.
pub(crate) fn headers(method: &Method, path: &str) -> Vec<u8> {
    let method = if *method == Method::GET { 0xd1 } else { 0xd4 };
    let mut section = vec![0, 0, method, 0xd7, 0x50, 1, b'a', 0x51, path.len() as u8];
    section.extend(path.as_bytes());
    let mut frame = vec![1, section.len() as u8];
    frame.extend(section);
    frame
}
