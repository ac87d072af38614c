//! A receive window that grows with the bandwidth-delay product of the path.

use std::time::{Duration, Instant};

use crate::wire::{VarInt, frame::Timing};

/// Number of round trips within which a window must be read to make it grow. With two, a peer would
/// only just not stall; one more keeps the window ahead of a sender in slow start, which doubles
/// its rate in each round trip.
const ROUND_TRIPS: u128 = 3;

/// Lower limit of the round trip: applications and their schedulers do not wake up faster than
/// this.
const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(1);

/// Number of bytes that a peer may have in flight or unread: as many as keep it busy, and no more.
///
/// A window starts small and doubles while the application reads so fast that the window lasts less
/// than three round trips, because then it limits the peer, or soon will. Data that was read counts
/// only as far as it arrived in the same time, so that the window does not grow because of the
/// peer's sending alone, nor for an application that reads seldom but everything at once. It never
/// shrinks on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) struct Window {
    size: u64,
    max: u64,
    /// Start of the measurement.
    since: Option<Instant>,
    received: u64,
    consumed: u64,
}

impl Window {
    /// Creates a window that starts with `initial` bytes, or `max` if that is less, and grows to `max`.
    pub(in crate::owners::streams) const fn new(initial: u64, max: u64) -> Self {
        let max = VarInt::saturating(max).get();
        Self {
            size: if initial < max { initial } else { max },
            max,
            since: None,
            received: 0,
            consumed: 0,
        }
    }

    pub(in crate::owners::streams) const fn size(&self) -> u64 {
        self.size
    }

    /// Notes bytes dropped unread, which say nothing about the application's speed.
    pub(in crate::owners::streams) const fn on_discarded(&mut self, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes);
    }

    /// Takes the totals of bytes received and consumed, and grows the window if that was fast.
    /// Returns true if it grew.
    pub(in crate::owners::streams) fn on_update(
        &mut self,
        timing: Timing,
        received: u64,
        consumed: u64,
    ) -> bool {
        let since = self.since.unwrap_or(timing.now);
        let rtt = timing.rtt.max(SHORTEST_ROUND_TRIP);
        let elapsed = timing.now.saturating_duration_since(since);
        let arrived = received.saturating_sub(self.received);
        let read = consumed.saturating_sub(self.consumed).min(arrived);
        let is_enough = read > 0 && read >= self.size / 8;
        if self.since.is_some() && !is_enough && elapsed <= rtt {
            return false;
        }
        let fast = u128::from(read) * ROUND_TRIPS * rtt.as_nanos()
            > u128::from(self.size) * elapsed.as_nanos();
        let grows = self.since.is_some() && is_enough && fast && self.size < self.max;
        if grows {
            self.raise(self.size.saturating_mul(2));
        }
        self.since = Some(timing.now);
        self.received = received;
        self.consumed = consumed;
        grows
    }

    /// Sets the window to `bytes` and stops its growth.
    pub(in crate::owners::streams) fn set(&mut self, bytes: u64) {
        self.max = VarInt::saturating(bytes).get();
        self.size = self.max;
    }

    /// Raises the window to at least `bytes`, within its limit.
    pub(in crate::owners::streams) fn raise(&mut self, bytes: u64) {
        self.size = self.size.max(bytes.min(self.max));
    }
}
