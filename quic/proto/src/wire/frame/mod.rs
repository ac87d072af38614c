//! Frames (RFC 9000 §19): one file per family, with structs, encoding and decoding.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod ack;
mod connection;
mod decode;
mod stream;
mod writer;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

pub use crate::wire::FrameType;
use crate::wire::{Kind, Space, VarInt, Writer, error::Violation};
pub use ack::{Ack, AckEncoder, AckFrequency, AckRanges, EcnCounts};
pub use connection::cid::{NewConnectionId, RetireConnectionId};
pub use connection::close::ConnectionClose;
pub use connection::data::{Crypto, Datagram};
pub use connection::path::{NewToken, PathChallenge, PathResponse};
pub use decode::FrameReader;
pub use stream::flow::{
    DataBlocked, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked,
};
pub use stream::id::{Direction, StreamId};
pub use stream::{ResetStream, ResetStreamAt, StopSending, Stream, StreamHeader};
pub use writer::FrameWriter;

/// A received frame; payloads borrow the datagram.
///
/// Exhaustive: every reader must know each frame, and qlog names each.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// A run of PADDING (0x00), with its length.
    Padding(usize),
    /// PING (0x01).
    Ping,
    /// ACK (0x02, 0x03).
    Ack(Ack<'a>),
    /// `RESET_STREAM` (0x04).
    ResetStream(ResetStream),
    /// `STOP_SENDING` (0x05).
    StopSending(StopSending),
    /// CRYPTO (0x06).
    Crypto(Crypto<'a>),
    /// `NEW_TOKEN` (0x07).
    NewToken(NewToken<'a>),
    /// STREAM (0x08 to 0x0f).
    Stream(Stream<'a>),
    /// `MAX_DATA` (0x10).
    MaxData(MaxData),
    /// `MAX_STREAM_DATA` (0x11).
    MaxStreamData(MaxStreamData),
    /// `MAX_STREAMS` (0x12, 0x13).
    MaxStreams(MaxStreams),
    /// `DATA_BLOCKED` (0x14).
    DataBlocked(DataBlocked),
    /// `STREAM_DATA_BLOCKED` (0x15).
    StreamDataBlocked(StreamDataBlocked),
    /// `STREAMS_BLOCKED` (0x16, 0x17).
    StreamsBlocked(StreamsBlocked),
    /// `NEW_CONNECTION_ID` (0x18).
    NewConnectionId(NewConnectionId),
    /// `RETIRE_CONNECTION_ID` (0x19).
    RetireConnectionId(RetireConnectionId),
    /// `PATH_CHALLENGE` (0x1a).
    PathChallenge(PathChallenge),
    /// `PATH_RESPONSE` (0x1b).
    PathResponse(PathResponse),
    /// `CONNECTION_CLOSE` (0x1c, 0x1d).
    ConnectionClose(ConnectionClose<'a>),
    /// `HANDSHAKE_DONE` (0x1e).
    HandshakeDone,
    /// `IMMEDIATE_ACK` (0x1f; draft-ietf-quic-ack-frequency §5).
    ImmediateAck,
    /// `ACK_FREQUENCY` (0xaf; draft-ietf-quic-ack-frequency §4).
    AckFrequency(AckFrequency),
    /// `RESET_STREAM_AT` (0x24; draft-ietf-quic-reliable-stream-reset §4).
    ResetStreamAt(ResetStreamAt),
    /// DATAGRAM (0x30, 0x31; RFC 9221 §4).
    Datagram(Datagram<'a>),
}

impl Frame<'_> {
    /// Returns the type on the wire; for STREAM and DATAGRAM without the bit for the presence of a
    /// length.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Padding(_) => FrameType::PADDING,
            Self::Ping => FrameType::PING,
            Self::Ack(Ack { ecn: None, .. }) => FrameType::ACK,
            Self::Ack(_) => FrameType::ACK_ECN,
            Self::ResetStream(_) => FrameType::RESET_STREAM,
            Self::StopSending(_) => FrameType::STOP_SENDING,
            Self::Crypto(_) => FrameType::CRYPTO,
            Self::NewToken(_) => FrameType::NEW_TOKEN,
            Self::Stream(frame) => frame.header().frame_type(),
            Self::MaxData(_) => FrameType::MAX_DATA,
            Self::MaxStreamData(_) => FrameType::MAX_STREAM_DATA,
            Self::MaxStreams(frame) => frame.frame_type(),
            Self::DataBlocked(_) => FrameType::DATA_BLOCKED,
            Self::StreamDataBlocked(_) => FrameType::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked(frame) => frame.frame_type(),
            Self::NewConnectionId(_) => FrameType::NEW_CONNECTION_ID,
            Self::RetireConnectionId(_) => FrameType::RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => FrameType::PATH_CHALLENGE,
            Self::PathResponse(_) => FrameType::PATH_RESPONSE,
            Self::ConnectionClose(frame) => frame.frame_type(),
            Self::HandshakeDone => FrameType::HANDSHAKE_DONE,
            Self::ImmediateAck => FrameType::IMMEDIATE_ACK,
            Self::AckFrequency(_) => FrameType::ACK_FREQUENCY,
            Self::ResetStreamAt(_) => FrameType::RESET_STREAM_AT,
            Self::Datagram(_) => FrameType::DATAGRAM,
        }
    }

    /// Returns true if a packet that carries the frame must be acknowledged (RFC 9000 §13.2).
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Padding(_) | Self::Ack(_) | Self::ConnectionClose(_)
        )
    }

    /// Returns true if the frame is a probing frame: a packet of only such frames does not move the
    /// peer to another path (RFC 9000 §9.1).
    #[inline]
    pub const fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::Padding(_)
                | Self::PathChallenge(_)
                | Self::PathResponse(_)
                | Self::NewConnectionId(_)
        )
    }

    /// Returns true if packets of that kind may carry the frame (RFC 9000 §12.4, table 3, and
    /// draft-ietf-quic-ack-frequency §3).
    pub const fn allowed_in(&self, kind: Kind) -> bool {
        match self {
            Self::Padding(_)
            | Self::Ping
            | Self::ConnectionClose(ConnectionClose::Transport { .. }) => true,
            Self::Ack(_) | Self::Crypto(_) => !matches!(kind, Kind::ZeroRtt),
            // The table marks RETIRE_CONNECTION_ID for 0-RTT, but §12.5 forbids it there.
            Self::NewToken(_)
            | Self::RetireConnectionId(_)
            | Self::PathResponse(_)
            | Self::HandshakeDone
            // The parameter that allows these two is not remembered for 0-RTT
            // (draft-ietf-quic-ack-frequency §3).
            | Self::ImmediateAck
            | Self::AckFrequency(_) => matches!(kind, Kind::OneRtt),
            Self::ConnectionClose(ConnectionClose::Application { .. })
            | Self::ResetStream(_)
            | Self::StopSending(_)
            | Self::Stream(_)
            | Self::MaxData(_)
            | Self::MaxStreamData(_)
            | Self::MaxStreams(_)
            | Self::DataBlocked(_)
            | Self::StreamDataBlocked(_)
            | Self::StreamsBlocked(_)
            | Self::NewConnectionId(_)
            | Self::PathChallenge(_)
            // draft-ietf-quic-reliable-stream-reset §3, RFC 9221 §5.
            | Self::ResetStreamAt(_)
            | Self::Datagram(_) => matches!(kind, Kind::ZeroRtt | Kind::OneRtt),
        }
    }
}

