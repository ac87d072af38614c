//! Responses that break the rules of RFC 9114, at the client.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use hybriq::{ConnectionError, SendStream};
use hybriq_h3::{Connection, OpenStreams, Payload};
use support::{Pair, soon};

type Client = h3::client::Connection<Connection, Payload>;
type Requests = h3::client::SendRequest<OpenStreams<Payload>, Payload>;

/// HEADERS with `:status: 200`, and with `:status: 103`.
const OK: [u8; 5] = [1, 3, 0, 0, 0xd9];
const EARLY_HINTS: [u8; 5] = [1, 3, 0, 0, 0xd8];

/// A client, and a server that speaks by hand.
struct World {
    pair: Pair,
    _control: SendStream,
    client: Client,
    requests: Requests,
}

impl World {
    async fn new() -> Self {
        let pair = Pair::new().await;
        let mut control = soon(pair.server.open_uni()).await.unwrap();
        soon(control.write_all(&[0, 4, 0])).await.unwrap();
        let mut builder = h3::client::builder();
        let built = soon(builder.build(Connection::new(pair.client.clone()))).await;
        let (client, requests) = built.unwrap();
        Self {
            pair,
            _control: control,
            client,
            requests,
        }
    }

    /// Asks, answers with these bytes, and reads the response to its end. Returns false if it is refused, and the
    /// code of the stream or of the connection then.
    async fn answer(&mut self, bytes: &[u8]) -> (bool, Option<u64>) {
        let request = http::Request::get("https://localhost/").body(()).unwrap();
        let mut asked = soon(self.requests.send_request(request)).await.unwrap();
        let (mut send, mut recv) = soon(self.pair.server.accept_bidi()).await.unwrap().unwrap();
        soon(send.write_all(bytes)).await.unwrap();
        let read = async {
            while asked.recv_response().await?.status().is_informational() {}
            while asked.recv_data().await?.is_some() {}
            // The end of the stream comes after the trailers.
            asked.recv_trailers().await
        };
        let finish = async {
            tokio::task::yield_now().await;
            send.finish();
            std::future::pending::<()>().await;
        };
        let is_fine = tokio::select! {
            read = soon(read) => read.is_ok(),
            () = finish => false,
        };
        if is_fine {
            return (true, None);
        }
        let code = async {
            // The client's half of the stream, which it has not finished.
            match recv.read_to_end(10_000).await {
                Err(hybriq::ReadError::Reset(code)) => Some(code),
                _ => match self.pair.server.closed().await {
                    ConnectionError::Application { code, .. } => Some(code),
                    _ => None,
                },
            }
        };
        (false, soon(code).await)
    }
}

#[tokio::test]
async fn malformed_responses_are_refused() {
    let connection = b"\x01\x15\x00\x00\xd9\x27\x03connection\x05close";
    let transfer = b"\x01\x1e\x00\x00\xd9\x27\x0atransfer-encoding\x07chunked";
    let trailers = [&OK[..], &[0, 1, 7, 1, 3, 0, 0, 0xd9]].concat();
    let early = [
        &EARLY_HINTS[..],
        &EARLY_HINTS,
        &OK,
        &[0, 1, 7, 1, 3, 0, 0, 0xc2],
    ]
    .concat();
    let cases: [(&str, &[u8], bool, Option<u64>); 8] = [
        ("interim responses, a body, trailers", &early, true, None),
        (
            ":status twice",
            &[1, 4, 0, 0, 0xd9, 0xd9],
            false,
            Some(0x10e),
        ),
        (
            ":status late",
            &[1, 4, 0, 0, 0xc2, 0xd9],
            false,
            Some(0x10e),
        ),
        (":method", &[1, 4, 0, 0, 0xd9, 0xd1], false, Some(0x10e)),
        ("connection", connection, false, Some(0x10e)),
        ("transfer-encoding", transfer, false, Some(0x10e)),
        (":status in trailers", &trailers, false, Some(0x10e)),
        (
            "Huffman code",
            &[1, 7, 0, 0, 0xd9, 0x21, b'x', 0x81, 0x18],
            false,
            Some(0x200),
        ),
    ];
    for (name, bytes, is_fine, code) in cases {
        let mut world = World::new().await;
        let answer = world.answer(bytes).await;
        assert_eq!(answer, (is_fine, code), "{name}");
        drop(world.client);
    }
}
