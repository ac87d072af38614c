//! Streams (RFC 9000 §2 to §4): both state machines, buffers, credit.

mod app;
mod error;
mod event;
mod id;
mod incoming;
mod sent;

pub use error::{ClosedStream, ReadError, WriteError};
pub use event::StreamEvent;
use hybriq_tls::Side;
pub use id::{Direction, StreamId};
pub use sent::Sent;

use crate::proto::frame::FrameWriter;

/// What we allow the peer, and hold for our own application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes the peer may have under way or unread on all streams together.
    pub receive_window: u64,
    /// Bytes the peer may have under way or unread on one stream.
    pub stream_receive_window: u64,
    /// Bytes held per stream until they are acknowledged.
    pub send_buffer: u64,
    /// Bidirectional streams the peer may have open at once.
    pub max_bidi: u64,
    /// Unidirectional streams the peer may have open at once.
    pub max_uni: u64,
}

/// What the peer's transport parameters allow us (RFC 9000 §18.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// Its `initial_max_data`.
    pub max_data: u64,
    /// Its `initial_max_stream_data_bidi_local`: bidirectional streams that it opens.
    pub bidi_local: u64,
    /// Its `initial_max_stream_data_bidi_remote`: bidirectional streams that we open.
    pub bidi_remote: u64,
    /// Its `initial_max_stream_data_uni`.
    pub uni: u64,
    /// Its `initial_max_streams_bidi`.
    pub max_bidi: u64,
    /// Its `initial_max_streams_uni`.
    pub max_uni: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    limits: Limits,
    side: Side,
}

impl Streams {
    /// No streams yet; nothing may be opened before [`Streams::set_peer_limits`].
    pub fn new(side: Side, limits: Limits) -> Self {
        Self { limits, side }
    }

    /// Takes what the peer's transport parameters allow. Limits never shrink.
    pub fn set_peer_limits(&mut self, limits: PeerLimits) {
        todo!("{limits:?}")
    }

    /// Whether [`Streams::write_frames`] would write something into an empty packet.
    pub fn has_pending(&self) -> bool {
        todo!()
    }

    /// Fills the packet: credit and control frames, then what was lost, then new data.
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        todo!("{out:?} {sent:?}")
    }

    /// A packet was acknowledged.
    pub fn on_acked(&mut self, sent: &Sent) {
        todo!("{sent:?}")
    }

    /// A packet was lost.
    pub fn on_lost(&mut self, sent: &Sent) {
        todo!("{sent:?}")
    }
}
