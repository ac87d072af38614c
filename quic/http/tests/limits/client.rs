//! A client that keeps no rule of its own: it asks after GOAWAY, and takes nothing unless it is told to.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use hybriq::ReadError;
use hybriq_http::Handle;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::support::{Certificate, Http3, client_config, connect_tls, soon};

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
    Http3,
}

pub(crate) const VERSIONS: [Version; 3] = [Version::Http1, Version::Http2, Version::Http3];

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The response came to its end.
    Answered(u16),
    /// The request was refused unseen, and may be sent again.
    Refused,
    /// The stream ended before the response did, with this code.
    Reset(u64),
    /// The connection is over.
    Gone,
}

/// A request that was sent.
pub(crate) struct Asked(Stream);

enum Stream {
    Http1,
    Http2(u32),
    Http3(hybriq::SendStream, hybriq::RecvStream),
}

impl Asked {
    /// Returns the receiving half of a stream of HTTP/3.
    pub(crate) fn receiver(self) -> Option<hybriq::RecvStream> {
        match self.0 {
            Stream::Http3(_, recv) => Some(recv),
            _ => None,
        }
    }
}

pub(crate) enum Client {
    Http1(Box<TlsStream<TcpStream>>),
    Http2(Box<Http2>),
    Http3(Http3),
}

/// Settings of a client that a server must not suffer from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    /// Bytes that the server may send on a stream, if not the usual ones.
    pub(crate) window: Option<u32>,
    /// True if the client does not answer PING.
    pub(crate) is_silent: bool,
}

impl Client {
    pub(crate) async fn connect(version: Version, address: SocketAddr) -> Self {
        Self::with(version, address, Manners::default()).await
    }

    pub(crate) async fn with(version: Version, address: SocketAddr, manners: Manners) -> Self {
        match version {
            Version::Http1 => {
                Self::Http1(Box::new(connect_tls(address, "http/1.1").await.unwrap()))
            }
            Version::Http2 => Self::Http2(Box::new(Http2::connect(address, manners).await)),
            Version::Http3 => {
                let mut config = client_config(&Certificate::shared());
                let mut transport =
                    hybriq::TransportConfig::new().keep_alive(Duration::from_millis(50));
                if let Some(window) = manners.window {
                    transport = transport.stream_receive_window(u64::from(window.max(1)));
                }
                config = config.transport(transport);
                Self::Http3(Http3::with(address, config).await)
            }
        }
    }

    /// Sends a GET. `None` if the connection is over.
    pub(crate) async fn send(&mut self, path: &str) -> Option<Asked> {
        self.send_with(path, 0).await
    }

    /// Sends a GET with this number of additional `accept` fields, each of 38 to 41 bytes (RFC 9114 §4.2.2).
    pub(crate) async fn send_with(&mut self, path: &str, fields: usize) -> Option<Asked> {
        Some(Asked(match self {
            Self::Http1(stream) => {
                let fields = "accept:\r\n".repeat(fields);
                let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                stream.flush().await.ok()?;
                Stream::Http1
            }
            Self::Http2(client) => Stream::Http2(client.get(path, fields).await?),
            Self::Http3(client) => {
                let opened = client.connection.open_bidi();
                let (mut send, recv) = soon(opened).await.ok()?;
                send.write_all(&http3_get(path, fields)).await.ok()?;
                send.finish();
                Stream::Http3(send, recv)
            }
        }))
    }

    /// Sends a request whose fields do not end, on a connection that has had others.
    pub(crate) async fn send_part(&mut self) -> Asked {
        match self {
            Self::Http1(stream) => {
                let part = b"GET / HTTP/1.1\r\nhost: a\r\n";
                stream.write_all(part).await.unwrap();
                stream.flush().await.unwrap();
                Asked(Stream::Http1)
            }
            // END_STREAM without END_HEADERS.
            Self::Http2(client) => Asked(Stream::Http2(client.headers(1, GET).await.unwrap())),
            Self::Http3(client) => {
                let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
                send.write_all(&http3_get("/", 0)[..8]).await.unwrap();
                Asked(Stream::Http3(send, recv))
            }
        }
    }

    /// Sends a request without `:path`, or over HTTP/2 every second time one with two of `:method`. `None` if the
    /// connection is over.
    pub(crate) async fn send_malformed(&mut self) -> Option<Asked> {
        Some(Asked(match self {
            Self::Http1(_) => unreachable!("it would end the connection"),
            Self::Http2(client) => {
                // h2 finds the second before it opens the stream.
                let twice = [&GET[..1], GET].concat();
                let fields = if client.next % 4 == 1 {
                    &GET[..5]
                } else {
                    &twice
                };
                Stream::Http2(client.headers(5, fields).await?)
            }
            Self::Http3(client) => {
                let opened = soon(client.connection.open_bidi()).await;
                let (mut send, recv) = opened.ok()?;
                send.write_all(&[1, 4, 0, 0, 0xd1, 0xd7]).await.ok()?;
                send.finish();
                Stream::Http3(send, recv)
            }
        }))
    }

