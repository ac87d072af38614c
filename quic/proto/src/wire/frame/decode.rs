//! Decoding of frames, and their names in qlog.

use super::{
    Ack, AckFrequency, ConnectionClose, Crypto, DataBlocked, Datagram,
    Direction::{Bidi, Uni},
    Frame, MaxData, MaxStreamData, MaxStreams, NewConnectionId, NewToken, PathChallenge,
    PathResponse, ResetStream, ResetStreamAt, RetireConnectionId, StopSending, Stream,
    StreamDataBlocked, StreamsBlocked, stream,
};
use crate::wire::{
    Eof, FrameType, Reader, VarInt,
    error::{TransportError, Violation},
};

impl<'a> Frame<'a> {
    /// Reads the next frame of a packet. A run of PADDING is one frame.
    ///
    /// The reader must be at the first byte of a frame, not at the end of the packet.
    ///
    /// # Errors
    /// `FRAME_ENCODING_ERROR` for an unknown type, for fields that end early and for those that
    /// break a rule of RFC 9000 §19; `PROTOCOL_VIOLATION` for a type not in its shortest form
    /// (§12.4).
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, TransportError> {
        let ty = frame_type(reader)?;
        Self::decode_fields(ty, reader).map_err(|violation| {
            let error = match violation {
                Violation::UnknownFrame => violation.of(format_args!("{:#x}", ty.0)),
                _ => violation.of(ty),
            };
            error.in_frame(ty)
        })
    }

    fn decode_fields(ty: FrameType, reader: &mut Reader<'a>) -> Result<Self, Violation> {
        Ok(match ty {
            FrameType::PADDING => Self::Padding(1 + skip_zeros(reader)?),
            FrameType::PING => Self::Ping,
            FrameType::ACK | FrameType::ACK_ECN => Self::Ack(Ack::decode(ty, reader)?),
            FrameType::RESET_STREAM => Self::ResetStream(ResetStream::decode(reader)?),
            FrameType::STOP_SENDING => Self::StopSending(StopSending::decode(reader)?),
            FrameType::CRYPTO => Self::Crypto(Crypto::decode(reader)?),
            FrameType::NEW_TOKEN => Self::NewToken(NewToken::decode(reader)?),
            FrameType(stream::FIRST..=stream::LAST) => Self::Stream(Stream::decode(ty, reader)?),
            FrameType::MAX_DATA => Self::MaxData(MaxData::decode(reader)?),
            FrameType::MAX_STREAM_DATA => Self::MaxStreamData(MaxStreamData::decode(reader)?),
            FrameType::MAX_STREAMS_BIDI => Self::MaxStreams(MaxStreams::decode(Bidi, reader)?),
            FrameType::MAX_STREAMS_UNI => Self::MaxStreams(MaxStreams::decode(Uni, reader)?),
            FrameType::DATA_BLOCKED => Self::DataBlocked(DataBlocked::decode(reader)?),
            FrameType::STREAM_DATA_BLOCKED => {
                Self::StreamDataBlocked(StreamDataBlocked::decode(reader)?)
            }
            FrameType::STREAMS_BLOCKED_BIDI => {
                Self::StreamsBlocked(StreamsBlocked::decode(Bidi, reader)?)
            }
            FrameType::STREAMS_BLOCKED_UNI => {
                Self::StreamsBlocked(StreamsBlocked::decode(Uni, reader)?)
            }
            FrameType::NEW_CONNECTION_ID => Self::NewConnectionId(NewConnectionId::decode(reader)?),
            FrameType::RETIRE_CONNECTION_ID => {
                Self::RetireConnectionId(RetireConnectionId::decode(reader)?)
            }
            FrameType::PATH_CHALLENGE => Self::PathChallenge(PathChallenge::decode(reader)?),
            FrameType::PATH_RESPONSE => Self::PathResponse(PathResponse::decode(reader)?),
            FrameType::CONNECTION_CLOSE | FrameType::APPLICATION_CLOSE => {
                Self::ConnectionClose(ConnectionClose::decode(ty, reader)?)
            }
            FrameType::HANDSHAKE_DONE => Self::HandshakeDone,
            FrameType::IMMEDIATE_ACK => Self::ImmediateAck,
            FrameType::ACK_FREQUENCY => Self::AckFrequency(AckFrequency::decode(reader)?),
            FrameType::RESET_STREAM_AT => Self::ResetStreamAt(ResetStreamAt::decode(reader)?),
            FrameType::DATAGRAM | FrameType::DATAGRAM_LEN => {
                Self::Datagram(Datagram::decode(ty, reader)?)
            }
            _ => return Err(Violation::UnknownFrame),
        })
    }
}

