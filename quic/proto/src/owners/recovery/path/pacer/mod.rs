//! Pacing of datagrams (RFC 9002 §7.7).

use std::time::{Duration, Instant};

use crate::owners::congestion::Phase;

#[cfg(test)]
mod tests;

/// Spreading of packets over the round trip (RFC 9002 §7.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pacing {
    /// Packets are paced.
    On,
    /// Packets are sent as soon as the window allows.
    Off,
}

/// Longest train of datagrams, in time at the pacing rate: a queue on the path takes it at once.
const TRAIN: Duration = Duration::from_millis(1);

/// Timer delay that does not slow the sender down: runtimes count in milliseconds and may wake
/// another task first.
const SLACK: Duration = Duration::from_millis(2);

/// Longest delay of a wake-up after which a sender still catches up: on a busy machine, a time
/// slice of the scheduler is this long.
const OVERSLEPT: Duration = Duration::from_millis(10);

/// Part of a round trip that limits [`OVERSLEPT`] if the rate follows from a window: the window
/// makes up for a pause, and a long burst would cause losses where queues are short.
const OVERSLEPT_OF_RTT: u32 = 16;

/// Number of datagrams that may be sent at once, regardless of the rate, while others are in
/// flight. If a timer is late by one of them, nothing is lost, and the shortest queue has room for
/// them.
const STEADY_BURST: u64 = 3;

/// Number of datagrams in the shortest train: with fewer, timers would cost more than the queue
/// gains.
const SHORT_TRAIN: u64 = 2;

/// Upper limit of the rate in bytes per second: ten bytes per nanosecond.
const FASTEST: u64 = 10_000_000_000;

/// Error by which rounding may lengthen the time for the datagrams in one bucket.
const ROUNDING: Duration = Duration::from_nanos(32);

/// Binary places of [`Pace::nanos_per_byte`].
const PLACES: u32 = 24;

/// Spreads packets over the round trip (RFC 9002 §7.7): a token bucket, stored as the time at which
/// it is full again.
///
/// The bucket holds [`STEADY_BURST`] datagrams, or as much as the rate gives in a train plus the
/// slack of a timer; after a pause it holds as many datagrams as the controller allows. A sender
/// that was woken late catches up, within limits: otherwise a busy machine would send at a fraction
/// of the rate, and a controller that measures deliveries would blame the path. A train takes at
/// most a millisecond at the pacing rate, except that two datagrams may always be sent together.
#[derive(Clone, Debug)]
pub(in crate::owners::recovery) struct Pacer {
    /// Time at which the bucket is full if nothing more is sent.
    full_at: Instant,
    /// Time credit saved up during a pause.
    saved: Duration,
    /// Time at which a waiting sender is to be woken.
    due_at: Option<Instant>,
    /// Delay of that wake-up that does not reduce the rate.
    forgiven: Duration,
    /// `None` until a rate is known.
    pace: Option<Pace>,
    datagram_size: u64,
    /// Number of datagrams that may be sent at once after a pause.
    burst: u64,
}

/// Values computed from a rate.
#[derive(Clone, Copy, Debug)]
struct Pace {
    bytes_per_second: u64,
    nanos_per_byte: u64,
    /// Time in which an empty bucket fills.
    fill: Duration,
    /// Time before the bucket is full, from which on one datagram may be sent.
    last: Duration,
}

impl Pacer {
    /// Creates a pacer without a rate; only the initial window limits the first burst.
    pub(in crate::owners::recovery) fn new(now: Instant, datagram_size: u16) -> Self {
        Self {
            full_at: now,
            saved: Duration::ZERO,
            due_at: None,
            forgiven: Duration::ZERO,
            pace: None,
            datagram_size: datagram_size.into(),
            burst: STEADY_BURST,
        }
    }

    /// Returns the rate of one window per round trip with headroom, so that the window remains the
    /// limit: twice the window in slow start, where it doubles each round trip.
    pub(in crate::owners::recovery) fn rate_of(
        window: u64,
        smoothed: Duration,
        phase: Phase,
    ) -> u64 {
        let nanos = smoothed.as_nanos().clamp(1, u64::MAX.into());
        let per_second = u128::from(window) * 1_000_000_000 / nanos;
        let per_second = match phase {
            Phase::SlowStart => per_second * 2,
            Phase::Recovery | Phase::Avoidance => per_second * 5 / 4,
        };
        u64::try_from(per_second).unwrap_or(u64::MAX)
    }

    /// Sets the delay of a wake-up that does not reduce the rate: `round_trip` is given if the rate
    /// follows from a window, and `None` if a controller sets it.
    pub(in crate::owners::recovery) fn forgive(&mut self, round_trip: Option<Duration>) {
        let part = round_trip.map_or(OVERSLEPT, |whole| whole / OVERSLEPT_OF_RTT);
        self.forgiven = part.min(OVERSLEPT);
    }

