//! The `NewReno` congestion controller (RFC 9002 §7).

use std::time::Instant;

use super::{Avoidance, Cause, Classic};
use crate::owners::congestion::Acked;

#[cfg(test)]
mod tests;

/// NewReno as described in RFC 9002 §7, with HyStart++ (RFC 9406), PRR (RFC 9937) and an undo of
/// spurious losses.
pub type NewReno = Classic<Additive>;

/// Adds one datagram per window and halves the window on a loss. On an ECN mark it keeps 0.8 of the
/// window (alternative backoff, RFC 8511): a router that marks keeps its queue short, so that half
/// a window would leave the link idle.
#[derive(Clone, Debug, Default)]
pub struct Additive {
    /// Bytes acknowledged since the window last grew.
    acked: u64,
}

impl Avoidance for Additive {
    const NAME: &'static str = "NewReno";

    fn on_congestion(&mut self, window: u64, cause: Cause) -> u64 {
        self.acked = 0;
        match cause {
            Cause::Loss => window / 2,
            Cause::Mark => window - window / 5,
        }
    }

    fn on_persistent_congestion(&mut self) {
        self.acked = 0;
    }

    fn on_resume(&mut self) {
        self.acked = 0;
    }

    fn on_acked(&mut self, window: u64, acked: &Acked, datagram_size: u64) -> u64 {
        self.acked = self.acked.saturating_add(acked.bytes.min(window));
        if self.acked < window {
            return window;
        }
        self.acked -= window;
        window.saturating_add(datagram_size)
    }

    fn on_unused(&mut self, _: Instant) {}
}
