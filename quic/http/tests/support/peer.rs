//! A client of sessions that writes its bytes itself, so that it can break every rule.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test program uses a part of it"
)]

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use hybriq::{Connection, Endpoint, RecvStream, SendStream, StreamId, tls::Side};
use hybriq_h3::{
    Code, Config, Received, Receiver, Settings, put_datagram_head, read_datagram,
    webtransport::{Capsule, Decoder},
};

use crate::support::{Certificate, client_config, soon};

/// Settings of a client of draft 02: HTTP Datagrams, and SETTINGS_ENABLE_WEBTRANSPORT.
pub const DRAFT02: &[(u64, u64)] = &[(0x33, 1), (0x2b60_3742, 1)];

/// A connection whose client has sent nothing but its settings.
pub struct Peer {
    pub connection: Connection,
    _endpoint: Endpoint,
    _control: SendStream,
}

/// A request of that client.
pub struct Request {
    pub send: SendStream,
    recv: RecvStream,
    receiver: Receiver<Response<()>>,
    core: hybriq_h3::Connection,
    decoder: Decoder,
    /// Data behind the last capsule.
    rest: Bytes,
}

impl Peer {
    pub async fn connect(address: SocketAddr) -> Self {
        let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        Self::with(endpoint, address, DRAFT02).await
    }

    pub async fn with(endpoint: Endpoint, address: SocketAddr, settings: &[(u64, u64)]) -> Self {
        let connection = soon(endpoint.connect(address, "localhost")).await.unwrap();
        let mut payload = Vec::new();
        for (id, value) in settings {
            payload.extend(integer(*id));
            payload.extend(integer(*value));
        }
        let mut control = soon(connection.open_uni()).await.unwrap();
        let frame = [&[0, 4, payload.len() as u8][..], &payload].concat();
        soon(control.write_all(&frame)).await.unwrap();
        Self {
            connection,
            _endpoint: endpoint,
            _control: control,
        }
    }

    /// Asks for a session at `/chat`.
    pub async fn ask(&self) -> Request {
        self.ask_with(&[]).await
    }

    /// Asks for a session with more fields.
    pub async fn ask_with(&self, fields: &[(&str, &str)]) -> Request {
        let streams = soon(self.connection.open_bidi()).await.unwrap();
        Self::ask_on(streams, "/chat", fields).await
    }

    /// Asks for a session on a stream that is open.
    pub async fn ask_on(
        streams: (SendStream, RecvStream),
        path: &str,
        fields: &[(&str, &str)],
    ) -> Request {
        let fields = [&[(":protocol", "webtransport")], fields].concat();
        Self::send(streams, 0xcf, path, &fields).await
    }

    /// Asks for a tunnel.
    pub async fn ask_for_udp(&self, path: &str) -> Request {
        let streams = soon(self.connection.open_bidi()).await.unwrap();
        let fields = [(":protocol", "connect-udp"), ("capsule-protocol", "?1")];
        Self::send(streams, 0xcf, path, &fields).await
    }

    /// Asks for a session that must be accepted.
    pub async fn session(&self) -> Request {
        let mut request = self.ask().await;
        assert_eq!(request.status().await, StatusCode::OK);
        request
    }

    /// Sends an ordinary request, and waits for the end of its response.
    pub async fn get(&self) {
        let streams = soon(self.connection.open_bidi()).await.unwrap();
        let mut request = Self::send(streams, 0xd1, "/", &[]).await;
        request.send.finish();
        request.status().await;
        while request.data().await.unwrap().is_some() {}
    }

