//! Reordering on a path, and the thresholds for waiting for late packets.

use std::time::{Duration, Instant};

use super::rtt::GRANULARITY;

/// Number of packets that may overtake one before it counts as lost (RFC 9002 §6.1.1).
const PACKETS: u64 = 3;

/// Upper limit of the packet threshold; beyond it the time threshold decides.
const MOST_PACKETS: u64 = 1024;

/// Eighths of a round trip after which a packet counts as lost (RFC 9002 §6.1.2).
const EIGHTHS: u32 = 9;

/// Upper limit of the time threshold, in eighths: two round trips.
const MOST_EIGHTHS: u32 = 16;

/// Round trips without reordering after which the thresholds return to their initial values (RFC
/// 8985 §6.2 counts 16 recoveries).
const QUIET_ROUNDS: u8 = 16;

/// Thresholds of loss detection, which grow if a path reorders (allowed by RFC 9002 §6.1.1 and
/// §6.1.2, done as in RFC 8985 §6.2).
#[derive(Debug)]
pub(in crate::owners::recovery) struct Reordering {
    packets: u64,
    eighths: u32,
    /// Send time from which on an acknowledged packet ends the round.
    round_start: Instant,
    quiet_rounds: u8,
}

/// Lateness of a packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::owners::recovery) struct Lateness {
    /// Number of packets that had overtaken it.
    pub(in crate::owners::recovery) overtaken_by: u64,
    /// Time from its sending to its acknowledgement.
    pub(in crate::owners::recovery) took: Duration,
    /// Round trip to compare with.
    pub(in crate::owners::recovery) round_trip: Duration,
}

impl Reordering {
    pub(in crate::owners::recovery) const fn new(now: Instant) -> Self {
        Self {
            packets: PACKETS,
            eighths: EIGHTHS,
            round_start: now,
            quiet_rounds: 0,
        }
    }

    /// Returns the number of packets that may overtake one before it counts as lost.
    pub(in crate::owners::recovery) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the time after its sending at which a packet counts as lost.
    pub(in crate::owners::recovery) fn delay(&self, round_trip: Duration) -> Duration {
        delay(round_trip, self.eighths)
    }

    /// Raises the thresholds, within limits, to those that would have waited for a packet that was
    /// declared lost and then arrived. RFC 8985 raises them in steps, but until the last step
    /// another reduction of the window would have to be undone in every round trip.
    pub(in crate::owners::recovery) fn on_spurious(&mut self, late: Lateness) {
        self.quiet_rounds = 0;
        let needed = late.overtaken_by.saturating_add(1).min(MOST_PACKETS);
        self.packets = self.packets.max(needed);
        while self.eighths < MOST_EIGHTHS && late.took >= self.delay(late.round_trip) {
            self.eighths += 1;
        }
    }

    /// Keeps the current thresholds while packets arrive later than the initial ones allow.
    pub(in crate::owners::recovery) fn on_reordered(&mut self, late: Lateness) {
        if late.overtaken_by >= PACKETS || late.took >= delay(late.round_trip, EIGHTHS) {
            self.quiet_rounds = 0;
        }
    }

    /// Ends a round when packets are acknowledged, the newest of them sent at `newest_sent`.
    #[inline]
    pub(in crate::owners::recovery) fn on_acked(&mut self, now: Instant, newest_sent: Instant) {
        if newest_sent < self.round_start {
            return;
        }
        self.round_start = now;
        self.quiet_rounds = self.quiet_rounds.saturating_add(1);
        if self.quiet_rounds >= QUIET_ROUNDS {
            (self.packets, self.eighths) = (PACKETS, EIGHTHS);
        }
    }
}

fn delay(round_trip: Duration, eighths: u32) -> Duration {
    (round_trip.saturating_mul(eighths) / 8).max(GRANULARITY)
}

#[cfg(test)]
mod tests;