/// Time and pace of the path, for owners that tune themselves while they write.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Current time.
    pub now: Instant,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

/// A part of a connection that sends frames and repairs those that are lost.
pub trait Owner {
    /// Record of the owner's frames in one packet.
    type Sent;

    /// Returns true if a frame is waiting that is a reason to send a packet in this space.
    fn wants_to_send(&self, space: Space) -> bool;

    /// Returns true if a frame is waiting, even one that only rides along and is no reason to send
    /// a packet.
    #[inline]
    fn has_frames(&self, space: Space) -> bool {
        self.wants_to_send(space)
    }

    /// Writes as many waiting frames as fit, and records them in `sent`.
    fn write_frames(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Self::Sent);

    /// Handles the acknowledgement of a packet with these frames.
    fn on_acked(&mut self, sent: &Self::Sent);

    /// Queues frames again if they still matter, because their packet was lost or a probe repeats
    /// it.
    fn on_lost(&mut self, sent: &Self::Sent);
}

/// A frame that can be written.
pub trait Encode {
    /// True if the peer must acknowledge a packet that carries the frame (RFC 9000 §13.2).
    const ACK_ELICITING: bool = true;

    /// Returns the bytes of the encoded frame, its type included.
    fn size(&self) -> usize;

    /// Writes the frame. The writer has [`Encode::size`] bytes left.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// Checks that no byte lies beyond the largest offset a stream can have (RFC 9000 §19.6, §19.8).
pub(super) const fn check_end(
    offset: u64,
    data: &[u8],
    violation: Violation,
) -> Result<(), Violation> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= VarInt::MAX.get() => Ok(()),
        _ => Err(violation),
    }
}

/// Implements [`Encode`] for frames that are a list of variable-length integers: their `fields`,
/// the type first.
macro_rules! fields {
    ($($frame:ty),* $(,)?) => {$(
        impl Encode for $frame {
            #[inline]
            fn size(&self) -> usize {
                self.fields().into_iter().map(|field| VarInt::saturating(field).size()).sum()
            }

            #[inline]
            fn encode(&self, writer: &mut Writer<'_>) {
                self.fields().into_iter().for_each(|field| writer.varint(field));
            }
        }
    )*};
}

pub(super) use fields;