    /// Sends the head of a request, whose method is this static entry of QPACK.
    async fn send(
        (mut send, recv): (SendStream, RecvStream),
        method: u8,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Request {
        soon(send.write_all(&head(method, path, fields)))
            .await
            .unwrap();
        let config = Config::new(Settings::new());
        Request {
            receiver: Receiver::response(send.id(), &Method::CONNECT),
            send,
            recv,
            core: hybriq_h3::Connection::new(Side::Client, config),
            decoder: Decoder::default(),
            rest: Bytes::new(),
        }
    }

    /// Opens a unidirectional stream for a session, and sends data on it.
    pub async fn uni(&self, session: StreamId, data: &[u8]) -> SendStream {
        let mut send = soon(self.connection.open_uni()).await.unwrap();
        let head = [&[0x40, 0x54][..], &integer(session.0), data].concat();
        soon(send.write_all(&head)).await.unwrap();
        send
    }

    /// Opens a bidirectional stream for a session, and sends data on it.
    pub async fn bidi(&self, session: StreamId, data: &[u8]) -> (SendStream, RecvStream) {
        let (mut send, recv) = soon(self.connection.open_bidi()).await.unwrap();
        let head = [&[0x40, 0x41][..], &integer(session.0), data].concat();
        soon(send.write_all(&head)).await.unwrap();
        (send, recv)
    }

    pub fn send_datagram(&self, session: StreamId, payload: &[u8]) {
        let mut datagram = Vec::new();
        put_datagram_head(session, &mut datagram);
        datagram.extend(payload);
        self.connection.send_datagram(datagram.into()).unwrap();
    }

    pub async fn recv_datagram(&self) -> Bytes {
        let datagram = soon(self.connection.recv_datagram()).await.unwrap();
        read_datagram(datagram.unwrap()).unwrap().1
    }
}

impl Request {
    pub fn id(&self) -> StreamId {
        self.send.id()
    }

    /// Waits for the head of the response.
    pub async fn head(&mut self) -> Response<()> {
        match self.next().await {
            Ok(Received::Head(head)) => head,
            other => panic!("no head: {other:?}"),
        }
    }

    pub async fn status(&mut self) -> StatusCode {
        self.head().await.status()
    }

    /// Returns the next data; `None` at the end, and the code of a reset.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Code> {
        match self.next().await? {
            Received::Data(data) => Ok(Some(data)),
            Received::End => Ok(None),
            other => panic!("no data: {other:?}"),
        }
    }

    /// Waits for the next capsule. Packets may end in the middle of one.
    pub async fn capsule(&mut self) -> Capsule {
        loop {
            if let Some(capsule) = self.decoder.next(&mut self.rest).unwrap() {
                return capsule;
            }
            self.rest = self.data().await.unwrap().expect("another capsule");
        }
    }

    /// Sends bytes in a DATA frame: capsules, or parts of them.
    pub async fn send_data(&mut self, data: &[u8]) {
        let frame = [&[0][..], &integer(data.len() as u64), data].concat();
        soon(self.send.write_all(&frame)).await.unwrap();
    }

    async fn next(&mut self) -> Result<Received<Response<()>>, Code> {
        loop {
            match self.receiver.poll(&mut self.core).unwrap() {
                Received::NeedData => {}
                received => return Ok(received),
            }
            match soon(self.recv.read_chunk(usize::MAX)).await {
                Ok(Some(data)) => self.receiver.on_data(data),
                Ok(None) => self.receiver.on_fin(),
                Err(hybriq::ReadError::Reset(code)) => return Err(Code(code)),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Encodes an integer (RFC 9000 §16).
pub fn integer(value: u64) -> Vec<u8> {
    match value {
        0..=0x3f => vec![value as u8],
        0x40..=0x3fff => (value as u16 | 0x4000).to_be_bytes().into(),
        0x4000..=0x3fff_ffff => (value as u32 | 0x8000_0000).to_be_bytes().into(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().into(),
    }
}

/// Encodes the head of a request, whose method is this static entry of QPACK.
pub fn head(method: u8, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0, method, 0xd7, 0x50, 9];
    section.extend(b"localhost\x51");
    section.push(path.len() as u8);
    section.extend(path.as_bytes());
    for (name, value) in fields {
        section.extend([0x27, name.len() as u8 - 7]);
        section.extend(name.as_bytes());
        section.push(value.len() as u8);
        section.extend(value.as_bytes());
    }
    [&[1][..], &integer(section.len() as u64), &section].concat()
}
