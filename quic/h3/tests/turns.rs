//! Frames that are nothing to their reader do not keep a task from letting others run.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use hybriq::SendStream;
use hybriq_h3::{Connection, Payload};
use support::{Pair, soon};

type Server = h3::server::Connection<Connection, Payload>;

/// Frames, or instructions, that come at once.
const MANY: usize = 8_000;

/// Frames for which a task may be polled once.
const TURN: usize = 64;

/// Type and SETTINGS of a control stream.
const CONTROL: [u8; 3] = [0, 4, 0];

const POST: [u8; 10] = [1, 8, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a'];

/// A waker that counts.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends bytes, and waits until the server's transport has them.
async fn deliver(pair: &Pair, stream: &mut SendStream, bytes: &[u8]) {
    soon(stream.write_all(bytes)).await.unwrap();
    stream.finish();
    let id = stream.id();
    let delivered = async {
        while !pair.client.is_delivered(id) {
            tokio::task::yield_now().await;
        }
    };
    soon(delivered).await;
}

/// Polls as long as it wakes its task at once. Returns the result, and the number of polls.
fn poll_all<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> (Poll<T>, usize) {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut polls = 0;
    loop {
        let before = wakes.0.load(Ordering::Relaxed);
        polls += 1;
        let polled = poll(&mut Context::from_waker(&waker));
        if polled.is_ready() || wakes.0.load(Ordering::Relaxed) == before {
            return (polled, polls);
        }
    }
}

#[tokio::test]
async fn bodies_of_empty_frames_are_read_in_turns() {
    for empty in [[0, 0], [0x21, 0]] {
        let pair = Pair::new().await;
        let transport = Connection::new(pair.server.clone());
        let requests = transport.requests();
        let mut server = soon(Server::new(transport)).await.unwrap();
        let (mut send, _recv) = soon(pair.client.open_bidi()).await.unwrap();
        let bytes = [&POST[..], &empty.repeat(MANY), &[0, 1, b'x']].concat();
        deliver(&pair, &mut send, &bytes).await;
        let resolver = soon(server.accept()).await.unwrap().unwrap();
        let (_, mut stream) = soon(requests.resolve(resolver)).await.unwrap();
        let (data, polls) = poll_all(|cx| stream.poll_recv_data(cx).map_ok(|data| data.is_some()));
        assert!(matches!(data, Poll::Ready(Ok(true))));
        assert!(polls >= MANY / TURN, "{polls} polls for {empty:x?}");
    }
}

#[tokio::test]
async fn streams_of_a_connection_are_read_in_turns() {
    // Many instructions are one step: 1 KiB of them.
    let streams = [
        ("unknown frames", &CONTROL[..], [0x21, 0].repeat(MANY), MANY),
        ("MAX_PUSH_ID", &CONTROL, [0xd, 1, 0].repeat(MANY), MANY),
        ("instructions of QPACK", &[2], [0x20].repeat(256 << 10), 256),
    ];
    for (name, start, bytes, steps) in streams {
        let pair = Pair::new().await;
        let transport = Connection::new(pair.server.clone());
        let mut server = soon(Server::new(transport)).await.unwrap();
        let mut control = soon(pair.client.open_uni()).await.unwrap();
        let bytes = [start, &bytes].concat();
        deliver(&pair, &mut control, &bytes).await;
        let mut accept = pin!(server.accept());
        let (accepted, polls) = poll_all(|cx| accept.as_mut().poll(cx));
        // The end of a stream that must not end.
        assert!(matches!(accepted, Poll::Ready(Err(_))), "{name}");
        assert!(polls >= steps / TURN, "{polls} polls for {name}");
    }
}

/// Streams that are refused as they come.
#[tokio::test]
async fn streams_are_accepted_in_turns() {
    let pair = Pair::new().await;
    let transport = Connection::new(pair.server.clone());
    let requests = transport.requests();
    let mut server = soon(Server::new(transport)).await.unwrap();
    requests.refuse_all(0x10b);
    let mut streams = Vec::new();
    for _ in 0..TURN + 2 {
        let (mut send, recv) = soon(pair.client.open_bidi()).await.unwrap();
        deliver(&pair, &mut send, &POST).await;
        streams.push((send, recv));
    }
    let mut accept = pin!(server.accept());
    let (_, polls) = poll_all(|cx| accept.as_mut().poll(cx));
    assert!(polls >= 2, "{polls} polls");
    assert_eq!(requests.refused(), TURN as u64 + 2);
}