    /// Asks for the protocol `websocket` on `/upgrade`.
    pub(crate) async fn upgrade(&mut self) -> Option<Asked> {
        Some(Asked(match self {
            Self::Http1(stream) => {
                let head = "GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
                stream.write_all(head.as_bytes()).await.ok()?;
                stream.flush().await.ok()?;
                Stream::Http1
            }
            Self::Http2(client) => Stream::Http2(client.connect_request().await?),
            Self::Http3(client) => {
                let (mut send, recv) = soon(client.connection.open_bidi()).await.ok()?;
                send.write_all(&http3_connect()).await.ok()?;
                Stream::Http3(send, recv)
            }
        }))
    }

    /// Takes the response to its end. Over TCP, other responses are dropped.
    pub(crate) async fn take(&mut self, asked: Asked) -> Outcome {
        match (self, asked.0) {
            (Self::Http1(stream), Stream::Http1) => soon(http1_response(stream)).await,
            (Self::Http2(client), Stream::Http2(id)) => soon(client.response(id)).await,
            (Self::Http3(_), Stream::Http3(_send, mut recv)) => {
                match soon(recv.read_to_end(usize::MAX)).await {
                    Ok(response) => Outcome::Answered(http3_status(&response)),
                    Err(ReadError::Reset(0x10b)) => Outcome::Refused,
                    Err(ReadError::Reset(code)) => Outcome::Reset(code),
                    Err(_) => Outcome::Gone,
                }
            }
            _ => unreachable!("a request of another client"),
        }
    }

    pub(crate) async fn ask(&mut self, path: &str) -> Outcome {
        match self.send(path).await {
            Some(asked) => self.take(asked).await,
            None => Outcome::Gone,
        }
    }

    /// Cancels a request: with HTTP/1.1 there is no other way than to end the connection.
    pub(crate) async fn cancel(&mut self, asked: Asked) {
        match (self, asked.0) {
            (Self::Http2(client), Stream::Http2(id)) => {
                client.frame(3, 0, id, &8_u32.to_be_bytes()).await;
            }
            (_, Stream::Http3(mut send, mut recv)) => {
                send.reset(0x10c);
                recv.stop(0x10c);
            }
            _ => {}
        }
    }

    /// Waits for the end of the connection, and sends nothing.
    pub(crate) async fn closed(&mut self) {
        match self {
            Self::Http2(client) => soon(async { while client.read().await.is_some() {} }).await,
            _ => drop(self.ended().await),
        }
    }

    /// Waits for the end of the connection, and keeps it busy with PINGs until then. Returns the code of the
    /// close, of HTTP/2 that of the last GOAWAY.
    pub(crate) async fn ended(&mut self) -> Option<u64> {
        match self {
            Self::Http1(stream) => {
                let _ = soon(stream.read_to_end(&mut Vec::new())).await;
                None
            }
            Self::Http2(client) => soon(client.ended()).await,
            Self::Http3(client) => match soon(client.connection.closed()).await {
                hybriq::ConnectionError::Application { code, .. } => Some(code),
                _ => None,
            },
        }
    }
}

