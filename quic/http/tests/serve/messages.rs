//! Rules for messages that are the same over HTTP/1.1, HTTP/2 and HTTP/3, with one service behind all three.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    BoxError, Router,
    body::{Body, Bytes},
    extract::{Path, Request},
    response::Response,
    routing::any,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header::COOKIE};
use http_body::{Body as _, Frame};
use http_body_util::{
    BodyExt as _, Collected, Empty, Full, StreamBody, channel::Channel, combinators::UnsyncBoxBody,
};
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Client, Http3, Server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower_service::Service;

use crate::support::{Certificate, connect_tls, run, soon};

pub(crate) const VERSIONS: [Version; 3] = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

type Answer = Result<http::Response<Collected<Bytes>>, String>;

/// Sends a request over a connection of its own, and reads the whole response.
pub(crate) async fn ask<B>(
    version: Version,
    server: SocketAddr,
    request: http::Request<B>,
) -> Answer
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    soon(async {
        let (parts, body) = begin(version, server, request).await?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok(http::Response::from_parts(parts, body))
    })
    .await
}

/// A body that was received.
type Read = UnsyncBoxBody<Bytes, BoxError>;

/// Sends a request over a connection of its own, and reads the fields of the response.
pub(crate) async fn begin<B>(
    version: Version,
    server: SocketAddr,
    request: http::Request<B>,
) -> Result<http::Response<Read>, String>
where
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    if version == Version::HTTP_3 {
        let response = client(Http3::Only).request(request).await;
        let response = response.map_err(|error| error.to_string())?;
        return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
    }
    let response = if version == Version::HTTP_2 {
        let io = TokioIo::new(connect_tls(server, "h2").await.unwrap());
        let shake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut send, connection) = shake.await.unwrap();
        tokio::spawn(connection);
        send.send_request(request).await
    } else {
        let io = TokioIo::new(connect_tls(server, "http/1.1").await.unwrap());
        let shake = hyper::client::conn::http1::handshake(io);
        let (mut send, connection) = shake.await.unwrap();
        tokio::spawn(connection);
        send.send_request(request).await
    };
    let response = response.map_err(|error| error.to_string())?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

fn client(http3: Http3) -> Client {
    let trust = Trust::roots_der([Certificate::shared().der()]);
    let builder = Client::builder().http3(http3);
    let builder = builder.resolve("localhost", [([127, 0, 0, 1], 0).into()]);
    builder.build(ClientConfig::new().trust(trust)).unwrap()
}

pub(crate) fn request<B>(
    server: SocketAddr,
    method: Method,
    path: &str,
    body: B,
) -> http::Request<B> {
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    let uri = format!("https://localhost:{}{path}", server.port());
    *request.uri_mut() = uri.parse().unwrap();
    request
}

/// A body that has never ended, and counts how often it is asked.
#[derive(Clone, Default)]
struct Endless(Arc<AtomicUsize>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"more")))))
    }
}

/// A service that answers by the path: the status, a `content-length` if that is not 0, and the body. axum would leave
/// the body of a HEAD out by itself.
#[derive(Clone, Default)]
struct Plain(Endless);

impl Service<http::Request<hybriq_http::Body>> for Plain {
    type Response = Response;
    type Error = Infallible;
    type Future = Ready<Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<hybriq_http::Body>) -> Self::Future {
        let Self(endless) = self;
        let words: Vec<_> = request.uri().path().split('/').collect();
        let mut response = Response::builder().status(words[1]);
        if words[2] != "0" {
            response = response.header("content-length", words[2]);
        }
        let body = match words[3] {
            "endless" => Body::new(endless.clone()),
            text => Body::from(text.to_owned()),
        };
        ready(Ok(response.body(body).unwrap()))
    }
}

