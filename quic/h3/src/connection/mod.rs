//! One end of an HTTP/3 connection, without I/O.

mod control;
mod send;

use std::collections::VecDeque;

use bytes::Bytes;
use http::uri::Authority;
use hybriq_proto::Side;
use hybriq_proto::{Direction, StreamId, owners::streams::Priority};

pub(crate) use self::control::ControlReceiver;
pub use self::send::{TooLarge, put_data_head};
use crate::{
    error::Violation,
    qpack::{Decoder, Encoder},
    webtransport,
    wire::{
        frame::{self, uni},
        settings::Settings,
        varint,
    },
};

/// Configuration of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Settings of this end.
    pub settings: Settings,
    /// Largest dynamic table for what this end sends, in bytes, if the peer allows that much. Default: 4096.
    pub encoder_table: usize,
    /// A random number for a reserved setting, frame and stream (RFC 9114 §7.2.4.1, §7.2.8 and §6.2.3), which keep
    /// peers tolerant of unknown values: see also [`Connection::reserved_stream`]. Default: none, and nothing reserved
    /// is sent.
    pub grease: Option<u64>,
    /// Settings of the server on an earlier connection, under which 0-RTT data is sent (RFC 9114 §7.2.4.2). Default:
    /// none.
    pub remembered: Option<Settings>,
}

/// One end of an HTTP/3 connection (RFC 9114), without I/O, for any QUIC transport.
///
/// It holds what the streams of a connection share: settings, QPACK, GOAWAY. The streams themselves belong to the
/// caller: one [`Receiver`](crate::Receiver) for each message that arrives, and one
/// [`UniReceiver`](crate::UniReceiver) for each unidirectional stream of the peer.
///
/// # The loop of a driver
/// 1. Open three unidirectional streams. Whenever [`has_output`](Self::has_output), send what
///    [`take_output`](Self::take_output) returns on each of them, the encoder stream's first.
/// 2. Give each unidirectional stream of the peer to a `UniReceiver`, and read the
///    [events](Self::poll_event) afterwards.
/// 3. Give each bidirectional stream to a `Receiver`.
/// 4. Encode heads and trailers with [`write_request`](Self::write_request),
///    [`write_response`](Self::write_response) and [`write_trailers`](Self::write_trailers), and announce data with
///    [`put_data_head`](crate::put_data_head).
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    /// Settings of the peer, once they have arrived.
    peer: Option<Settings>,
    pub(crate) decoder: Decoder,
    pub(crate) encoder: Encoder,
    /// Critical streams of the peer that were opened.
    opened: [bool; 3],
    /// What waits to be sent on our critical streams.
    output: [Vec<u8>; 3],
    events: VecDeque<Event>,
    /// Id in the last GOAWAY that was sent, and in that of the peer.
    goaway_sent: Option<u64>,
    goaway: Option<u64>,
    max_push: u64,
    /// True if the peer takes datagrams of the transport.
    datagrams: bool,
    /// The authority of the last request.
    pub(crate) authority: Option<Authority>,
}

/// A stream that the connection needs, of which each end opens one.
///
/// Exhaustive: RFC 9114 §6.2 and RFC 9204 §4.2 have no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Critical {
    /// The control stream (RFC 9114 §6.2.1).
    Control,
    /// The encoder stream (RFC 9204 §4.2).
    Encoder,
    /// The decoder stream (RFC 9204 §4.2).
    Decoder,
}

/// Event from the peer's unidirectional streams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The settings of the peer have arrived: see [`Connection::peer_settings`].
    Settings,
    /// The server processes no requests from this stream on (RFC 9114 §5.2). Later events may name smaller ids.
    Goaway(StreamId),
    /// The client wants the response on this stream with this priority (RFC 9218 §7.2). The stream may not be open yet:
    /// close the connection with [`Violation::PriorityBeyondLimit`] if the client may not open it, and remember the
    /// priority of some others.
    Priority(StreamId, Priority),
    /// The entries of the dynamic table that the receiver of this stream waited for have arrived.
    Unblocked(StreamId),
}

