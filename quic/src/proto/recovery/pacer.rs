use std::time::{Duration, Instant};

use crate::proto::congestion::Phase;

#[cfg(test)]
mod tests;

/// Of its rate a train of datagrams may hold so much: what a queue on the way has to take at once.
const TRAIN: Duration = Duration::from_millis(1);

/// How late a timer may fire without making the sender slower than its rate: runtimes count in
/// milliseconds and wake somebody else first.
const SLACK: Duration = Duration::from_millis(2);

/// Datagrams of the shortest train: below, timers would cost more than the queue gains.
const SHORT_TRAIN: u64 = 2;

/// What bounds the rate until somebody says otherwise: a byte a nanosecond, ten times over.
const FASTEST: u64 = 10_000_000_000;

/// Spreads what leaves over the round trip (RFC 9002 §7.7): a token bucket, kept as the moment at
/// which it is full again.
///
/// The bucket holds a burst of datagrams (`Controller::burst`), or what the rate gives in a train and the slack of a
/// timer. A train never holds more than a millisecond of the rate, except that two datagrams may
/// always go together.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// When the bucket is full, if nothing more leaves.
    full_at: Instant,
    /// Bytes per second; `None` while there is nothing to compute it from.
    rate: Option<u64>,
    datagram_size: u64,
    /// Datagrams that may leave at once whatever the rate, after a pause or at first.
    burst: u64,
}

impl Pacer {
    /// Nothing to pace by yet: the initial window is what bounds the first burst.
    pub(super) fn new(now: Instant, datagram_size: u16) -> Self {
        Self {
            full_at: now,
            rate: None,
            datagram_size: datagram_size.into(),
            burst: SHORT_TRAIN,
        }
    }

    /// A window per round trip and some more, so that it is the window that limits: twice as much
    /// where it doubles in a round trip.
    pub(super) fn rate_of(window: u64, smoothed: Duration, phase: Phase) -> u64 {
        let nanos = smoothed.as_nanos().clamp(1, u64::MAX.into());
        let per_second = u128::from(window) * 1_000_000_000 / nanos;
        let per_second = match phase {
            Phase::SlowStart => per_second * 2,
            Phase::Recovery | Phase::Avoidance => per_second * 5 / 4,
        };
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }

    pub(super) fn set_rate(&mut self, bytes_per_second: u64) {
        self.rate = Some(bytes_per_second.clamp(self.datagram_size, FASTEST));
    }

    pub(super) fn set_burst(&mut self, datagrams: u64) {
        self.burst = datagrams.max(SHORT_TRAIN);
    }

    pub(super) fn set_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = bytes.into();
    }

    pub(super) const fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// A packet leaves, paced or not.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        if let Some(rate) = self.rate {
            self.full_at = self.full_at.max(now) + time_for(bytes, rate);
        }
    }

    /// Bytes that may leave now. What is left of a datagram's worth is not offered.
    #[inline]
    pub(super) fn allows(&self, now: Instant) -> u64 {
        let Some(rate) = self.rate else {
            return u64::MAX;
        };
        let missing = self.full_at.saturating_duration_since(now);
        let tokens = self.time_to_fill(rate).saturating_sub(missing);
        bytes_in(tokens, rate)
    }

    /// Whether a datagram may leave now.
    #[inline]
    pub(super) fn may_send(&self, now: Instant) -> bool {
        self.allows(now) >= self.datagram_size
    }

    /// Bytes of the next train at most.
    pub(super) fn train(&self) -> u64 {
        let shortest = SHORT_TRAIN * self.datagram_size;
        self.rate
            .map_or(u64::MAX, |rate| bytes_in(TRAIN, rate).max(shortest))
    }

    /// When the next train may leave whole.
    pub(super) fn release_at(&self, now: Instant) -> Instant {
        let Some(rate) = self.rate else {
            return now;
        };
        let spare = self
            .time_to_fill(rate)
            .saturating_sub(time_for(self.train(), rate));
        self.full_at.checked_sub(spare).unwrap_or(now).max(now)
    }

    /// How long an empty bucket takes to fill.
    fn time_to_fill(&self, rate: u64) -> Duration {
        time_for(self.burst * self.datagram_size, rate).max(TRAIN + SLACK)
    }
}

/// How long so many bytes take, rounded up so that no rounding makes a sender faster.
fn time_for(bytes: u64, rate: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000;
    let nanos = nanos.div_ceil(u128::from(rate.max(1)));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn bytes_in(time: Duration, rate: u64) -> u64 {
    let bytes = time.as_nanos() * u128::from(rate) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
