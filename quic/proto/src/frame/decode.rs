use super::Direction::{Bidi, Uni};
use std::borrow::Cow;

use super::{
    Ack, AckFrequency, ConnectionClose, Crypto, DataBlocked, Datagram, Frame, MaxData,
    MaxStreamData, MaxStreams, NewConnectionId, NewToken, PathChallenge, PathResponse, ResetStream,
    ResetStreamAt, RetireConnectionId, StopSending, Stream, StreamDataBlocked, StreamsBlocked,
    TYPE_HANDSHAKE_DONE, TYPE_PADDING, TYPE_PING, ack, ack_frequency, cid, close, crypto, datagram,
    flow, path, reset_stream_at, stream, token,
};
use crate::{
    error::{Code, TransportError},
    wire::{Eof, Reader, VarInt},
};

/// Why the fields of a frame cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// The packet ends before they do.
    Eof,
    /// They break a rule; the text names the frame and the rule.
    Rule(&'static str),
    /// There is no such type.
    UnknownType,
}

impl From<Eof> for DecodeError {
    fn from(Eof: Eof) -> Self {
        Self::Eof
    }
}

/// Checks that no byte lies beyond the largest offset a stream can have (RFC 9000 §19.6, §19.8).
pub(super) const fn check_end(
    offset: u64,
    data: &[u8],
    reason: &'static str,
) -> Result<(), DecodeError> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= VarInt::MAX.get() => Ok(()),
        _ => Err(DecodeError::Rule(reason)),
    }
}

impl<'a> Frame<'a> {
    /// Reads the next frame of a packet. A run of PADDING is one frame.
    ///
    /// The reader stands on the first byte of a frame, not at the end of the packet.
    ///
    /// # Errors
    /// `FRAME_ENCODING_ERROR` for an unknown type, for fields that end early and for those that break
    /// a rule of RFC 9000 §19; `PROTOCOL_VIOLATION` for a type not in its shortest form (§12.4).
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, TransportError> {
        let ty = frame_type(reader)?;
        Self::decode_fields(ty, reader).map_err(|error| {
            let reason = match error {
                DecodeError::Eof => Cow::Owned(format!("{} ends before its fields do", name(ty))),
                DecodeError::Rule(reason) => Cow::Borrowed(reason),
                DecodeError::UnknownType => Cow::Owned(format!("frame of unknown type {ty:#x}")),
            };
            TransportError::new(Code::FRAME_ENCODING_ERROR, reason).in_frame(ty)
        })
    }

    fn decode_fields(ty: u64, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match ty {
            TYPE_PADDING => Self::Padding(1 + skip_zeros(reader)?),
            TYPE_PING => Self::Ping,
            ack::TYPE | ack::TYPE_ECN => Self::Ack(Ack::decode(ty, reader)?),
            stream::TYPE_RESET => Self::ResetStream(ResetStream::decode(reader)?),
            stream::TYPE_STOP => Self::StopSending(StopSending::decode(reader)?),
            crypto::TYPE => Self::Crypto(Crypto::decode(reader)?),
            token::TYPE => Self::NewToken(NewToken::decode(reader)?),
            stream::TYPE..=stream::TYPE_LAST => Self::Stream(Stream::decode(ty, reader)?),
            flow::TYPE_MAX_DATA => Self::MaxData(MaxData::decode(reader)?),
            flow::TYPE_MAX_STREAM_DATA => Self::MaxStreamData(MaxStreamData::decode(reader)?),
            flow::TYPE_MAX_STREAMS_BIDI => Self::MaxStreams(MaxStreams::decode(Bidi, reader)?),
            flow::TYPE_MAX_STREAMS_UNI => Self::MaxStreams(MaxStreams::decode(Uni, reader)?),
            flow::TYPE_DATA_BLOCKED => Self::DataBlocked(DataBlocked::decode(reader)?),
            flow::TYPE_STREAM_DATA_BLOCKED => {
                Self::StreamDataBlocked(StreamDataBlocked::decode(reader)?)
            }
            flow::TYPE_STREAMS_BLOCKED_BIDI => {
                Self::StreamsBlocked(StreamsBlocked::decode(Bidi, reader)?)
            }
            flow::TYPE_STREAMS_BLOCKED_UNI => {
                Self::StreamsBlocked(StreamsBlocked::decode(Uni, reader)?)
            }
            cid::TYPE_NEW => Self::NewConnectionId(NewConnectionId::decode(reader)?),
            cid::TYPE_RETIRE => Self::RetireConnectionId(RetireConnectionId::decode(reader)?),
            path::TYPE_CHALLENGE => Self::PathChallenge(PathChallenge::decode(reader)?),
            path::TYPE_RESPONSE => Self::PathResponse(PathResponse::decode(reader)?),
            close::TYPE_TRANSPORT | close::TYPE_APPLICATION => {
                Self::ConnectionClose(ConnectionClose::decode(ty, reader)?)
            }
            TYPE_HANDSHAKE_DONE => Self::HandshakeDone,
            ack_frequency::TYPE_IMMEDIATE => Self::ImmediateAck,
            ack_frequency::TYPE => Self::AckFrequency(AckFrequency::decode(reader)?),
            reset_stream_at::TYPE => Self::ResetStreamAt(ResetStreamAt::decode(reader)?),
            datagram::TYPE | datagram::TYPE_LEN => Self::Datagram(Datagram::decode(ty, reader)?),
            _ => return Err(DecodeError::UnknownType),
        })
    }
}

