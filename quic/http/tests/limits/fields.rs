//! The size of the fields of requests and responses.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hybriq::{ClientConfig, Connection, Endpoint, ReadError, RecvStream, SendStream, Trust};
use hybriq_h3::qpack::{Decoded, Decoder, Encoder, FieldRef};
use hybriq_http::{ClientError, Http3};

use crate::{
    client::{Client, Outcome, VERSIONS, Version},
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

/// RFC 9204 §3.2.3: a client learns the capacity, and may not set a larger one.
#[tokio::test]
async fn tables_have_the_limit_that_was_set() {
    for (limit, allowed, beyond) in [
        (0, &[0x20][..], &[0x21][..]),
        (100, &[0x3f, 69], &[0x3f, 70]),
        (4096, &[0x3f, 0xe1, 0x1f], &[0x3f, 0xe2, 0x1f]),
    ] {
        let server = serve(Router::new(), |limits| limits.field_table = limit);
        for (capacity, is_allowed) in [(allowed, true), (beyond, false)] {
            let client = client_that_takes(6000, &server).await;
            let mut encoder = soon(client.connection.open_uni()).await.unwrap();
            soon(encoder.write_all(&[&[2], capacity].concat()))
                .await
                .unwrap();
            if is_allowed {
                let delivered = async {
                    while client.connection.undelivered_streams() > 2 {
                        tokio::task::yield_now().await;
                    }
                };
                soon(delivered).await;
                assert!(client.get(b's').await.is_ok(), "{limit}");
            } else {
                let reason = soon(client.connection.closed()).await;
                let hybriq::ConnectionError::Application { code, .. } = reason else {
                    panic!("{:?}, {limit}: {reason}", Version::Http3);
                };
                assert_eq!(code, 0x201, "QPACK_ENCODER_STREAM_ERROR");
            }
        }
    }
}

/// Reads what comes on a stream, and gives it to somebody.
async fn pump(mut stream: RecvStream, mut take: impl FnMut(&[u8])) {
    while let Ok(Some(data)) = stream.read_chunk(1000).await {
        take(&data);
    }
}

/// Both ends insert fields that come again, and refer to them (RFC 9204).
#[tokio::test]
async fn tables_are_used_in_both_directions() {
    let router = Router::new().route("/s", get(async || answer(200, 200)));
    let server = serve(router, |_| {});
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let connecting = endpoint.connect(server.address(), "localhost");
    let connection = soon(connecting).await.unwrap();
    // SETTINGS with a table of 4096 bytes, for which 16 streams may wait.
    let mut control = connection.open_uni().await.unwrap();
    let settings = [0, 4, 5, 1, 0x50, 0, 7, 16];
    soon(control.write_all(&settings)).await.unwrap();
    let mut to_decoder = connection.open_uni().await.unwrap();
    soon(to_decoder.write_all(&[2])).await.unwrap();
    let mut to_encoder = connection.open_uni().await.unwrap();
    soon(to_encoder.write_all(&[3])).await.unwrap();
    let mut encoder = Encoder::new();
    encoder.set_peer(4096, 16, 4096);
    let encoder = Arc::new(Mutex::new(encoder));
    let decoder = Arc::new(Mutex::new(Decoder::new(4096, 16, 10_000)));
    for _ in 0..3 {
        let mut stream = soon(connection.accept_uni()).await.unwrap().unwrap();
        let kind = soon(stream.read_chunk(1)).await.unwrap().unwrap();
        let (encoder, decoder) = (encoder.clone(), decoder.clone());
        tokio::spawn(pump(stream, move |data| match kind[0] {
            2 => decoder.lock().unwrap().on_encoder_stream(data).unwrap(),
            3 => encoder.lock().unwrap().on_decoder_stream(data).unwrap(),
            _ => {}
        }));
    }
    let fields = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/s"),
        ("user-agent", "a client with a long name"),
    ];
    let fields = fields.map(|(name, value)| FieldRef {
        name: name.as_bytes(),
        value: value.as_bytes(),
        sensitive: false,
    });
    let mut lengths = Vec::new();
    for _ in 0..5 {
        let (mut send, mut recv) = connection.open_bidi().await.unwrap();
        let (mut section, mut entries) = (Vec::new(), Vec::new());
        {
            let mut encoder = encoder.lock().unwrap();
            encoder.encode(send.id().0, fields.into_iter(), &mut section, &mut entries);
        }
        soon(to_decoder.write_all(&entries)).await.unwrap();
        let request = [&[1, section.len() as u8], &section[..]].concat();
        soon(send.write_all(&request)).await.unwrap();
        send.finish();
        let response = soon(recv.read_to_end(10_000)).await.unwrap();
        // Its head has fewer bytes than two bytes can say.
        let (len, head) = match response[1] {
            short @ 0..0x40 => (usize::from(short), 2),
            long => (usize::from(long & 0x3f) << 8 | usize::from(response[2]), 3),
        };
        let decode = || {
            let mut fields = Vec::new();
            let mut decoder = decoder.lock().unwrap();
            let section = &response[head..head + len];
            let decoded = decoder.decode(send.id().0, section, |field| fields.push(field));
            (decoded.unwrap(), fields)
        };
        let fields = soon(async {
            loop {
                match decode() {
                    (Decoded::Whole, fields) => break fields,
                    _ => tokio::task::yield_now().await,
                }
            }
        });
        let fields = fields.await;
        assert!(
            fields
                .iter()
                .any(|field| field.name == "x" && field.value.len() == 200)
        );
        let mut answer = Vec::new();
        decoder.lock().unwrap().take_instructions(&mut answer);
        soon(to_encoder.write_all(&answer)).await.unwrap();
        lengths.extend([section.len(), len]);
    }
    assert!(lengths.iter().all(|len| *len < 10), "{lengths:?}");
    assert!(decoder.lock().unwrap().inserted() > 0);
    // The server says that its decoder has the entries of the requests.
    soon(async {
        while encoder.lock().unwrap().known_received() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
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
