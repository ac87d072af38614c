//! Frames (RFC 9000 §19): one family a file, each with its struct, its encoding and its decoding.

mod ack;
mod cid;
mod close;
mod crypto;
mod flow;
mod path;
mod stream;
mod token;
mod writer;

#[cfg(test)]
mod tests;

pub use ack::{Ack, AckRanges, EcnCounts};
pub use cid::{NewConnectionId, RetireConnectionId};
pub use close::ConnectionClose;
pub use crypto::Crypto;
pub use flow::{
    DataBlocked, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked,
};
pub use path::{PathChallenge, PathResponse};
pub use stream::{ResetStream, StopSending, Stream};
pub use token::NewToken;
pub use writer::{Encode, FrameWriter};

/// A frame as it came in; payloads borrow the datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// PADDING, a run of it (0x00).
    Padding(usize),
    /// PING (0x01).
    Ping,
    /// ACK (0x02, 0x03).
    Ack(Ack<'a>),
    /// RESET_STREAM (0x04).
    ResetStream(ResetStream),
    /// STOP_SENDING (0x05).
    StopSending(StopSending),
    /// CRYPTO (0x06).
    Crypto(Crypto<'a>),
    /// NEW_TOKEN (0x07).
    NewToken(NewToken<'a>),
    /// STREAM (0x08 to 0x0f).
    Stream(Stream<'a>),
    /// MAX_DATA (0x10).
    MaxData(MaxData),
    /// MAX_STREAM_DATA (0x11).
    MaxStreamData(MaxStreamData),
    /// MAX_STREAMS (0x12, 0x13).
    MaxStreams(MaxStreams),
    /// DATA_BLOCKED (0x14).
    DataBlocked(DataBlocked),
    /// STREAM_DATA_BLOCKED (0x15).
    StreamDataBlocked(StreamDataBlocked),
    /// STREAMS_BLOCKED (0x16, 0x17).
    StreamsBlocked(StreamsBlocked),
    /// NEW_CONNECTION_ID (0x18).
    NewConnectionId(NewConnectionId),
    /// RETIRE_CONNECTION_ID (0x19).
    RetireConnectionId(RetireConnectionId),
    /// PATH_CHALLENGE (0x1a).
    PathChallenge(PathChallenge),
    /// PATH_RESPONSE (0x1b).
    PathResponse(PathResponse),
    /// CONNECTION_CLOSE (0x1c, 0x1d).
    ConnectionClose(ConnectionClose<'a>),
    /// HANDSHAKE_DONE (0x1e).
    HandshakeDone,
}
