//! Interim responses (1xx): those of services, and the answers to `expect: 100-continue`.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use axum::{
    Extension, Router,
    body::{Body, Bytes},
    routing::any,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hybriq::{Endpoint, RecvStream, SendStream, tls::Side};
use hybriq_h3::{Config, Connection, Received, Receiver, Settings, put_data_head};
use hybriq_http::{Interim, InterimError, Server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
};
use tokio_rustls::client::TlsStream;

use crate::{
    messages::{VERSIONS, ask, request},
    support::{Certificate, Running, client_config, connect_tls, run, run_with, soon},
};

/// The versions that have interim responses here.
const HAVE: [Version; 2] = [Version::HTTP_11, Version::HTTP_3];

/// A request whose client sees every head of its response.
enum Asked {
    Http1(Box<TlsStream<TcpStream>>),
    Http3(Box<Http3>),
}

struct Http3 {
    core: Connection,
    receiver: Receiver<Response<()>>,
    send: SendStream,
    recv: RecvStream,
    _connection: hybriq::Connection,
}

impl Asked {
    /// Sends the head of a request.
    async fn begin(version: Version, server: &Running, head: &Request<()>) -> Self {
        if version == Version::HTTP_11 {
            let mut stream = connect_tls(server.address(), "http/1.1").await.unwrap();
            let mut text = format!(
                "{} {} HTTP/1.1\r\nhost: localhost\r\n",
                head.method(),
                head.uri().path()
            );
            let fields = head.headers().iter();
            text.extend(
                fields.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())),
            );
            text += "\r\n";
            stream.write_all(text.as_bytes()).await.unwrap();
            return Self::Http1(Box::new(stream));
        }
        let client = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let connection = soon(client.connect(server.address(), "localhost"))
            .await
            .unwrap();
        let (mut send, recv) = connection.open_bidi().await.unwrap();
        let mut core = Connection::new(Side::Client, Config::new(Settings::new()));
        let mut bytes = Vec::new();
        core.write_request(send.id(), head, &mut bytes).unwrap();
        send.write_all(&bytes).await.unwrap();
        Self::Http3(Box::new(Http3 {
            core,
            receiver: Receiver::response(send.id(), head.method()),
            send,
            recv,
            _connection: connection,
        }))
    }

    /// Sends the body.
    async fn send(&mut self, body: &str) {
        match self {
            Self::Http1(stream) => stream.write_all(body.as_bytes()).await.unwrap(),
            Self::Http3(http3) => {
                let mut head = Vec::new();
                put_data_head(body.len() as u64, &mut head);
                let body = Bytes::copy_from_slice(body.as_bytes());
                let mut chunks = [head.into(), body];
                http3.send.finish_with(&mut chunks).await.unwrap();
            }
        }
    }

    /// Returns the next head.
    async fn head(&mut self) -> (StatusCode, HeaderMap) {
        soon(async {
            match self {
                Self::Http1(stream) => {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.unwrap());
                    }
                    parse(&String::from_utf8(head).unwrap())
                }
                Self::Http3(http3) => loop {
                    match http3.receiver.poll(&mut http3.core).unwrap() {
                        Received::Head(head) => return (head.status(), head.headers().clone()),
                        Received::NeedData => {
                            match http3.recv.read_chunk(usize::MAX).await.unwrap() {
                                Some(data) => http3.receiver.on_data(data),
                                None => http3.receiver.on_fin(),
                            }
                        }
                        other => panic!("{other:?}"),
                    }
                },
            }
        })
        .await
    }
}

fn parse(head: &str) -> (StatusCode, HeaderMap) {
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let fields = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse().unwrap(), value.parse().unwrap())
    });
    let fields: HeaderMap = fields
        .map(|(name, value): (http::HeaderName, HeaderValue)| (name, value))
        .collect();
    (status.parse().unwrap(), fields)
}

fn head(method: Method, path: &str, fields: &[(&'static str, &'static str)]) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = format!("https://localhost{path}").parse().unwrap();
    for (name, value) in fields {
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(*name, value);
    }
    request
}

/// A server whose service may send interim responses.
fn hinting(router: Router) -> Running {
    let builder = Server::builder().interim_responses();
    run_with(builder, Certificate::shared().config(), router)
}

fn hints(link: &'static str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert("link", HeaderValue::from_static(link));
    // It would be wrong here.
    fields.insert("content-length", HeaderValue::from_static("5"));
    fields.insert("connection", HeaderValue::from_static("close"));
    fields
}