impl Config {
    /// Creates a configuration with these settings.
    pub const fn new(settings: Settings) -> Self {
        Self {
            settings,
            encoder_table: 4096,
            grease: None,
            remembered: None,
        }
    }
}

/// Largest field section, if the settings set no limit: that which a map of the crate `http` always takes.
const MOST_SECTION: u64 = crate::MAX_FIELD_SECTION;

const CRITICAL: [(Critical, u64); 3] = [
    (Critical::Control, uni::CONTROL),
    (Critical::Encoder, uni::ENCODER),
    (Critical::Decoder, uni::DECODER),
];

impl Connection {
    /// Creates one end, whose settings wait to be sent.
    pub fn new(side: Side, config: Config) -> Self {
        let settings = &config.settings;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let decoder = Decoder::new(
            size(settings.qpack_max_table_capacity),
            size(settings.qpack_blocked_streams),
            settings.max_field_section_size.unwrap_or(MOST_SECTION),
        );
        let mut connection = Self {
            side,
            peer: None,
            decoder,
            encoder: Encoder::new(),
            opened: [false; 3],
            output: CRITICAL.map(|(_, kind)| vec![kind as u8]),
            events: VecDeque::new(),
            goaway_sent: None,
            goaway: None,
            max_push: 0,
            datagrams: false,
            authority: None,
            config,
        };
        connection.write_settings();
        if let Some(remembered) = &connection.config.remembered {
            let remembered = remembered.clone();
            connection.use_table(&remembered);
        }
        connection
    }

    fn write_settings(&mut self) {
        let mut settings = self.config.settings.clone();
        let grease = self.config.grease;
        if let Some(random) = grease {
            settings.others.push((reserved(random), random >> 56));
        }
        let mut payload = Vec::new();
        settings.write(&mut payload);
        self.put_control(frame::SETTINGS, &payload);
        if let Some(random) = grease {
            self.put_control(reserved(random >> 16), &[]);
        }
    }

    /// Returns the content of a stream of a reserved type (RFC 9114 §6.2.3), if this end sends reserved values. Open a
    /// unidirectional stream for it once those of the connection are open, unless the peer allows no other one.
    pub fn reserved_stream(&self) -> Option<Vec<u8>> {
        let random = self.config.grease?;
        let mut content = Vec::new();
        varint::put(reserved(random >> 32), &mut content);
        Some(content)
    }

    fn put_control(&mut self, kind: u64, payload: &[u8]) {
        let [control, ..] = &mut self.output;
        let len = payload.len() as u64;
        frame::Head { kind, len }.put(control);
        control.extend_from_slice(payload);
    }