/// RFC 9110 §6.4.1. A HEAD gets the length that a GET would get, although nobody announced it.
#[tokio::test]
async fn a_response_without_content_has_no_body_and_asks_it_for_nothing() {
    let plain = Plain::default();
    let asked = plain.0.0.clone();
    let running = Server::bind("127.0.0.1:0", Certificate::shared().config()).unwrap();
    let (handle, server) = (running.handle(), running.local_address());
    let serving = tokio::spawn(running.serve(plain));
    for version in VERSIONS {
        for (method, path, length) in [
            (Method::GET, "/204/4/endless", None),
            (Method::GET, "/205/4/endless", None),
            // hyper leaves it out over HTTP/1.1.
            (Method::GET, "/304/4/endless", Some("4")),
            (Method::HEAD, "/200/4/endless", Some("4")),
            (Method::HEAD, "/200/0/endless", None),
            (Method::HEAD, "/200/0/page", Some("4")),
            (Method::HEAD, "/204/4/endless", None),
        ] {
            let name = format!("{version:?} {method} {path}");
            let request = request(server, method, path, Empty::<Bytes>::new());
            let response = ask(version, server, request).await.expect(&name);
            let status = response.status();
            assert!(path.contains(status.as_str()), "{name}: {status}");
            let told = response.headers().get("content-length");
            let told = told.filter(|length| *length != "0");
            if version != Version::HTTP_11 || status != StatusCode::NOT_MODIFIED {
                assert_eq!(told.map(|told| told.to_str().unwrap()), length, "{name}");
            }
            assert!(response.into_body().to_bytes().is_empty(), "{name}");
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    handle.shutdown(Duration::ZERO).await;
    soon(serving).await.unwrap().unwrap();
}

/// A status of 1xx ends no request, so a service that answers with one has failed.
#[tokio::test]
async fn an_informational_status_is_no_answer() {
    let running = run(Router::new().route("/", any(async || StatusCode::EARLY_HINTS)));
    let server = running.address();
    for version in VERSIONS {
        let get = request(server, Method::GET, "/", Empty::<Bytes>::new());
        let response = ask(version, server, get).await.unwrap();
        let status = response.status();
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{version:?}");
    }
}

/// Returns a body of unknown length.
fn parts() -> Body {
    let (mut sender, body) = Channel::<Bytes>::new(1);
    tokio::spawn(async move {
        for part in ["hel", "lo"] {
            tokio::task::yield_now().await;
            // The server may have given the response up.
            let _ = sender.send_data(part.into()).await;
        }
    });
    Body::new(body)
}

/// A response whose body is shorter or longer than its `content-length` is given up: a client would have to refuse it
/// (RFC 9110 §8.6). One that is no number does not reach the client.
#[tokio::test]
async fn a_response_of_another_length_than_announced_is_given_up() {
    let handler = async |Path((body, length)): Path<(String, String)>| {
        let body = match body.as_str() {
            "whole" => Body::from("hello"),
            "empty" => Body::empty(),
            _ => parts(),
        };
        let response = Response::builder().header("content-length", length);
        response.body(body).unwrap()
    };
    let running = run(Router::new().route("/{body}/{length}", any(handler)));
    let server = running.address();
    for version in VERSIONS {
        for path in ["/whole/4", "/whole/6", "/parts/4", "/parts/6", "/empty/5"] {
            let get = request(server, Method::GET, path, Empty::<Bytes>::new());
            let answer = ask(version, server, get).await;
            assert!(answer.is_err(), "{version:?} {path}: {answer:?}");
        }
        for path in ["/whole/5", "/parts/5", "/whole/five", "/parts/five"] {
            let get = request(server, Method::GET, path, Empty::<Bytes>::new());
            let response = ask(version, server, get).await.expect(path);
            let length = response.headers().get("content-length");
            if path != "/parts/five" {
                assert_eq!(length.unwrap(), "5", "{version:?} {path}");
            }
            let body = response.into_body().to_bytes();
            assert_eq!(body, "hello", "{version:?} {path}");
        }
    }
}

/// Neither responses nor trailers have fields of a connection of HTTP/1.1 (RFC 9113 §8.2.2, RFC 9114 §4.2).
#[tokio::test]
async fn fields_of_the_connection_are_left_out() {
    const OF_CONNECTION: [(&str, &str); 6] = [
        ("connection", "x-hop"),
        ("keep-alive", "5"),
        ("proxy-connection", "close"),
        ("te", "trailers"),
        ("upgrade", "h2c"),
        ("x-hop", "1"),
    ];
    let handler = async || {
        let mut trailers = HeaderMap::new();
        let mut response = Response::builder();
        for (name, value) in OF_CONNECTION {
            response = response.header(name, value);
            if name != "x-hop" {
                trailers.insert(name, HeaderValue::from_static(value));
            }
        }
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        let frames = [
            Frame::data(Bytes::from_static(b"page")),
            Frame::trailers(trailers),
        ];
        let frames = frames.map(Ok::<_, Infallible>);
        let body = StreamBody::new(futures_util::stream::iter(frames));
        response
            .header("x-kept", "yes")
            .body(Body::new(body))
            .unwrap()
    };
    let running = run(Router::new().route("/", any(handler)));
    let server = running.address();
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let get = request(server, Method::GET, "/", Empty::<Bytes>::new());
        let response = ask(version, server, get).await.unwrap();
        for (name, _) in OF_CONNECTION {
            let has = response.headers().contains_key(name);
            assert!(!has, "{version:?} {name}");
        }
        assert_eq!(response.headers()["x-kept"], "yes", "{version:?}");
        let trailers = response.body().trailers().unwrap();
        let names: Vec<_> = trailers.keys().collect();
        assert_eq!(names, ["x-sum"], "{version:?}");
        assert_eq!(response.into_body().to_bytes(), "page");
    }
}

/// Tells what a service sees of a request.
async fn seen(request: Request) -> Response {
    let is_end = request.body().is_end_stream();
    let size = request.body().size_hint().exact();
    let cookies = request.headers().get_all(COOKIE).iter();
    let cookies: Vec<_> = cookies.map(|cookie| cookie.to_str().unwrap()).collect();
    let response = Response::builder()
        .header("x-end", is_end.to_string())
        .header("x-size", format!("{size:?}"))
        .header("x-cookies", cookies.join(" | "));
    response.body(request.into_body()).unwrap()
}

/// Services that copy bodies, proxies for example, decide by that whether there is one.
#[tokio::test]
async fn a_body_known_to_be_empty_is_empty_and_the_size_is_exact_if_it_is_known() {
    let running = run(Router::new().route("/", any(seen)));
    let server = running.address();
    for version in VERSIONS {
        for (method, body, end, size) in [
            (Method::GET, "", "true", "Some(0)"),
            (Method::POST, "", "true", "Some(0)"),
            (Method::POST, "hello", "false", "Some(5)"),
        ] {
            let sent = request(server, method, "/", Full::<Bytes>::from(body));
            let response = ask(version, server, sent).await.unwrap();
            let fields = response.headers();
            assert_eq!(fields["x-end"], end, "{version:?} {body}");
            assert_eq!(fields["x-size"], size, "{version:?} {body}");
            assert_eq!(response.into_body().to_bytes(), body);
        }
        let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from_static(
            b"hello",
        )))];
        let unknown = StreamBody::new(futures_util::stream::iter(frames));
        let sent = request(server, Method::POST, "/", unknown);
        let response = ask(version, server, sent).await.unwrap();
        assert_eq!(response.headers()["x-size"], "None", "{version:?}");
        assert_eq!(response.into_body().to_bytes(), "hello");
    }
}

