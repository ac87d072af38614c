//! How much reordering a path shows, and how long to wait for a late packet.

use std::time::{Duration, Instant};

use super::rtt::GRANULARITY;

/// How many packets may overtake one before it counts as lost (RFC 9002 §6.1.1).
const PACKETS: u64 = 3;

/// More than so many packets are not waited for; the time threshold decides.
const MOST_PACKETS: u64 = 1024;

/// Eighths of a round trip after which a packet counts as lost (RFC 9002 §6.1.2).
const EIGHTHS: u32 = 9;

/// Two round trips.
const MOST_EIGHTHS: u32 = 16;

/// Round trips without reordering after which the thresholds are the first ones again
/// (RFC 8985 §6.2 counts 16 recoveries).
const QUIET_ROUNDS: u8 = 16;

/// The thresholds of loss detection, which grow where a path reorders (RFC 9002 §6.1.1 and §6.1.2
/// allow it; the manner is that of RFC 8985 §6.2).
#[derive(Debug)]
pub(super) struct Reordering {
    packets: u64,
    eighths: u32,
    /// Packets sent from then on end the round when they are acknowledged.
    round_start: Instant,
    quiet_rounds: u8,
}

/// How late a packet came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    /// Packets that had overtaken it.
    pub(super) overtaken_by: u64,
    /// From its sending to its acknowledgement.
    pub(super) took: Duration,
    /// The round trip it is measured by.
    pub(super) round_trip: Duration,
}

impl Reordering {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            packets: PACKETS,
            eighths: EIGHTHS,
            round_start: now,
            quiet_rounds: 0,
        }
    }

    /// Returns how many packets may overtake one before it counts as lost.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns how long after it was sent a packet counts as lost.
    pub(super) fn delay(&self, round_trip: Duration) -> Duration {
        delay(round_trip, self.eighths)
    }

    /// A packet that was declared lost arrived: as far as they may, the thresholds grow to those
    /// that would have waited for it. RFC 8985 takes a step in each round trip instead, but until
    /// it is there every round trip has another cut of the window to take back.
    pub(super) fn on_spurious(&mut self, late: Lateness) {
        self.quiet_rounds = 0;
        let needed = late.overtaken_by.saturating_add(1).min(MOST_PACKETS);
        self.packets = self.packets.max(needed);
        while self.eighths < MOST_EIGHTHS && late.took >= self.delay(late.round_trip) {
            self.eighths += 1;
        }
    }

    /// A packet arrived out of order. As long as some are later than the first thresholds allow,
    /// the ones that were found stay.
    pub(super) fn on_reordered(&mut self, late: Lateness) {
        if late.overtaken_by >= PACKETS || late.took >= delay(late.round_trip, EIGHTHS) {
            self.quiet_rounds = 0;
        }
    }

    /// Packets were acknowledged, the newest of them sent at `newest_sent`.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Instant, newest_sent: Instant) {
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
