use smallvec::SmallVec;

use super::{Direction, StreamId};

/// What one packet carried for the streams: enough to act on its acknowledgement or loss.
///
/// The common packet holds one STREAM frame and costs no allocation.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    frames: SmallVec<[SentFrame; 1]>,
}

impl Sent {
    /// Whether the packet carried nothing for the streams.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, frame: SentFrame) {
        self.frames.push(frame);
    }

    pub(super) fn frames(&self) -> &[SentFrame] {
        &self.frames
    }
}

/// One frame. Credit frames carry their value, so that only the newest is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentFrame {
    Stream {
        id: StreamId,
        offset: u64,
        len: u32,
        end: End,
    },
    ResetStream(StreamId),
    /// With its reliable size.
    ResetStreamAt(StreamId, u64),
    StopSending(StreamId),
    MaxData(u64),
    MaxStreamData(StreamId, u64),
    MaxStreams(Direction, u64),
    DataBlocked(u64),
    StreamDataBlocked(StreamId, u64),
    StreamsBlocked(Direction, u64),
}

/// Whether a STREAM frame had the FIN bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Open,
    Fin,
}
