mod trailers;
mod whole;

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Wake, Waker},
};

use tokio::io::AsyncWrite;

use super::*;
use crate::versions::http2::{
    frames::{
        ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PRIORITY, RST_STREAM, SETTINGS, frame,
    },
    pause::RESETS,
};

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// What an observer was told, and how often a reader was woken.
#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    failed: AtomicU64,
    data: AtomicU64,
    trailers: AtomicU64,
    partial: AtomicU64,
    block: Mutex<Option<Instant>>,
    woken: AtomicU64,
}

impl Seen {
    /// Notes a request that came to the server.
    fn on_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Observer for Seen {
    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn on_failed(&self) {
        self.on_request();
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn on_data(&self, len: u64) {
        self.data.fetch_add(len, Ordering::Relaxed);
    }

    fn on_trailers(&self, len: u64) -> u64 {
        self.trailers.fetch_add(len, Ordering::Relaxed);
        len
    }

    fn on_closed(&self, bytes: u64) {
        self.trailers.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn on_partial_block(&self, len: u64) {
        self.partial.store(len, Ordering::Relaxed);
    }

    fn on_field_block(&self, since: Option<Instant>) {
        *self.block.lock().unwrap() = since;
    }
}

impl Wake for Seen {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a frame that makes a stream depend on itself.
fn itself(stream: u32) -> Vec<u8> {
    let payload = [&stream.to_be_bytes()[..], &[15]].concat();
    frame(PRIORITY, 0, stream, &payload)
}

/// Bytes of a client. What is written to it is lost.
#[derive(Default)]
struct Line {
    bytes: VecDeque<u8>,
    is_blocked: bool,
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            return Poll::Pending;
        }
        let len = buffer.remaining().min(self.bytes.len());
        let bytes: Vec<_> = self.bytes.drain(..len).collect();
        buffer.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_blocked {
            return Poll::Pending;
        }
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Size of the buffer of a server.
const BUFFER: usize = 1 << 14;

/// Bytes that leave before a reset.
const ROUND: u64 = 1 << 20;

/// The server of a connection.
struct Server {
    observed: Followed<Line, Observed<Seen>>,
    seen: Arc<Seen>,
}

impl Server {
    fn new() -> Self {
        let seen = Arc::new(Seen::default());
        let line = Line {
            bytes: vec![b'P'; 24].into(),
            is_blocked: false,
        };
        let observed = observe(line, Some(seen.clone()), ROUND);
        let mut server = Self { observed, seen };
        assert_eq!(server.read(), 24);
        server
    }

    /// Reads what the client has sent. Returns the number of bytes.
    fn read(&mut self) -> usize {
        let mut all = 0;
        while let Some(len) = self.read_once() {
            all += len;
        }
        all
    }

    fn read_once(&mut self) -> Option<usize> {
        let waker = Waker::from(self.seen.clone());
        let mut cx = Context::from_waker(&waker);
        let mut room = vec![0; BUFFER];
        let mut buffer = ReadBuf::new(&mut room);
        let read = Pin::new(&mut self.observed).poll_read(&mut cx, &mut buffer);
        read.is_ready().then(|| buffer.filled().len())
    }

    /// Reads what the client sends.
    fn receive(&mut self, bytes: &[u8]) {
        self.observed.stream().bytes.extend(bytes);
        assert_eq!(self.read(), bytes.len());
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut cx = Context::from_waker(Waker::noop());
        // Two parts, as h2 sends them.
        let parts = bytes.split_at(bytes.len() / 2);
        let parts = [io::IoSlice::new(parts.0), io::IoSlice::new(parts.1)];
        let sent = Pin::new(&mut self.observed).poll_write_vectored(&mut cx, &parts);
        // The parts of a line are written one by one.
        let Poll::Ready(Ok(len)) = sent else {
            panic!("a line takes everything");
        };
        if let Some(rest) = bytes.get(len..).filter(|rest| !rest.is_empty()) {
            self.send(rest);
        }
    }

    fn flush(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let flushed = Pin::new(&mut self.observed).poll_flush(&mut cx);
        assert!(flushed.is_ready());
    }

    /// Finds no room for what is sent.
    fn block(&mut self) {
        self.observed.stream().is_blocked = true;
        let mut cx = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut self.observed).poll_write(&mut cx, b"more");
        assert!(written.is_pending());
        self.observed.stream().is_blocked = false;
    }

    fn open(&mut self, stream: u32) {
        self.receive(&frame(HEADERS, END_HEADERS, stream, &[0x82]));
    }

    fn woken(&self) -> u64 {
        self.seen.woken.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that have failed.
    fn failed(&mut self) -> u64 {
        // h2 has handled everything by then.
        assert_eq!(self.read(), 0);
        self.seen.failed.load(Ordering::Relaxed)
    }

    /// Sends many frames for each of which h2 may hold a reset, and reads as many as it may.
    fn flood(&mut self) {
        for stream in 0..5_000 {
            self.observed.stream().bytes.extend(itself(2 * stream + 1));
        }
        let woken = self.woken();
        let read = self.read();
        assert!(read >= RESETS * 14, "{read}");
        assert!(read < RESETS * 14 + BUFFER, "{read}");
        assert_eq!((self.read(), self.woken()), (0, woken));
    }
}

#[test]
fn nothing_is_read_while_too_many_resets_wait() {
    let mut server = Server::new();
    server.flood();
    server.send(&frame(DATA, 0, 1, &[0; 1000]));
    assert_eq!((server.read(), server.woken()), (0, 0));
    server.flush();
    assert_eq!(server.woken(), 1);
    assert!(server.read() >= RESETS * 14);
    assert_eq!(server.observed.pauses().load(Ordering::Relaxed), 2);
}

/// h2 flushes its buffer, too, when it needs room in it: what is queued has not been sent then.
#[test]
fn what_is_queued_is_sent_once_h2_sends_until_nothing_is_left() {
    let mut server = Server::new();
    let some: Vec<_> = (0..600).flat_map(|n| itself(2 * n + 1)).collect();
    // While it handles what it has read.
    server.receive(&some);
    server.observed.stream().bytes.extend(&some);
    server.read_once();
    server.send(&frame(6, 1, 0, &[0; 8]));
    server.flush();
    // There is no more room.
    server.observed.stream().bytes.extend(&some);
    assert_eq!(server.read(), 0);
    server.send(&frame(DATA, 0, 1, &[0; 1000]));
    server.flush();
    server.block();
    assert_eq!(server.read(), 0);
    // Before it handles more.
    server.send(&frame(DATA, 0, 1, &[0; 1000]));
    server.block();
    server.flush();
    assert_eq!(server.read(), 0);
    server.flush();
    assert_eq!(server.read(), some.len());
    assert_eq!(server.observed.pauses().load(Ordering::Relaxed), 1);
}

/// Frames count until all that was queued when they came has left, not for the life of the connection.
#[test]
fn what_has_left_stops_nothing() {
    let mut server = Server::new();
    let cancel = |server: &mut Server, stream| {
        server.open(stream);
        server.receive(&reset(stream, 8));
    };
    for stream in 0..3_000 {
        cancel(&mut server, 2 * stream + 1);
        server.send(&frame(DATA, 0, 1, &[0; 1000]));
        server.flush();
    }
    // The socket is never empty.
    for stream in 3_000..6_000 {
        cancel(&mut server, 2 * stream + 1);
        server.send(&frame(DATA, 0, 1, &[0; 8_000]));
        server.block();
    }
    // These leave nothing.
    for _ in 0..3_000 {
        server.receive(&frame(PRIORITY, 0, 13, &[0, 0, 0, 7, 15]));
        server.receive(&reset(13, 8));
    }
    assert_eq!(server.observed.pauses().load(Ordering::Relaxed), 0);
}

/// Where the client takes what is sent, but never all of it, the resets leave in turn.
#[test]
fn reading_goes_on_once_each_stream_has_had_its_turn() {
    let mut server = Server::new();
    server.flood();
    let part = frame(DATA, 0, 1, &[0; 16_000]);
    let mut sent = 0;
    while server.woken() == 0 {
        server.send(&part);
        sent += part.len() as u64;
    }
    assert!((ROUND..ROUND + 16_009).contains(&sent), "{sent}");
    assert!(server.read() >= RESETS * 14);
}

#[test]
fn reading_goes_on_once_the_resets_have_left() {
    let mut server = Server::new();
    server.flood();
    let mut sent = 0;
    while server.woken() == 0 {
        server.send(&reset(2 * sent + 1, 5));
        sent += 1;
    }
    assert!(sent as usize * 14 <= BUFFER + 14, "{sent}");
    assert!(server.read() > 0);
}

#[test]
fn data_counts_while_its_stream_is_open() {
    let mut server = Server::new();
    for (stream, end) in [(1, reset(1, 8)), (3, frame(DATA, END_STREAM, 3, &[]))] {
        server.open(stream);
        server.receive(&frame(DATA, 0, stream, &[7; 10]));
        // The end of a response alone is not that of the request.
        server.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x88]));
        server.receive(&frame(DATA, 0, stream, &[7; 10]));
        server.receive(&end);
        server.receive(&frame(DATA, 0, stream, &[7; 1000]));
    }
    server.open(5);
    server.send(&reset(5, 0));
    server.receive(&frame(DATA, 0, 5, &[7; 1000]));
    assert_eq!(server.seen.data.load(Ordering::Relaxed), 40);
}

#[test]
fn requests_that_fail_before_they_come_count_once() {
    let mut server = Server::new();
    let seen = server.seen.clone();
    server.receive(&frame(SETTINGS, ACK, 0, &[]));
    // Malformed.
    server.open(1);
    server.send(&reset(1, 1));
    assert_eq!(server.failed(), 1);
    // It came, and the client made an error then: whoever answers it counts that.
    server.open(3);
    seen.on_request();
    server.send(&reset(3, 3));
    assert_eq!(server.failed(), 1);
    // Too many at once.
    server.open(5);
    server.send(&reset(5, 7));
    assert_eq!(server.failed(), 2);
    // Fields that are too large, for which h2 answers: with a reset, because there may be more, and without.
    server.open(7);
    server.send(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &[0x88]));
    server.receive(&frame(DATA, END_STREAM, 7, &[]));
    server.send(&reset(7, 1));
    server.receive(&frame(HEADERS, END_HEADERS | END_STREAM, 9, &[0x82]));
    server.send(&frame(HEADERS, END_HEADERS | END_STREAM, 9, &[0x88]));
    assert_eq!(server.failed(), 4);
    // The client resets it before h2 can.
    server.open(11);
    server.receive(&reset(11, 8));
    assert_eq!(server.failed(), 5);
    // A late frame, which is no fault.
    server.receive(&frame(DATA, 0, 9, &[]));
    server.send(&reset(9, 5));
    assert_eq!(server.failed(), 5);
    // No request at all.
    server.receive(&itself(99));
    server.send(&reset(99, 1));
    assert_eq!(server.failed(), 6);
    server.open(101);
    server.send(&reset(101, 1));
    assert_eq!(server.failed(), 7);
}

