//! Names of frames in qlog.

use super::Frame;

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