    /// Sets a new rate after an acknowledgement or a loss, which ends a pause.
    ///
    /// The bucket never goes below empty: a debt from a lower rate is not carried over.
    pub(in crate::owners::recovery) fn set_rate(&mut self, now: Instant, bytes_per_second: u64) {
        let rate = bytes_per_second.clamp(self.datagram_size, FASTEST);
        let fill = time_for(self.steady_burst(), rate).max(TRAIN + SLACK);
        self.saved = Duration::ZERO;
        self.full_at = self.full_at.min(now + fill);
        self.pace = Some(Pace {
            bytes_per_second: rate,
            nanos_per_byte: (1_000_000_000 << PLACES) / rate + 1,
            fill,
            last: (fill + ROUNDING).saturating_sub(time_for(self.datagram_size, rate)),
        });
    }

    /// Sets the number of datagrams that may be sent at once after a pause.
    pub(in crate::owners::recovery) fn set_burst(&mut self, datagrams: u64) {
        self.burst = datagrams.max(SHORT_TRAIN);
    }

    pub(in crate::owners::recovery) fn set_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = bytes.into();
        if let Some(rate) = self.rate() {
            self.set_rate(self.full_at, rate);
        }
    }

    pub(in crate::owners::recovery) fn rate(&self) -> Option<u64> {
        self.pace.map(|pace| pace.bytes_per_second)
    }

    /// Refills the bucket for the burst after a pause, in which nothing was in flight.
    pub(in crate::owners::recovery) fn on_pause(&mut self, now: Instant) {
        self.due_at = None;
        if let Some(pace) = self.pace {
            let burst = self.burst.saturating_mul(self.datagram_size);
            let more = burst.saturating_sub(self.steady_burst());
            self.saved = time_for(more, pace.bytes_per_second);
            self.full_at = self.full_at.min(self.earliest(now));
        }
    }

    /// Takes a packet that is sent, paced or not, from the bucket.
    #[inline]
    pub(in crate::owners::recovery) fn on_sent(&mut self, now: Instant, bytes: u64) {
        if let Some(pace) = self.pace {
            if let Some(due) = self.due_at.take() {
                let late = now.saturating_duration_since(due).min(self.forgiven);
                self.saved = self.saved.max(late);
            }
            self.full_at = self.full_at.max(self.earliest(now)) + pace.time_for(bytes);
        }
    }

    /// Returns true if a datagram may be sent now.
    #[inline]
    pub(in crate::owners::recovery) fn may_send(&self, now: Instant) -> bool {
        self.pace.is_none_or(|pace| self.full_at <= now + pace.last)
    }

    /// Returns the maximum number of bytes in the next train.
    pub(in crate::owners::recovery) fn train(&self) -> u64 {
        let shortest = SHORT_TRAIN * self.datagram_size;
        self.rate()
            .map_or(u64::MAX, |rate| bytes_in(TRAIN, rate).max(shortest))
    }

    /// Returns the time at which the next whole train may be sent, and notes that a sender waits
    /// for it.
    pub(in crate::owners::recovery) fn release_at(&mut self, now: Instant) -> Instant {
        let Some(pace) = self.pace else {
            return now;
        };
        let train = time_for(self.train(), pace.bytes_per_second);
        let spare = pace.fill.saturating_sub(train);
        let at = self.full_at.checked_sub(spare).unwrap_or(now).max(now);
        self.due_at = Some(at);
        at
    }

    /// Notes that no sender is waiting any longer: there is nothing to send, or no room in the
    /// window.
    pub(in crate::owners::recovery) const fn on_idle(&mut self) {
        self.due_at = None;
    }

    fn earliest(&self, now: Instant) -> Instant {
        now.checked_sub(self.saved).unwrap_or(now)
    }

    fn steady_burst(&self) -> u64 {
        self.burst.min(STEADY_BURST) * self.datagram_size
    }
}

impl Pace {
    /// Returns the time that a packet takes, rounded up so that the sender is never faster than its rate.
    #[inline]
    fn time_for(self, bytes: u64) -> Duration {
        let nanos = bytes.saturating_mul(self.nanos_per_byte) >> PLACES;
        Duration::from_nanos(nanos + 1)
    }
}

/// Returns the time that `bytes` take, rounded up so that the sender is never faster than `rate`.
fn time_for(bytes: u64, rate: u64) -> Duration {
    let nanos = u128::from(bytes) * 1_000_000_000;
    let nanos = nanos.div_ceil(u128::from(rate.max(1)));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn bytes_in(time: Duration, rate: u64) -> u64 {
    let bytes = time.as_nanos() * u128::from(rate) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