/// One that is refused by the server itself came, whatever comes after it.
#[test]
fn requests_that_are_on_their_way_have_not_failed() {
    let mut server = Server::new();
    let seen = server.seen.clone();
    server.receive(&frame(SETTINGS, ACK, 0, &[]));
    for stream in [1, 3, 5] {
        server.open(stream);
        // hyper takes one after another, and lets h2 read after each.
        seen.on_request();
        server.send(&reset(stream, 7));
    }
    assert_eq!(server.failed(), 0);
    let whole = [1, 3, 5].map(|stream| frame(HEADERS, END_HEADERS, stream + 6, &[0x82]));
    server.receive(&whole.concat());
    for _ in whole {
        seen.on_request();
        server.send(&reset(7, 7));
        assert_eq!(server.failed(), 0);
    }
    // The fields of one are not whole.
    server.receive(&frame(HEADERS, 0, 13, &[0x82]));
    assert_eq!((server.failed(), server.failed()), (0, 0));
    server.receive(&frame(CONTINUATION, END_HEADERS, 13, &[]));
    assert_eq!((server.failed(), server.failed()), (1, 1));
}

/// A client may not know yet how many it may send at once, but will.
#[test]
fn requests_before_the_settings_are_refused_without_harm() {
    let mut server = Server::new();
    let refuse = |server: &mut Server, streams: std::ops::Range<u32>, ack: &[u8]| {
        let heads = streams.clone().map(|stream| {
            let flags = END_HEADERS | END_STREAM;
            frame(HEADERS, flags, 2 * stream + 1, &[0x82])
        });
        let heads: Vec<_> = heads.flatten().chain(ack.iter().copied()).collect();
        server.receive(&heads);
        for stream in streams {
            server.send(&reset(2 * stream + 1, 7));
        }
        server.failed()
    };
    let ack = frame(SETTINGS, ACK, 0, &[]);
    assert_eq!(refuse(&mut server, 0..100, &ack), 0);
    assert_eq!(refuse(&mut server, 100..110, &[]), 10);
    // One that never says so is not excused for ever.
    let mut server = Server::new();
    assert_eq!(refuse(&mut server, 0..300, &[]), 300 - 256);
}

