//! A peer of HTTP/3 that makes its own frames.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hybriq::{Connection, Endpoint, RecvStream, SendStream};
use hybriq_sim::Rng;

use super::{
    app::{PATHS, SESSION, TUNNEL},
    peer::{Moves, Peer},
    support::{Certificate, Running, client_config, soon},
};

/// Streams that the peer has at once, at most.
const STREAMS: usize = 40;

/// A stream of the peer.
struct Stream {
    send: Option<SendStream>,
    recv: Option<RecvStream>,
    /// What is still to be sent of something begun.
    rest: Vec<u8>,
}

/// A peer, with everything it has open.
pub(crate) struct Http3Peer {
    endpoint: Endpoint,
    connection: Connection,
    control: SendStream,
    streams: Vec<Stream>,
    /// Numbers of streams on which sessions were asked for.
    sessions: Vec<u64>,
    sent: u64,
}

/// Writes an integer of RFC 9000 §16.
fn integer(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend((value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend((value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    integer(&mut out, kind);
    integer(&mut out, payload.len() as u64);
    out.extend(payload);
    out
}

/// Returns a field line with a name of the static table, and a value without Huffman's code.
fn field(index: u8, value: &str) -> Vec<u8> {
    let mut out = vec![0x50 | index, value.len() as u8];
    out.extend(value.as_bytes());
    out
}

/// Returns HEADERS of a request: of extended CONNECT if there is a protocol (RFC 9220).
fn head(method: u8, path: &str, protocol: Option<&str>) -> Vec<u8> {
    let mut section = vec![0, 0, method, 0xd7];
    section.extend(field(0, "localhost"));
    section.extend(field(1, path));
    if let Some(protocol) = protocol {
        section.extend([0x27, 2]);
        section.extend(b":protocol");
        section.push(protocol.len() as u8);
        section.extend(protocol.as_bytes());
    }
    frame(1, &section)
}

const GET: u8 = 0xd1;
const POST: u8 = 0xd4;
const CONNECT: u8 = 0xcf;

impl Http3Peer {
    pub(crate) async fn connect(server: &Running) -> Self {
        let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        let address = server.address();
        let connection = soon(endpoint.connect(address, "localhost")).await.unwrap();
        let mut control = soon(connection.open_uni()).await.unwrap();
        // H3_DATAGRAM, extended CONNECT, and both settings of WebTransport.
        let mut settings = Vec::new();
        for (id, value) in [(0x33, 1), (8, 1), (0x2b60_3742, 1), (0xc671_706a, 16)] {
            integer(&mut settings, id);
            integer(&mut settings, value);
        }
        let bytes = [&[0][..], &frame(4, &settings)].concat();
        soon(control.write_all(&bytes)).await.unwrap();
        Self {
            endpoint,
            connection,
            control,
            streams: Vec::new(),
            sessions: Vec::new(),
            sent: bytes.len() as u64,
        }
    }

    /// Opens a stream if the server allows one.
    fn open(&mut self) -> Option<&mut Stream> {
        if self.streams.len() >= STREAMS {
            self.streams.remove(0);
        }
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok((send, recv))) = self.connection.poll_open_bidi(&mut cx) else {
            return None;
        };
        self.streams.push(Stream {
            send: Some(send),
            recv: Some(recv),
            rest: Vec::new(),
        });
        self.streams.last_mut()
    }

    /// Opens a stream for a request, sends all of it or its beginning, and ends it or not.
    fn ask(&mut self, rng: &mut Rng) {
        let path = PATHS[rng.below(PATHS.len() as u64) as usize];
        let (bytes, session) = match rng.below(10) {
            0 => (head(CONNECT, TUNNEL, Some("any")), false),
            1 | 2 => (head(CONNECT, SESSION, Some("webtransport")), true),
            3 => {
                let body = vec![3; rng.below(3000) as usize];
                let bytes = [head(POST, path, None), frame(0, &body)].concat();
                (bytes, false)
            }
            _ => (head(GET, path, None), false),
        };
        let whole = rng.below(4) > 0;
        let ends = !session && rng.below(3) > 0;
        let cut = 1 + rng.below(bytes.len() as u64 - 1) as usize;
        let Some(stream) = self.open() else {
            return;
        };
        let id = stream.send.as_ref().map(|send| send.id().0);
        stream.rest = bytes;
        let len = if whole { stream.rest.len() } else { cut };
        let sent = stream.send_rest(len);
        if whole && ends {
            if let Some(send) = &mut stream.send {
                send.finish();
            }
        }
        self.sent += sent;
        if session {
            self.sessions.extend(id);
        }
    }

    /// Does something to a stream that is open.
    fn touch(&mut self, rng: &mut Rng) {
        if self.streams.is_empty() {
            return;
        }
        let index = rng.below(self.streams.len() as u64) as usize;
        let stream = &mut self.streams[index];
        match rng.below(10) {
            // Trickles.
            0 | 1 => {
                let sent = stream.send_rest(1);
                self.sent += sent;
            }
            2 => {
                let len = stream.rest.len();
                self.sent += stream.send_rest(len);
            }
            3 => {
                let body = vec![3; rng.below(2000) as usize];
                stream.rest.extend(frame(0, &body));
                let len = stream.rest.len();
                self.sent += stream.send_rest(len);
            }
            // A capsule, a frame of an unknown type, or a promise that is not kept.
            4 => {
                let kind = [0x2843, 0x78ae, 0x21, 0x1f * 9 + 0x21][rng.below(4) as usize];
                let inner = frame(kind, &vec![0; rng.below(20) as usize]);
                stream.rest.extend(frame(0, &inner));
                let len = stream.rest.len();
                self.sent += stream.send_rest(len);
            }
            5 => stream.send.iter_mut().for_each(SendStream::finish),
            6 => {
                let code = 0x10c;
                if let Some(send) = &mut stream.send {
                    send.reset(code);
                }
                stream.send = None;
            }
            7 => {
                if let Some(recv) = &mut stream.recv {
                    recv.stop(0x10c);
                }
            }
            8 => drop(self.streams.swap_remove(index)),
            _ => {
                let mut cx = Context::from_waker(Waker::noop());
                if let Some(recv) = &mut stream.recv {
                    let _ = recv.poll_read_chunk(&mut cx, 1 << 16);
                }
            }
        }
    }

    /// Opens a unidirectional stream: of an unknown type, of a session, or cut in its header.
    fn uni(&mut self, rng: &mut Rng) {
        let mut bytes = Vec::new();
        match rng.below(4) {
            0 => integer(&mut bytes, 0x21),
            1 => bytes.push(0x40),
            _ => {
                integer(&mut bytes, 0x54);
                let session = self.session(rng);
                integer(&mut bytes, session);
            }
        }
        bytes.extend(vec![5; rng.below(200) as usize]);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(mut send)) = self.connection.poll_open_uni(&mut cx) else {
            return;
        };
        if let Poll::Ready(Ok(sent)) = send.poll_write(&mut cx, &bytes) {
            self.sent += sent as u64;
        }
        if rng.below(2) == 0 {
            send.finish();
        }
        self.streams.push(Stream {
            send: Some(send),
            recv: None,
            rest: Vec::new(),
        });
    }

    /// Opens a bidirectional stream of a session.
    fn bidi_of_session(&mut self, rng: &mut Rng) {
        let mut bytes = Vec::new();
        integer(&mut bytes, 0x41);
        let session = self.session(rng);
        integer(&mut bytes, session);
        bytes.extend(vec![5; rng.below(200) as usize]);
        let ends = rng.below(2) == 0;
        if let Some(stream) = self.open() {
            stream.rest = bytes;
            let len = stream.rest.len();
            let sent = stream.send_rest(len);
            if ends {
                stream.send.iter_mut().for_each(SendStream::finish);
            }
            self.sent += sent;
        }
    }

    /// Returns the number of a session, or of none.
    fn session(&self, rng: &mut Rng) -> u64 {
        if self.sessions.is_empty() || rng.below(4) == 0 {
            return 4 * rng.below(64);
        }
        self.sessions[rng.below(self.sessions.len() as u64) as usize]
    }

    fn datagrams(&mut self, rng: &mut Rng) {
        for _ in 0..rng.below(30) {
            let mut bytes = Vec::new();
            let session = self.session(rng);
            integer(&mut bytes, session / 4);
            bytes.extend(vec![9; [0, 1, 50][rng.below(3) as usize]]);
            self.sent += bytes.len() as u64;
            let _ = self.connection.send_datagram(Bytes::from(bytes));
        }
    }

    /// Sends a frame on the control stream; some break a rule, and end the connection.
    fn control(&mut self, rng: &mut Rng) {
        let bytes = match rng.below(12) {
            0..=3 => frame(0xd, &[rng.below(64) as u8]),
            4..=6 => frame(0xf_0700, b"\0u=1"),
            7 | 8 => frame(0x21, &vec![0; rng.below(100) as usize]),
            9 => vec![0x21, 0x3f],
            10 => frame(7, &[0]),
            _ => frame(4, &[]),
        };
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(Ok(sent)) = self.control.poll_write(&mut cx, &bytes) {
            self.sent += sent as u64;
        }
    }
}

impl Stream {
    /// Sends up to `len` bytes of what is left, as far as there is room, and returns how many.
    fn send_rest(&mut self, len: usize) -> u64 {
        let Some(send) = &mut self.send else {
            return 0;
        };
        let mut cx = Context::from_waker(Waker::noop());
        let part = &self.rest[..len.min(self.rest.len())];
        if part.is_empty() {
            return 0;
        }
        match send.poll_write(&mut cx, part) {
            Poll::Ready(Ok(sent)) => {
                self.rest.drain(..sent);
                sent as u64
            }
            _ => 0,
        }
    }
}

impl Peer for Http3Peer {
    fn act(&mut self, rng: &mut Rng) {
        match rng.below(16) {
            0..=5 => self.ask(rng),
            6..=10 => self.touch(rng),
            11 => self.uni(rng),
            12 | 13 => self.bidi_of_session(rng),
            14 => self.datagrams(rng),
            _ if rng.below(4) == 0 => self.control(rng),
            _ => self.touch(rng),
        }
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn is_over(&self) -> bool {
        self.connection.close_reason().is_some()
    }

    fn let_go(&mut self) {
        for mut stream in self.streams.drain(..) {
            if let Some(send) = &mut stream.send {
                send.reset(0x10c);
            }
            if let Some(recv) = &mut stream.recv {
                recv.stop(0x10c);
            }
        }
        self.sessions.clear();
    }

    async fn leave(self, moves: Moves) {
        match moves {
            Moves::Close => self.connection.close(0x100, b""),
            Moves::Vanish => {}
        }
        drop(self.streams);
        drop(self.connection);
        drop(self.control);
        if moves == Moves::Close {
            soon(self.endpoint.idle()).await;
        }
    }
}
