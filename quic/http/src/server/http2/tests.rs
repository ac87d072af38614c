use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::Wake,
};

use super::*;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    let mut out = vec![high, middle, low, kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// What an observer was told, and how often a reader was woken.
#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    failed: AtomicU64,
    data: AtomicU64,
    block: Mutex<Option<Instant>>,
    woken: AtomicU64,
}

impl Seen {
    /// Notes a request that came to the server.
    fn on_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
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

    fn on_field_block(&self, since: Option<Instant>) {
        *self.block.lock().unwrap() = since;
    }
}

impl Wake for Seen {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes of a client. What is written to it is lost.
#[derive(Default)]
struct Line(VecDeque<u8>);

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let len = buffer.remaining().min(self.0.len());
        let bytes: Vec<_> = self.0.drain(..len).collect();
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
    observed: Observed<Line, Seen>,
    seen: Arc<Seen>,
}

impl Server {
    fn new() -> Self {
        let seen = Arc::new(Seen::default());
        let line = Line(vec![b'P'; 24].into());
        let observed = Observed::new(line, Some(seen.clone()), ROUND);
        let mut server = Self { observed, seen };
        assert_eq!(server.read(), 24);
        server
    }

    /// Reads what the client has sent. Returns the number of bytes.
    fn read(&mut self) -> usize {
        let waker = Waker::from(self.seen.clone());
        let mut cx = Context::from_waker(&waker);
        let mut all = 0;
        loop {
            let mut room = vec![0; BUFFER];
            let mut buffer = ReadBuf::new(&mut room);
            let read = Pin::new(&mut self.observed).poll_read(&mut cx, &mut buffer);
            if read.is_pending() {
                return all;
            }
            all += buffer.filled().len();
        }
    }

    /// Reads what the client sends.
    fn receive(&mut self, bytes: &[u8]) {
        self.observed.stream.0.extend(bytes);
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

    fn open(&mut self, stream: u32) {
        self.receive(&frame(HEADERS, END_HEADERS, stream, &[0x82]));
    }

    fn woken(&self) -> u64 {
        self.seen.woken.load(Ordering::Relaxed)
    }

    /// Sends many frames for each of which h2 may hold a reset, and reads as many as it may.
    fn flood(&mut self) {
        for stream in 0..5_000 {
            let frame = frame(PRIORITY, 0, 2 * stream + 1, &[0; 5]);
            self.observed.stream.0.extend(frame);
        }
        let read = self.read();
        assert!(read >= RESETS * 14, "{read}");
        assert!(read < RESETS * 14 + BUFFER, "{read}");
        assert_eq!((self.read(), self.woken()), (0, 0));
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
    // Malformed.
    server.open(1);
    server.send(&reset(1, 1));
    assert_eq!(seen.failed(), 1);
    // It came, and the client made an error then: whoever answers it counts that.
    server.open(3);
    seen.on_request();
    server.send(&reset(3, 3));
    // Too many at once; fields that are too large, for which h2 answers; and one that comes.
    server.open(5);
    server.send(&reset(5, 7));
    server.open(7);
    server.send(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &[0x88]));
    server.send(&reset(7, 1));
    server.open(9);
    seen.on_request();
    server.send(&reset(9, 1));
    // A late frame, which is no fault.
    server.receive(&frame(DATA, 0, 9, &[]));
    server.send(&reset(9, 5));
    assert_eq!(seen.failed(), 1);
    // No request at all.
    server.receive(&frame(PRIORITY, 0, 99, &[0, 0, 0, 99, 0]));
    server.send(&reset(99, 1));
    assert_eq!(seen.failed(), 2);
    server.open(101);
    server.send(&reset(101, 1));
    assert_eq!(seen.failed(), 3);
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
        server.flush();
    }
    server.send(&reset(1, 1));
    assert_eq!(server.seen.failed(), 0);
    let connection = server.observed.connection.as_ref().unwrap();
    assert!(connection.streams.is_empty());
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
    server.receive(&frame(9, 0, 3, &[0x87])[..5]);
    assert_eq!(told(), since, "it goes on");
    server.receive(&frame(9, 0, 3, &[0x87])[5..]);
    server.receive(&frame(9, 4, 3, &[]));
    assert_eq!(told(), None);
    server.receive(&frame(HEADERS, 0, 5, &[0x82]));
    assert!(told() > since, "another begins");
}