#[test]
fn requests_after_the_last_one_are_no_failures() {
    let mut server = Server::new();
    server.open(1);
    server.seen.on_request();
    server.open(3);
    server.send(&frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]));
    for stream in (5..5_000).step_by(2) {
        server.open(stream);
    }
    server.send(&reset(1, 1));
    assert_eq!(server.failed(), 0);
    assert_eq!(server.observed.follower().requests.open(), 0);
    assert_eq!(server.observed.pauses().load(Ordering::Relaxed), 0);
}

/// The time counts from the start of the block, and only while the server waits for more of it.
#[test]
fn a_field_block_is_told_while_the_server_waits() {
    let mut server = Server::new();
    let seen = server.seen.clone();
    let told = || *seen.block.lock().unwrap();
    server.open(1);
    assert_eq!(told(), None);
    server.receive(&frame(HEADERS, 0, 3, &[0x82]));
    let since = told();
    assert!(since.is_some());
    server.receive(&frame(CONTINUATION, 0, 3, &[0x87])[..5]);
    assert_eq!(told(), since, "it goes on");
    server.receive(&frame(CONTINUATION, 0, 3, &[0x87])[5..]);
    server.receive(&frame(CONTINUATION, END_HEADERS, 3, &[]));
    assert_eq!(told(), None);
    server.receive(&frame(HEADERS, 0, 5, &[0x82]));
    assert!(told() > since, "another begins");
}