/// RFC 9113 §8.2.3, RFC 9114 §4.2.1. HTTP/1.1 has one field to begin with.
#[tokio::test]
async fn several_cookies_are_one() {
    let running = run(Router::new().route("/", any(seen)));
    let server = running.address();
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let mut sent = request(server, Method::GET, "/", Empty::<Bytes>::new());
        for cookie in ["a=1", "b=2", "c=3"] {
            let cookie = HeaderValue::from_static(cookie);
            sent.headers_mut().append(COOKIE, cookie);
        }
        let response = ask(version, server, sent).await.unwrap();
        let cookies = &response.headers()["x-cookies"];
        assert_eq!(cookies, "a=1; b=2; c=3", "{version:?}");
    }
}

/// Sends bytes over HTTP/1.1, and returns the status of the answer.
async fn status_of(server: SocketAddr, request: &str) -> String {
    let mut stream = connect_tls(server, "http/1.1").await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n") {
        head.push(soon(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    head.split(' ').nth(1).unwrap().to_owned()
}

/// RFC 9112 §3.2, RFC 9113 §8.3.1; over HTTP/3 such requests are malformed (`tests/malformed`).
#[tokio::test]
async fn a_request_names_one_host() {
    let running = run(Router::new());
    let server = running.address();
    for (fields, expected) in [
        ("host: localhost\r\n", "200"),
        ("host: localhost:1\r\n", "200"),
        ("", "400"),
        ("host: localhost\r\nhost: localhost\r\n", "400"),
        ("host: me@localhost\r\n", "400"),
    ] {
        let request = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(status_of(server, &request).await, expected, "{fields:?}");
    }
    // The target counts (RFC 9112 §3.2.2), and HTTP/1.0 has no such field.
    let whole = "GET https://localhost/ HTTP/1.1\r\nhost: other\r\n\r\n";
    assert_eq!(status_of(server, whole).await, "200");
    assert_eq!(status_of(server, "GET / HTTP/1.0\r\n\r\n").await, "200");
    let port = server.port();
    for (host, expected) in [
        (format!("LOCALHOST:{port}"), 200),
        ("other".to_owned(), 400),
        (format!("me@localhost:{port}"), 400),
    ] {
        let mut sent = request(server, Method::GET, "/", Empty::<Bytes>::new());
        let value = HeaderValue::from_str(&host).unwrap();
        sent.headers_mut().insert("host", value);
        let response = ask(Version::HTTP_2, server, sent).await.unwrap();
        assert_eq!(response.status(), expected, "{host}");
    }
}