/// Reads a frame type, which must be in its shortest form (RFC 9000 §12.4).
#[inline]
fn frame_type(reader: &mut Reader<'_>) -> Result<u64, TransportError> {
    let before = reader.remaining();
    let ty = reader
        .varint()
        .map_err(|Eof| TransportError::new(Code::FRAME_ENCODING_ERROR, "cut frame type"))?;
    if before - reader.remaining() == VarInt::saturating(ty).size() {
        Ok(ty)
    } else {
        let reason = "frame type not in its shortest form";
        Err(TransportError::new(Code::PROTOCOL_VIOLATION, reason).in_frame(ty))
    }
}

/// Skips the rest of a run of PADDING: most of a datagram in a first flight, so in wide steps.
fn skip_zeros(reader: &mut Reader<'_>) -> Result<usize, Eof> {
    let bytes = reader.rest();
    let (chunks, _) = bytes.as_chunks::<16>();
    let zero_chunks = chunks
        .iter()
        .take_while(|chunk| u128::from_ne_bytes(**chunk) == 0)
        .count();
    let tail = bytes.iter().skip(16 * zero_chunks);
    let zeros = 16 * zero_chunks + tail.take_while(|byte| **byte == 0).count();
    reader.bytes(zeros)?;
    Ok(zeros)
}

/// What people call the frame.
const fn name(ty: u64) -> &'static str {
    match ty {
        ack::TYPE | ack::TYPE_ECN => "ACK",
        stream::TYPE_RESET => "RESET_STREAM",
        stream::TYPE_STOP => "STOP_SENDING",
        crypto::TYPE => "CRYPTO",
        token::TYPE => "NEW_TOKEN",
        stream::TYPE..=stream::TYPE_LAST => "STREAM",
        flow::TYPE_MAX_DATA => "MAX_DATA",
        flow::TYPE_MAX_STREAM_DATA => "MAX_STREAM_DATA",
        flow::TYPE_MAX_STREAMS_BIDI | flow::TYPE_MAX_STREAMS_UNI => "MAX_STREAMS",
        flow::TYPE_DATA_BLOCKED => "DATA_BLOCKED",
        flow::TYPE_STREAM_DATA_BLOCKED => "STREAM_DATA_BLOCKED",
        flow::TYPE_STREAMS_BLOCKED_BIDI | flow::TYPE_STREAMS_BLOCKED_UNI => "STREAMS_BLOCKED",
        cid::TYPE_NEW => "NEW_CONNECTION_ID",
        cid::TYPE_RETIRE => "RETIRE_CONNECTION_ID",
        path::TYPE_CHALLENGE => "PATH_CHALLENGE",
        path::TYPE_RESPONSE => "PATH_RESPONSE",
        close::TYPE_TRANSPORT | close::TYPE_APPLICATION => "CONNECTION_CLOSE",
        ack_frequency::TYPE => "ACK_FREQUENCY",
        reset_stream_at::TYPE => "RESET_STREAM_AT",
        datagram::TYPE | datagram::TYPE_LEN => "DATAGRAM",
        _ => "frame",
    }
}