    /// Returns the role of this end.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Returns the settings of the peer, once they have arrived; before, those of an earlier connection under which
    /// 0-RTT data is sent, if there are any.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.peer.as_ref().or(self.config.remembered.as_ref())
    }

    /// Returns true once the settings of the peer have arrived on this connection.
    pub const fn has_peer_settings(&self) -> bool {
        self.peer.is_some()
    }

    /// Returns the largest field section that this end accepts, in bytes (RFC 9114 §4.2.2).
    pub fn max_field_section(&self) -> u64 {
        let own = self.config.settings.max_field_section_size;
        own.unwrap_or(MOST_SECTION)
    }

    /// Returns true if streams of WebTransport may arrive.
    pub(crate) fn takes_sessions(&self) -> bool {
        webtransport::is_announced(&self.config.settings)
    }

    /// Checks the id of a session: that of a stream that carries a request.
    pub(crate) fn session_id(id: StreamId) -> Result<StreamId, Violation> {
        if is_request(id) {
            Ok(id)
        } else {
            Err(Violation::SessionId)
        }
    }

    /// Returns the next event. Read it after each call of [`UniReceiver::on_data`](crate::UniReceiver::on_data).
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let stream = self.decoder.next_unblocked()?;
        Some(Event::Unblocked(StreamId(stream)))
    }

    /// Returns true if there is something to send on our critical streams.
    pub fn has_output(&self) -> bool {
        self.output.iter().any(|output| !output.is_empty()) || self.decoder.has_instructions()
    }

    /// Returns the bytes that wait to be sent on our critical streams. They grow without bound if the peer gives no
    /// credit for them while it sends what must be answered there: close the connection beyond some limit.
    pub fn unsent(&self) -> usize {
        let output = self.output.iter().map(Vec::len).sum::<usize>();
        output + self.decoder.unsent()
    }

    /// Takes the bytes to send on one of our critical streams. The first of them are the type of the stream.
    pub fn take_output(&mut self, stream: Critical) -> Bytes {
        let [control, encoder, decoder] = &mut self.output;
        let output = match stream {
            Critical::Control => control,
            Critical::Encoder => encoder,
            Critical::Decoder => {
                self.decoder.take_instructions(decoder);
                decoder
            }
        };
        if output.is_empty() {
            return Bytes::new();
        }
        std::mem::take(output).into()
    }

    /// Sends GOAWAY (RFC 9114 §5.2). A server processes no requests from this stream on. A client, which has promised
    /// no pushes, announces that it leaves. Ids only decrease: a larger one has no effect.
    pub fn go_away(&mut self, first: StreamId) {
        let id = if self.side.is_server() { first.0 } else { 0 };
        if self.goaway_sent.is_some_and(|sent| sent <= id) {
            return;
        }
        self.goaway_sent = Some(id);
        let mut payload = Vec::new();
        varint::put(id.min(varint::MAX), &mut payload);
        self.put_control(frame::GOAWAY, &payload);
    }

    /// Returns true if the server does not process the request on this stream, according to its GOAWAY or ours.
    pub fn is_refused(&self, stream: StreamId) -> bool {
        let first = if self.side.is_server() {
            self.goaway_sent
        } else {
            self.goaway
        };
        first.is_some_and(|first| stream.0 >= first)
    }

    /// Returns the bytes of memory that the tables of QPACK hold.
    pub fn memory(&self) -> usize {
        let output = self.output.iter().map(Vec::capacity).sum::<usize>();
        self.decoder.memory() + self.encoder.memory() + output
    }

    /// Returns the number of entries that this end's encoder, and the peer's, have inserted into their dynamic
    /// tables.
    pub const fn inserted(&self) -> Inserted {
        Inserted {
            local: self.encoder.inserted(),
            peer: self.decoder.inserted(),
        }
    }

    /// Notes that the peer opened a critical stream.
    pub(crate) fn on_critical(&mut self, stream: Critical) -> Result<(), Violation> {
        let index = CRITICAL.iter().position(|(known, _)| *known == stream);
        let opened = index.and_then(|index| self.opened.get_mut(index));
        if opened.is_some_and(|opened| std::mem::replace(opened, true)) {
            return Err(match stream {
                Critical::Control => Violation::SecondControlStream,
                Critical::Encoder | Critical::Decoder => Violation::SecondQpackStream,
            });
        }
        Ok(())
    }

    pub(crate) fn on_encoder_stream(&mut self, data: &[u8]) -> Result<(), Violation> {
        Ok(self.decoder.on_encoder_stream(data)?)
    }

    /// Notes that the peer accepts datagrams of the transport (RFC 9221), without which settings with HTTP Datagrams
    /// are an error (RFC 9297 §2.1.1). Call it before [`UniReceiver::on_data`](crate::UniReceiver::on_data).
    pub fn on_transport_datagrams(&mut self) {
        self.datagrams = true;
    }

    fn use_table(&mut self, peer: &Settings) {
        self.encoder.set_peer(
            peer.qpack_max_table_capacity,
            peer.qpack_blocked_streams,
            self.config.encoder_table,
        );
    }
}

/// Entries that were inserted into dynamic tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inserted {
    /// By the encoder of this end.
    pub local: u64,
    /// By that of the peer.
    pub peer: u64,
}

/// Returns a reserved identifier or type: 0x1f * N + 0x21 (RFC 9114 §7.2.4.1).
const fn reserved(random: u64) -> u64 {
    0x1f * (random & 0xffff) + 0x21
}

/// Returns true for a stream that carries a request.
pub(crate) fn is_request(id: StreamId) -> bool {
    id.direction() == Direction::Bidi && id.initiator() == Side::Client
}
