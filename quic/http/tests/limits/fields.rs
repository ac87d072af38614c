//! The size of the fields of requests and responses.

use std::net::SocketAddr;

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hybriq::{ClientConfig, Connection, Endpoint, ReadError, SendStream, Trust};
use hybriq_http::{ClientError, Http3};

use crate::{
    client::{Client, Outcome, VERSIONS},
    serve,
    support::{Certificate, Running, client_config, soon},
};

/// A request whose fields are too large gets 431, and only that.
#[tokio::test]
async fn fields_beyond_the_limit_get_431() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| limits.header_list = 2048);
        let mut client = Client::connect(version, server.address()).await;
        for (fields, status) in [(20, 200), (60, 431)] {
            let asked = client.send_with("/", fields).await.unwrap();
            let outcome = client.take(asked).await;
            assert_eq!(outcome, Outcome::Answered(status), "{version:?}, {fields}");
        }
        assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
    }
}

/// A client of HTTP/3 that takes fields of so many bytes.
async fn client_that_takes(most: u16, server: &Running) -> Http3Connection {
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let connecting = endpoint.connect(server.address(), "localhost");
    let connection = soon(connecting).await.unwrap();
    let mut control = soon(connection.open_uni()).await.unwrap();
    let [high, low] = (most | 0x4000).to_be_bytes();
    // SETTINGS with SETTINGS_MAX_FIELD_SECTION_SIZE.
    let settings = [0, 4, 3, 6, high, low];
    soon(control.write_all(&settings)).await.unwrap();
    Http3Connection {
        connection,
        _open: (endpoint, control),
    }
}

struct Http3Connection {
    connection: Connection,
    _open: (Endpoint, SendStream),
}

impl Http3Connection {
    /// Asks for a path of one letter. Returns the response, or the code with which it is reset.
    async fn get(&self, path: u8) -> Result<Vec<u8>, u64> {
        let (mut send, mut recv) = soon(self.connection.open_bidi()).await.unwrap();
        let get = [1, 11, 0, 0, 0xd1, 0xd7, 0x51, 2, b'/', path, 0x50, 1, b'a'];
        soon(send.write_all(&get)).await.unwrap();
        send.finish();
        match soon(recv.read_to_end(100_000)).await {
            Ok(response) => Ok(response),
            Err(ReadError::Reset(code)) => Err(code),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns an answer with fields, and trailers, of so many bytes and more.
fn answer(fields: usize, trailers: usize) -> Response<Body> {
    let value = |bytes| "y".repeat(bytes).parse::<HeaderValue>().unwrap();
    let mut all = HeaderMap::new();
    all.insert("x", value(trailers));
    let body = Full::<Bytes>::from("body").with_trailers(async move { Some(Ok(all)) });
    let response = Response::builder().header("x", value(fields));
    response.body(Body::new(body)).unwrap()
}

/// RFC 9114 §4.2.2: what the client does not take is not sent.
#[tokio::test]
async fn responses_beyond_what_the_client_takes_are_not_sent() {
    let router = Router::new()
        .route("/s", get(async || answer(1, 1)))
        .route("/f", get(async || answer(500, 1)))
        .route("/h", get(async || answer(5000, 1)))
        .route("/t", get(async || answer(1, 500)));
    let server = serve(router, |_| {});
    // `:status: 500` alone, as it is in the static table.
    let failed = [1, 4, 0, 0, 0xff, 71 - 63];
    let client = client_that_takes(400, &server).await;
    assert!(client.get(b's').await.unwrap().len() > failed.len());
    for path in [b'f', b'h'] {
        let response = client.get(path).await.unwrap();
        assert!(response.starts_with(&failed), "{response:x?}");
    }
    assert_eq!(client.get(b't').await, Err(0x102), "H3_INTERNAL_ERROR");
    // It takes no response at all.
    let client = client_that_takes(41, &server).await;
    assert_eq!(client.get(b's').await, Err(0x102), "H3_INTERNAL_ERROR");
    let client = client_that_takes(6000, &server).await;
    for path in [b'f', b'h', b't'] {
        assert!(client.get(path).await.unwrap().len() > 400);
    }
}

/// A client whose server takes less learns that before it sends anything.
#[tokio::test]
async fn requests_beyond_what_the_server_takes_are_not_sent() {
    let server = serve(Router::new(), |limits| limits.header_list = 2048);
    let trust = Trust::roots_der([Certificate::shared().der()]);
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let builder = hybriq_http::Client::builder().http3(Http3::Only);
    let client = builder.resolve("localhost", [address]);
    let client = client.build(ClientConfig::new().trust(trust)).unwrap();
    let uri = format!("https://localhost:{}/", server.address().port());
    for _ in 0..2 {
        // The settings come with the first response.
        let response = soon(client.get(uri.clone())).await.unwrap();
        assert_eq!(response.status(), 200);
        let request = Request::get(&uri).header("x", "y".repeat(3000));
        let request = request.body(Full::<Bytes>::default()).unwrap();
        let error = soon(client.request(request)).await.unwrap_err();
        let ClientError::Fields { size, most } = error else {
            panic!("{error}");
        };
        assert!(size > 3000 && most == 2048, "{size}, {most}");
    }
}