/// Waits until the server has this number of connections.
pub(crate) async fn connections(handle: &Handle, count: usize) {
    soon(async {
        while handle.connections() != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Fields of a GET of `/` over HTTP/2, with the path at their end.
const GET: &[u8] = &[0x82, 0x87, 0x41, 1, b'a', 0x84];

fn http3_get(path: &str, more: usize) -> Vec<u8> {
    let mut fields = vec![0, 0, 0xd1, 0xd7, 0x50, 1, b'a', 0x51];
    fields.push(u8::try_from(path.len()).unwrap());
    fields.extend(path.as_bytes());
    // Each stands for `accept: */*`.
    fields.extend(vec![0xdd; more]);
    let mut frame = vec![1];
    frame.extend((u16::try_from(fields.len()).unwrap() | 0x4000).to_be_bytes());
    frame.extend(fields);
    frame
}

fn http3_connect() -> Vec<u8> {
    let mut fields = vec![0, 0, 0xcf, 0xd7, 0x50, 1, b'a', 0x51, 8];
    fields.extend(b"/upgrade");
    fields.extend([0x27, 2]);
    fields.extend(b":protocol");
    fields.push(9);
    fields.extend(b"websocket");
    let mut frame = vec![1, u8::try_from(fields.len()).unwrap()];
    frame.extend(fields);
    frame
}

/// Returns the status of a response whose first field is that.
fn http3_status(response: &[u8]) -> u16 {
    let head = response.iter().position(|&byte| byte == 1).unwrap();
    let fields = &response[head + 2 + usize::from(response[head + 1] >> 6 != 0)..];
    match fields[2..] {
        [0xd9, ..] => 200,
        [0xdb, ..] => 404,
        [0xdc, ..] => 503,
        // Values of `:status` that no table has, in the code of Huffman and without.
        [0x5f, 9, 0x83, 0x69, 0x90, 0xff, ..] => 431,
        [0x5f, _, 3, a, b, c, ..] => [a, b, c]
            .iter()
            .fold(0, |status, digit| status * 10 + u16::from(digit - b'0')),
        _ => 0,
    }
}

async fn http1_response(stream: &mut TlsStream<TcpStream>) -> Outcome {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Outcome::Gone,
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    match stream.read_exact(&mut body).await {
        Ok(_) => Outcome::Answered(status),
        Err(_) => Outcome::Gone,
    }
}

/// A client of HTTP/2, frame by frame.
pub(crate) struct Http2 {
    stream: TlsStream<TcpStream>,
    next: u32,
    manners: Manners,
    /// Code of the last GOAWAY.
    goaway: Option<u64>,
    /// Status of each response that has begun.
    statuses: HashMap<u32, u16>,
}

struct Frame {
    ty: u8,
    flags: u8,
    id: u32,
    payload: Vec<u8>,
}

/// Makes a frame of HTTP/2.
pub(crate) fn frame(ty: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = len[1..].to_vec();
    frame.extend([ty, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    frame
}

impl Http2 {
    async fn connect(address: SocketAddr, manners: Manners) -> Self {
        let mut client = Self {
            stream: connect_tls(address, "h2").await.unwrap(),
            next: 1,
            manners,
            goaway: None,
            statuses: HashMap::new(),
        };
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        client.stream.write_all(preface).await.unwrap();
        let mut settings = Vec::new();
        if let Some(window) = manners.window {
            settings.extend([0, 4]);
            settings.extend(window.to_be_bytes());
        }
        client.frame(4, 0, 0, &settings).await;
        client
    }

    /// Sends a frame. Returns false if the connection is over.
    async fn frame(&mut self, ty: u8, flags: u8, id: u32, payload: &[u8]) -> bool {
        self.bytes(&frame(ty, flags, id, payload)).await
    }

    /// Sends frames, or a part of one. Returns false if the connection is over.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Sends a HEADERS frame on a new stream.
    async fn headers(&mut self, flags: u8, fields: &[u8]) -> Option<u32> {
        let id = self.next;
        self.next += 2;
        self.frame(1, flags, id, fields).await.then_some(id)
    }

    async fn get(&mut self, path: &str, more: usize) -> Option<u32> {
        let mut fields = vec![0x82, 0x87, 0x41, 1, b'a', 4];
        fields.push(u8::try_from(path.len()).unwrap());
        fields.extend(path.as_bytes());
        // Each stands for `accept` without a value.
        fields.extend(vec![0x93; more]);
        self.headers(5, &fields).await
    }

    async fn connect_request(&mut self) -> Option<u32> {
        let mut fields = vec![2, 7];
        fields.extend(b"CONNECT");
        fields.extend([0x87, 0x41, 1, b'a', 4, 8]);
        fields.extend(b"/upgrade");
        fields.extend([0, 9]);
        fields.extend(b":protocol");
        fields.push(9);
        fields.extend(b"websocket");
        self.headers(4, &fields).await
    }

    /// Reads a frame, and answers PING and SETTINGS.
    async fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let [a, b, c, ty, flags, id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).await.ok()?;
        if flags & 1 == 0 && (ty == 6 || ty == 4) && !self.manners.is_silent {
            let answer = if ty == 6 { payload.clone() } else { Vec::new() };
            self.frame(ty, 1, 0, &answer).await;
        }
        if ty == 7 {
            let code = u32::from_be_bytes(payload[4..8].try_into().unwrap());
            self.goaway = Some(code.into());
        }
        if ty == 1 {
            let status = match payload[..] {
                [0x88, ..] => 200,
                [0x8d, ..] => 404,
                // In the code of Huffman.
                [0x48, 0x83, 0x69, 0x90, 0xff, ..] => 431,
                _ => 0,
            };
            self.statuses.insert(u32::from_be_bytes(id), status);
        }
        Some(Frame {
            ty,
            flags,
            id: u32::from_be_bytes(id),
            payload,
        })
    }

    pub(crate) async fn response(&mut self, id: u32) -> Outcome {
        while let Some(frame) = self.read().await {
            if frame.id != id {
                continue;
            }
            match frame.ty {
                3 => {
                    return match u32::from_be_bytes(frame.payload.try_into().unwrap()) {
                        7 => Outcome::Refused,
                        code => Outcome::Reset(code.into()),
                    };
                }
                0 => {
                    let len = u32::try_from(frame.payload.len()).unwrap();
                    if len > 0 && self.manners.window.is_none() {
                        self.frame(8, 0, id, &len.to_be_bytes()).await;
                        self.frame(8, 0, 0, &len.to_be_bytes()).await;
                    }
                }
                _ => {}
            }
            if frame.flags & 1 != 0 && (frame.ty == 0 || frame.ty == 1) {
                return Outcome::Answered(self.statuses.get(&id).copied().unwrap_or_default());
            }
        }
        Outcome::Gone
    }

    async fn ended(&mut self) -> Option<u64> {
        self.frame(6, 0, 0, &[1; 8]).await;
        while let Some(frame) = self.read().await {
            if frame.ty == 6 && frame.flags & 1 != 0 {
                self.frame(6, 0, 0, &[1; 8]).await;
            }
        }
        self.goaway
    }
}