/// The first ones arrive while the service still works, the last one together with the response.
#[tokio::test]
async fn interim_responses_arrive_before_the_response() {
    let go_on = Arc::new(Notify::new());
    let told = go_on.clone();
    let handler = async move |Extension(interim): Extension<Interim>| {
        interim.early_hints(hints("</a>")).unwrap();
        // Another task may send it, too.
        let other = interim.clone();
        tokio::spawn(async move { other.early_hints(hints("</b>")) });
        told.notified().await;
        interim.early_hints(hints("</c>")).unwrap();
        "done"
    };
    let server = hinting(Router::new().route("/", any(handler)));
    for version in HAVE {
        let mut asked = Asked::begin(version, &server, &head(Method::GET, "/", &[])).await;
        for link in ["</a>", "</b>", "</c>"] {
            if link == "</c>" {
                go_on.notify_one();
            }
            let (status, fields) = asked.head().await;
            assert_eq!(status, StatusCode::EARLY_HINTS, "{version:?}");
            assert_eq!(fields["link"], link, "{version:?}");
            assert_eq!(fields.len(), 1, "{version:?}: {fields:?}");
        }
        let (status, fields) = asked.head().await;
        assert_eq!(status, StatusCode::OK, "{version:?}");
        assert_eq!(fields["content-length"], "4", "{version:?}");
    }
}

/// Over HTTP/2 the service learns that it cannot, and everywhere when it is too late.
#[tokio::test]
async fn a_service_learns_why_it_cannot_send_an_interim_response() {
    let late = Arc::new(std::sync::Mutex::new(None));
    let kept = late.clone();
    let handler = async move |Extension(interim): Extension<Interim>| {
        let sent = interim.early_hints(HeaderMap::new());
        *kept.lock().unwrap() = Some(interim);
        format!("{sent:?}")
    };
    let server = hinting(Router::new().route("/", any(handler)));
    for version in VERSIONS {
        let get = request(server.address(), Method::GET, "/", Empty::<Bytes>::new());
        let response = ask(version, server.address(), get).await.unwrap();
        let interim = late.lock().unwrap().take().unwrap();
        let (sent, later) = match version {
            Version::HTTP_2 => (Err(InterimError::Version), InterimError::Version),
            _ => (Ok(()), InterimError::Late),
        };
        let told = response.into_body().to_bytes();
        assert_eq!(told, format!("{sent:?}"), "{version:?}");
        assert_eq!(
            interim.early_hints(HeaderMap::new()),
            Err(later),
            "{version:?}"
        );
    }
    let mut asked = connect_tls(server.address(), "http/1.1").await.unwrap();
    asked.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut all = String::new();
    soon(asked.read_to_string(&mut all)).await.unwrap();
    assert!(all.starts_with("HTTP/1.0 200"), "{all}");
    assert!(all.ends_with("Err(Version)"), "{all}");
}

const EXPECTS: [(&str, &str); 2] = [("expect", "100-Continue"), ("content-length", "5")];

/// RFC 9110 §10.1.1.
#[tokio::test]
async fn a_client_that_expects_it_gets_100_when_the_service_reads_the_body() {
    let server = run(Router::new().route("/", any(async |body: Bytes| body)));
    for version in HAVE {
        let mut asked = Asked::begin(version, &server, &head(Method::POST, "/", &EXPECTS)).await;
        let (status, fields) = asked.head().await;
        assert_eq!(status, StatusCode::CONTINUE, "{version:?}");
        assert!(fields.is_empty(), "{version:?}: {fields:?}");
        asked.send("hello").await;
        let (status, fields) = asked.head().await;
        assert_eq!(status, StatusCode::OK, "{version:?}");
        assert_eq!(fields["content-length"], "5", "{version:?}");
    }
}

/// The body is not wanted, or nothing is expected that this server knows, which it ignores like hyper, or no body
/// comes.
#[tokio::test]
async fn a_client_gets_no_100_for_nothing() {
    let refuse = async || StatusCode::PAYLOAD_TOO_LARGE;
    let read = async |Extension(interim): Extension<Interim>, mut body: Body| {
        let frame = poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx))).await;
        // A 100 for that would come before this.
        interim.early_hints(HeaderMap::new()).unwrap();
        drop(frame);
        body.collect().await.unwrap().to_bytes()
    };
    let router = Router::new().route("/refuse", any(refuse));
    let server = hinting(router.route("/read", any(read)));
    let unknown = [("expect", "a-miracle"), ("content-length", "5")];
    let nothing = [("expect", "100-continue"), ("content-length", "0")];
    for version in HAVE {
        let refused = head(Method::POST, "/refuse", &EXPECTS);
        let mut asked = Asked::begin(version, &server, &refused).await;
        let (status, _) = asked.head().await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{version:?}");
        for (fields, body) in [(unknown, "hello"), (nothing, "")] {
            let read = head(Method::POST, "/read", &fields);
            let mut asked = Asked::begin(version, &server, &read).await;
            let (status, _) = asked.head().await;
            assert_eq!(status, StatusCode::EARLY_HINTS, "{version:?} {fields:?}");
            asked.send(body).await;
            let (status, _) = asked.head().await;
            assert_eq!(status, StatusCode::OK, "{version:?} {fields:?}");
        }
    }
}
