//! Average fraction of marked packets.

use std::time::{Duration, Instant};

use crate::owners::congestion::Acked;

/// Weight of a new round trip in the average.
const GAIN: f64 = 1.0 / 16.0;

/// Moving average of the fraction of marked packets: `alpha` of
/// draft-briscoe-iccrg-prague-congestion-control-04 §2.4.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marking {
    /// `None` before the first mark.
    alpha: Option<f64>,
    round_start: Instant,
    /// Packets acknowledged in this round, marked ones included.
    packets: u64,
    marks: u64,
}

impl Marking {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            alpha: None,
            round_start: now,
            packets: 0,
            marks: 0,
        }
    }

    /// Handles marks. The average starts at one with the first marks, so that the response is the
    /// classic one while nothing is known.
    pub(super) const fn on_marked(&mut self, now: Instant) -> Option<f64> {
        if self.alpha.is_some() {
            return None;
        }
        *self = Self {
            alpha: Some(1.0),
            ..Self::new(now)
        };
        self.alpha
    }

    /// Counts acknowledged packets. A round ends when a packet sent in it is acknowledged, but not
    /// before `duration` has passed.
    pub(super) fn on_acked(&mut self, acked: &Acked, duration: Duration) {
        let Some(alpha) = self.alpha else {
            return;
        };
        self.packets = self.packets.saturating_add(acked.packets.max(acked.marks));
        self.marks = self.marks.saturating_add(acked.marks);
        let age = acked.now.saturating_duration_since(self.round_start);
        if acked.newest_sent <= self.round_start || age < duration || self.packets == 0 {
            return;
        }
        let fraction = self.marks as f64 / self.packets as f64;
        *self = Self {
            alpha: Some(alpha + (fraction - alpha) * GAIN),
            ..Self::new(acked.now)
        };
    }

    pub(super) const fn alpha(&self) -> Option<f64> {
        self.alpha
    }
}