/// Reads the frames of a packet, each with its size in bytes.
///
/// It ends early at a frame that breaks a rule.
#[derive(Clone, Debug)]
pub struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    /// Creates a reader from the payload of a packet, without header and tag.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }
}

impl<'a> Iterator for FrameReader<'a> {
    type Item = (Frame<'a>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut reader = Reader::new(self.rest);
        let Ok(frame) = Frame::decode(&mut reader) else {
            self.rest = &[];
            return None;
        };
        let size = self.rest.len() - reader.remaining();
        self.rest = reader.rest();
        Some((frame, size))
    }
}

/// Reads a frame type, which must be in its shortest form (RFC 9000 §12.4).
#[inline]
fn frame_type(reader: &mut Reader<'_>) -> Result<FrameType, TransportError> {
    let before = reader.remaining();
    let ty = reader
        .varint()
        .map_err(|Eof| Violation::FrameTypeEndsEarly)?;
    if before - reader.remaining() == VarInt::saturating(ty).size() {
        Ok(FrameType(ty))
    } else {
        Err(Violation::FrameTypeTooLong.in_frame(FrameType(ty)))
    }
}

/// Skips the rest of a run of PADDING, in wide steps because it can be most of a datagram.
fn skip_zeros(reader: &mut Reader<'_>) -> Result<usize, Eof> {
    let bytes = reader.rest();
    let zero_chunks = bytes
        .chunks_exact(16)
        .take_while(|chunk| **chunk == [0; 16])
        .count();
    let tail = bytes.iter().skip(16 * zero_chunks);
    let zeros = 16 * zero_chunks + tail.take_while(|byte| **byte == 0).count();
    reader.bytes(zeros)?;
    Ok(zeros)
}

impl Frame<'_> {
    /// Returns the name of the frame in qlog (draft-ietf-quic-qlog-quic-events), and the stream it
    /// refers to.
    pub const fn in_qlog(&self) -> (&'static str, Option<u64>) {
        match self {
            Self::Padding(_) => ("padding", None),
            Self::Ping => ("ping", None),
            Self::Ack(_) => ("ack", None),
            Self::ResetStream(frame) => ("reset_stream", Some(frame.id.0)),
            Self::StopSending(frame) => ("stop_sending", Some(frame.id.0)),
            Self::Crypto(_) => ("crypto", None),
            Self::NewToken(_) => ("new_token", None),
            Self::Stream(frame) => ("stream", Some(frame.id.0)),
            Self::MaxData(_) => ("max_data", None),
            Self::MaxStreamData(frame) => ("max_stream_data", Some(frame.id.0)),
            Self::MaxStreams(_) => ("max_streams", None),
            Self::DataBlocked(_) => ("data_blocked", None),
            Self::StreamDataBlocked(frame) => ("stream_data_blocked", Some(frame.id.0)),
            Self::StreamsBlocked(_) => ("streams_blocked", None),
            Self::NewConnectionId(_) => ("new_connection_id", None),
            Self::RetireConnectionId(_) => ("retire_connection_id", None),
            Self::PathChallenge(_) => ("path_challenge", None),
            Self::PathResponse(_) => ("path_response", None),
            Self::ConnectionClose(_) => ("connection_close", None),
            Self::HandshakeDone => ("handshake_done", None),
            Self::ImmediateAck => ("immediate_ack", None),
            Self::AckFrequency(_) => ("ack_frequency", None),
            Self::ResetStreamAt(frame) => ("reset_stream_at", Some(frame.id.0)),
            Self::Datagram(_) => ("datagram", None),
        }
    }
}
