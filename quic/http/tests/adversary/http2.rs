//! Peers of HTTP/2 and HTTP/1.1 that make their own bytes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use hybriq_sim::Rng;
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::{
    app::{PATHS, TUNNEL},
    peer::{Moves, Peer},
    support::{Running, connect_tls},
};

/// Bytes that wait for room in the socket, at most.
const WAITING: usize = 1 << 20;

/// A connection over TCP whose bytes are made here.
struct Line {
    stream: TlsStream<TcpStream>,
    waiting: Vec<u8>,
    sent: u64,
    over: bool,
}

impl Line {
    async fn connect(server: &Running, alpn: &str) -> Self {
        Self {
            stream: connect_tls(server.address(), alpn).await.unwrap(),
            waiting: Vec::new(),
            sent: 0,
            over: false,
        }
    }

    /// Sends bytes, now or when there is room.
    fn send(&mut self, bytes: &[u8]) {
        if self.waiting.len() < WAITING {
            self.waiting.extend(bytes);
        }
        let mut cx = Context::from_waker(Waker::noop());
        while !self.waiting.is_empty() {
            match Pin::new(&mut self.stream).poll_write(&mut cx, &self.waiting) {
                Poll::Ready(Ok(sent)) => {
                    self.sent += sent as u64;
                    self.waiting.drain(..sent);
                }
                Poll::Ready(Err(_)) => {
                    self.over = true;
                    return;
                }
                Poll::Pending => break,
            }
        }
        let _ = Pin::new(&mut self.stream).poll_flush(&mut cx);
    }

    /// Reads what has come, up to this many bytes.
    fn read(&mut self, mut len: usize) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut buffer = [0; 4096];
        while len > 0 {
            let mut room = ReadBuf::new(&mut buffer);
            match Pin::new(&mut self.stream).poll_read(&mut cx, &mut room) {
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    len = len.saturating_sub(room.filled().len());
                }
                Poll::Ready(_) => {
                    self.over = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    async fn leave(mut self, moves: Moves) {
        if moves == Moves::Close {
            let closed: io::Result<()> =
                std::future::poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await;
            drop(closed);
        }
    }
}

/// A peer of HTTP/2 (RFC 9113).
pub(crate) struct Http2Peer {
    line: Line,
    next: u32,
    open: Vec<u32>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    let mut out = vec![len[1], len[2], len[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Returns the field section of a request (RFC 7541), of extended CONNECT if there is a protocol.
fn section(path: &str, protocol: Option<&str>) -> Vec<u8> {
    let mut out = match protocol {
        None => vec![0x82, 0x87],
        Some(protocol) => {
            let mut out = vec![0x02, 7];
            out.extend(b"CONNECT");
            out.push(0x87);
            out.extend([0, 9]);
            out.extend(b":protocol");
            out.push(protocol.len() as u8);
            out.extend(protocol.as_bytes());
            out
        }
    };
    out.extend([0x01, 9]);
    out.extend(b"localhost");
    out.extend([0x04, path.len() as u8]);
    out.extend(path.as_bytes());
    out
}

impl Http2Peer {
    pub(crate) async fn connect(server: &Running, rng: &mut Rng) -> Self {
        let mut line = Line::connect(server, "h2").await;
        line.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        // SETTINGS_INITIAL_WINDOW_SIZE: none, a little or much.
        let window = [0, 10, 65_535, 1 << 24][rng.below(4) as usize];
        let settings = [&[0, 4][..], &u32::to_be_bytes(window)].concat();
        line.send(&frame(SETTINGS, 0, 0, &settings));
        Self {
            line,
            next: 1,
            open: Vec::new(),
        }
    }

    fn ask(&mut self, rng: &mut Rng) {
        let stream = self.next;
        self.next += 2;
        self.open.push(stream);
        let (path, protocol) = match rng.below(8) {
            0 => (TUNNEL, Some("any")),
            _ => (PATHS[rng.below(PATHS.len() as u64) as usize], None),
        };
        let fields = section(path, protocol);
        let end = match (protocol, rng.below(3)) {
            (None, 1 | 2) => END_STREAM,
            _ => 0,
        };
        if rng.below(6) == 0 {
            let (first, second) = fields.split_at(fields.len() / 2);
            self.line.send(&frame(HEADERS, end, stream, first));
            self.line
                .send(&frame(CONTINUATION, END_HEADERS, stream, second));
        } else {
            self.line
                .send(&frame(HEADERS, end | END_HEADERS, stream, &fields));
        }
    }

    fn stream(&self, rng: &mut Rng) -> u32 {
        if self.open.is_empty() {
            return 1;
        }
        self.open[rng.below(self.open.len() as u64) as usize]
    }
}

impl Peer for Http2Peer {
    fn act(&mut self, rng: &mut Rng) {
        let stream = self.stream(rng);
        let bytes = match rng.below(20) {
            0..=7 => return self.ask(rng),
            8 | 9 => frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
            10 | 11 => frame(DATA, 0, stream, &vec![3; rng.below(2000) as usize]),
            12 => frame(DATA, END_STREAM, stream, &[]),
            13 => frame(WINDOW_UPDATE, 0, stream, &1000_u32.to_be_bytes()),
            14 => frame(WINDOW_UPDATE, 0, 0, &1000_u32.to_be_bytes()),
            15 => frame(PING, 0, 0, &[7; 8]),
            16 => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, rng.below(100) as u8]),
            17 => frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1]),
            18 if rng.below(8) == 0 => frame(GOAWAY, 0, 0, &[0; 8]),
            _ => return self.line.read(1 << 14),
        };
        self.line.send(&bytes);
    }

    fn sent(&self) -> u64 {
        self.line.sent
    }

    fn is_over(&self) -> bool {
        self.line.over
    }

    fn let_go(&mut self) {
        for stream in std::mem::take(&mut self.open) {
            self.line
                .send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
        self.line.read(1 << 24);
    }

    async fn leave(self, moves: Moves) {
        self.line.leave(moves).await;
    }
}

/// A peer of HTTP/1.1 (RFC 9112).
pub(crate) struct Http1Peer {
    line: Line,
}

impl Http1Peer {
    pub(crate) async fn connect(server: &Running) -> Self {
        Self {
            line: Line::connect(server, "http/1.1").await,
        }
    }
}

impl Peer for Http1Peer {
    fn act(&mut self, rng: &mut Rng) {
        let path = PATHS[rng.below(PATHS.len() as u64) as usize];
        let text = match rng.below(8) {
            0 | 1 => format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            2 => format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{:50}",
                "x"
            ),
            3 => format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
            ),
            4 => format!(
                "GET {TUNNEL} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: any\r\n\r\n"
            ),
            5 => "GET / HTTP/1.1\r\nx: ".to_owned(),
            6 => "x".repeat(rng.below(100) as usize),
            _ => return self.line.read(1 << 14),
        };
        self.line.send(text.as_bytes());
    }

    fn sent(&self) -> u64 {
        self.line.sent
    }

    fn is_over(&self) -> bool {
        self.line.over
    }

    // There is nothing to give up but the connection.
    fn let_go(&mut self) {
        self.line.read(1 << 24);
    }

    async fn leave(self, moves: Moves) {
        self.line.leave(moves).await;
    }
}
