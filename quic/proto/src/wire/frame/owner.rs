//! Interface that all owners of frames share.

use std::time::{Duration, Instant};

use super::FrameWriter;
use crate::wire::Space;

/// Time and pace of the path, for owners that tune themselves while they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
