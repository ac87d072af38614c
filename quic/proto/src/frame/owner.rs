//! The verbs that every owner of frames has.

use std::time::{Duration, Instant};

use super::FrameWriter;
use crate::wire::Space;

/// Time and pace of the path, for owners that tune themselves while they write.
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

    /// Returns true if something waits that is a reason to send a packet of this space.
    fn wants_to_send(&self, space: Space) -> bool;

    /// Writes what waits, as far as it fits, and records it in `sent`.
    fn write_frames(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Self::Sent);

    /// Takes note that a packet with these frames was acknowledged.
    fn on_acked(&mut self, sent: &Self::Sent);

    /// Queues again what still matters of these frames: their packet was lost, or a probe repeats
    /// it.
    fn on_lost(&mut self, sent: &Self::Sent);
}
