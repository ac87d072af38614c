//! What a connection holds for its requests, and that nothing of it stays.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::large_futures, reason = "those of the h3 crate are large")]

mod support;

use std::task::{Context, Poll, Waker};

use hybriq::{SendStream, stats::Census};
use hybriq_h3::{Connection, OpenStreams, Payload, Requests};
use support::{Pair, soon};

type Server = h3::server::Connection<Connection, Payload>;
type Client = h3::client::Connection<Connection, Payload>;
type Sender = h3::client::SendRequest<OpenStreams<Payload>, Payload>;

/// A server that reads its requests, and a client.
struct World {
    pair: Pair,
    requests: Requests,
    _client: Client,
    sender: Sender,
}

impl World {
    async fn new() -> Self {
        let pair = Pair::new().await;
        let transport = Connection::new(pair.server.clone());
        let requests = transport.requests();
        let mut builder = h3::client::builder();
        let client = builder.build(Connection::new(pair.client.clone()));
        let (server, client) = soon(async { tokio::join!(Server::new(transport), client) }).await;
        let (client, sender) = client.unwrap();
        tokio::spawn(serve(server.unwrap(), requests.clone()));
        let mut world = Self {
            pair,
            requests,
            _client: client,
            sender,
        };
        world.ask().await;
        world
    }

    /// Sends a request, which is answered.
    async fn ask(&mut self) {
        let request = http::Request::get("https://localhost/").body(()).unwrap();
        let mut stream = soon(self.sender.send_request(request)).await.unwrap();
        soon(stream.finish()).await.unwrap();
        let answer = soon(stream.recv_response()).await.unwrap();
        assert_eq!(answer.status(), http::StatusCode::OK);
    }

    fn census(&self) -> Census {
        let mut census = Census::default();
        self.requests.census(&mut census);
        census
    }

    /// Waits until a table has so many entries.
    async fn until(&self, name: &'static str, entries: usize) {
        let wait = async {
            while self.census().entries(name) != entries {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait).await;
        assert!(waited.is_ok(), "{entries} {name}, not {}", self.census());
    }

    /// Waits until nothing is held but what was held before.
    async fn at_rest(&self, fresh: &Census) {
        let wait = async {
            while !self.census().grown_since(fresh).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait).await;
        let grown = self.census().grown_since(fresh);
        assert!(waited.is_ok(), "left: {grown}");
    }

    /// Opens as many streams as the server allows, up to so many, and finishes them behind these bytes.
    fn finished(&mut self, bytes: &[u8], bidi: bool, most: usize) -> Vec<SendStream> {
        let connection = &mut self.pair.client;
        let mut cx = Context::from_waker(Waker::noop());
        let mut streams = Vec::new();
        while streams.len() < most {
            let opened = if bidi {
                let opened = connection.poll_open_bidi(&mut cx);
                opened.map_ok(|(send, mut recv)| {
                    recv.stop(0);
                    send
                })
            } else {
                connection.poll_open_uni(&mut cx)
            };
            let Poll::Ready(opened) = opened else {
                break;
            };
            let mut send = opened.unwrap();
            assert!(send.poll_write(&mut cx, bytes).is_ready());
            send.finish();
            streams.push(send);
        }
        streams
    }
}

/// Answers every request at once.
async fn serve(mut server: Server, requests: Requests) {
    while let Ok(Some(resolver)) = server.accept().await {
        let requests = requests.clone();
        tokio::spawn(async move {
            if let Ok((_, mut stream)) = requests.resolve(resolver).await {
                let _ = stream.send_response(http::Response::new(())).await;
                let _ = stream.finish().await;
            }
        });
    }
}

#[tokio::test]
async fn requests_that_do_not_become_whole_leave_nothing() {
    let mut world = World::new().await;
    let fresh = world.census();
    // Nothing at all, and an unknown frame alone.
    for bytes in [&[][..], &[0x21, 1, 7]] {
        assert_eq!(world.finished(bytes, true, 10).len(), 10);
    }
    let mut open = Vec::new();
    for _ in 0..5 {
        let (mut send, recv) = soon(world.pair.client.open_bidi()).await.unwrap();
        send.write_all(&[1, 0x40, 200, 0, 0]).await.unwrap();
        open.push((send, recv));
    }
    world.until("unfinished frames", 5).await;
    world.until("requests without fields", 5).await;
    assert_eq!(world.census().grown_since(&fresh).bytes(), 25);
    for (mut send, mut recv) in open {
        send.reset(0x10c);
        recv.stop(0x10c);
    }
    world.at_rest(&fresh).await;
    world.ask().await;
    world.at_rest(&fresh).await;
}

/// `h3` ends a connection after the client's GOAWAY once it knows of no request: it must have forgotten those
/// that failed.
#[tokio::test]
async fn h3_forgets_requests_that_failed() {
    let pair = Pair::new().await;
    let transport = Connection::new(pair.server.clone());
    let requests = transport.requests();
    let mut builder = h3::client::builder();
    let client = builder.build::<_, _, Payload>(Connection::new(pair.client.clone()));
    let (server, client) = soon(async { tokio::join!(Server::new(transport), client) }).await;
    let (mut server, (mut client, _sender)) = (server.unwrap(), client.unwrap());
    for bytes in [&[][..], &[0x21, 0], &[1, 0x80, 1, 0x86, 0xa0], &[1]] {
        let (mut send, mut recv) = soon(pair.client.open_bidi()).await.unwrap();
        send.write_all(bytes).await.unwrap();
        if bytes == [1] {
            send.reset(0x10c);
        } else {
            send.finish();
        }
        let resolver = soon(server.accept()).await.unwrap().unwrap();
        assert!(soon(requests.resolve(resolver)).await.is_err());
        let end = soon(recv.read_to_end(100)).await;
        let code = match bytes {
            [] | [0x21, ..] => 0x10d,
            [1] => 0x10c,
            _ => 0x107,
        };
        assert_eq!(end, Err(hybriq::ReadError::Reset(code)), "{bytes:x?}");
    }
    // One whose reader gives up.
    let (mut send, _recv) = soon(pair.client.open_bidi()).await.unwrap();
    send.write_all(&[1]).await.unwrap();
    let resolver = soon(server.accept()).await.unwrap().unwrap();
    {
        let mut reading = std::pin::pin!(requests.resolve(resolver));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(reading.as_mut().poll(&mut cx).is_pending());
    }
    soon(client.shutdown(0)).await.unwrap();
    assert!(soon(server.accept()).await.unwrap().is_none());
}
