//! Many mixed requests through the reverse proxy, whose bytes are all compared.

use std::{net::SocketAddr, path::Path};

use axum::{Router, body::Body, extract, response::Response, routing::any};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hybriq::{Identity, ServerConfig};
use hybriq_http::{Client, Http3};
use tokio::time::Instant;

use crate::{Server, certify, client, folder, serving};

/// Number of requests, unless this variable names another one.
const REQUESTS: u64 = 1_000;
const VARIABLE: &str = "HYBRIQ_PROXY_REQUESTS";

/// Requests at once.
const AT_ONCE: usize = 32;

/// Numbers without a pattern, the same in each run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns the length of a content: often short, and seldom a mebibyte.
    fn len(&mut self) -> usize {
        match self.next() % 64 {
            0 => 1 << 20,
            1..=8 => 0,
            _ => (self.next() % (1 << (self.next() % 16))) as usize,
        }
    }

    fn content(&mut self) -> Bytes {
        let len = self.len();
        let mut content = Vec::with_capacity(len + 8);
        while content.len() < len {
            content.extend(self.next().to_le_bytes());
        }
        content.truncate(len);
        content.into()
    }
}

/// A request and its response, which follow from their number.
struct Exchange {
    method: Method,
    upload: Content,
    status: StatusCode,
    download: Content,
}

/// The content of a message, whole or in pieces with trailers.
struct Content {
    bytes: Bytes,
    is_in_pieces: bool,
    number: u64,
}

impl Exchange {
    fn of(number: u64) -> Self {
        let mut random = Random(number);
        let methods = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
        ];
        let method = methods[random.next() as usize % methods.len()].clone();
        let statuses = [
            StatusCode::OK,
            StatusCode::NOT_FOUND,
            StatusCode::NO_CONTENT,
        ];
        let status = statuses[random.next() as usize % statuses.len()];
        let mut content = |is_there: bool| {
            let is_in_pieces = is_there && random.next().is_multiple_of(2);
            let bytes = random.content();
            Content {
                bytes: if is_there { bytes } else { Bytes::new() },
                is_in_pieces,
                number,
            }
        };
        let upload = content(!method.is_safe());
        let download = content(method != Method::HEAD && status != StatusCode::NO_CONTENT);
        Self {
            method,
            upload,
            status,
            download,
        }
    }
}

impl Content {
    fn trailers(&self) -> Option<HeaderMap> {
        let value = HeaderValue::from(self.number);
        let trailers = || [("x-number".parse().unwrap(), value)].into_iter().collect();
        self.is_in_pieces.then(trailers)
    }

    fn body(&self) -> Body {
        let Some(trailers) = self.trailers() else {
            return self.bytes.clone().into();
        };
        let pieces = self
            .bytes
            .chunks(10_000)
            .map(|piece| self.bytes.slice_ref(piece));
        let pieces: Vec<_> = pieces.map(Frame::data).collect();
        let frames = pieces.into_iter().chain([Frame::trailers(trailers)]);
        Body::new(StreamBody::new(stream::iter(
            frames.map(Ok::<_, std::io::Error>),
        )))
    }

    /// Returns what is wrong with a content that arrived.
    async fn differs(&self, body: impl http_body::Body<Data = Bytes>) -> Option<String> {
        let Ok(body) = body.collect().await else {
            return Some("it is cut".to_owned());
        };
        let trailers = body.trailers().cloned();
        let bytes = body.to_bytes();
        if bytes != self.bytes {
            return Some(format!("{} of {} bytes", bytes.len(), self.bytes.len()));
        }
        (trailers != self.trailers()).then(|| format!("{trailers:?}"))
    }
}

/// Answers the request with this number, if it is the one that was sent.
async fn answer(extract::Path(number): extract::Path<u64>, method: Method, body: Body) -> Response {
    let exchange = Exchange::of(number);
    let wrong = exchange.upload.differs(body).await;
    let response = Response::builder();
    if wrong.is_some() || method != exchange.method {
        let told = format!("{method} {wrong:?}");
        return response
            .status(StatusCode::CONFLICT)
            .body(told.into())
            .unwrap();
    }
    let response = response.status(exchange.status).header("x-number", number);
    response.body(exchange.download.body()).unwrap()
}

fn upstream(cert: &Path, key: &Path) -> SocketAddr {
    let identity = Identity::from_pem_files(cert, key).unwrap();
    let server = hybriq_http::Server::bind("127.0.0.1:0", ServerConfig::new(identity)).unwrap();
    let address = server.local_address();
    let app = Router::new().route("/{number}", any(answer));
    tokio::spawn(server.serve(app));
    address
}

/// Sends the request with this number. Returns the bytes of both contents.
async fn exchange(client: Client, proxy: SocketAddr, number: u64) -> usize {
    let exchange = Exchange::of(number);
    let uri = format!("https://localhost:{}/{number}", proxy.port());
    let request = Request::builder().method(&exchange.method).uri(uri);
    let request = request.header("te", "trailers");
    let sent = client.request(request.body(exchange.upload.body()).unwrap());
    let response = sent
        .await
        .unwrap_or_else(|error| panic!("{number}: {error}"));
    let (status, named) = (
        response.status(),
        response.headers().get("x-number").cloned(),
    );
    let wrong = exchange.download.differs(response.into_body()).await;
    assert_eq!(status, exchange.status, "{number}");
    assert_eq!(named, Some(number.into()), "{number}");
    assert_eq!(wrong, None, "{number}");
    exchange.upload.bytes.len() + exchange.download.bytes.len()
}

/// Sends the requests over one version, each compared with its response byte by byte.
async fn pass(http3: Http3, version: Version) {
    let requests = std::env::var(VARIABLE).map_or(REQUESTS, |number| number.parse().unwrap());
    let folder = folder(&format!("mixed-{http3:?}"));
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    let mut command = serving(env!("CARGO_BIN_EXE_reverse_proxy"), &cert, &key);
    command.arg(format!("localhost:{}", upstream(&cert, &key).port()));
    let proxy = Server::run(command.env("SSL_CERT_FILE", &cert));
    let client = client(&proxy, &cert, http3);
    let begun = Instant::now();
    let asked = stream::iter(0..requests)
        .map(|number| tokio::spawn(exchange(client.clone(), proxy.address, number)));
    let asked = asked.buffer_unordered(AT_ONCE);
    let bytes = asked.fold(0, async |sum, bytes| sum + bytes.unwrap());
    let (bytes, time) = (bytes.await, begun.elapsed());
    println!("{version:?}: {requests} requests, {bytes} bytes, {time:.1?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mixed_requests_pass_through_the_reverse_proxy_over_http3() {
    pass(Http3::Only, Version::HTTP_3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mixed_requests_pass_through_the_reverse_proxy_over_http2() {
    pass(Http3::Off, Version::HTTP_2).await;
}
