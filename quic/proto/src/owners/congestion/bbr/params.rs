//! Constants of the draft (§2), and integer arithmetic with its factors.

use std::time::Duration;

/// Value of an unset bound, the draft's infinity.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// A factor in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gain(u32);

impl Gain {
    pub(super) const ONE: Self = Self(100);
    /// Doubles the sending rate each round: 4 ln 2.
    pub(super) const STARTUP_PACING: Self = Self(277);
    pub(super) const DRAIN_PACING: Self = Self(50);
    pub(super) const DOWN_PACING: Self = Self(90);
    pub(super) const UP_PACING: Self = Self(125);
    pub(super) const DEFAULT_WINDOW: Self = Self(200);
    pub(super) const UP_WINDOW: Self = Self(225);
    pub(super) const PROBE_RTT_WINDOW: Self = Self(50);
    /// Slightly below 1, so that queues shrink rather than grow.
    pub(super) const PACING_MARGIN: Self = Self(99);
    /// Part of the window that remains after one round with losses.
    pub(super) const BETA: Self = Self(70);
    /// Part of the volume delivered in a round that remains after marks in it (RFC 8511).
    pub(super) const BETA_ECN: Self = Self(85);
    /// Part of the largest volume found that is left to other flows.
    pub(super) const HEADROOM: Self = Self(15);
    /// Losses of a round that a probe tolerates.
    pub(super) const LOSS_THRESHOLD: Self = Self(2);
    /// Part of the bandwidth that remains after any number of rounds with no more losses than that.
    pub(super) const TOLERATED: Self = Self(95);
    /// Growth of the delivery rate that shows that the path is not full.
    pub(super) const GROWTH: Self = Self(125);

    /// Returns `value` times the factor, or [`UNBOUNDED`] on overflow.
    pub(super) fn of(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(self.0) / 100;
        u64::try_from(product).unwrap_or(UNBOUNDED)
    }
}

/// Rounds without growth after which the path counts as full (§5.3.1.2).
pub(super) const FULL_PIPE_ROUNDS: u8 = 3;

/// Gaps that losses must leave in one round to end Startup (§5.3.1.3).
pub(super) const STARTUP_LOSS_RANGES: u32 = 6;

/// Datagrams needed for a meaningful share of losses.
pub(super) const LOSS_SAMPLE_DATAGRAMS: u64 = 200;

/// Rounds with marks that end Startup.
pub(super) const STARTUP_MARKED_ROUNDS: u8 = 2;

/// Rounds after which Drain ends, regardless of the bytes in flight (§5.3.2).
pub(super) const DRAIN_ROUNDS: u64 = 3;

/// Rounds over which the degree of aggregation is remembered (§2.11).
pub(super) const EXTRA_ACKED_ROUNDS: u64 = 10;

/// Largest number of rounds between probes, so that Reno and CUBIC get their share (§5.3.3.8).
pub(super) const RENO_ROUNDS: u64 = 63;

/// Smallest number of rounds between probes. The draft has no such bound: with four datagrams in
/// flight it probes every four rounds, and each probe loses some of them if the queue is that
/// short.
pub(super) const MIN_RENO_ROUNDS: u64 = 20;

/// The shortest time between probes by the clock; a random time of up to a second is added
/// (§5.3.3.8).
pub(super) const PROBE_WAIT: Duration = Duration::from_secs(2);

/// Time for which a smallest round trip is valid (§2.15.1).
pub(super) const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// Time without a smaller round trip until ProbeRTT (§2.15.2).
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which ProbeRTT keeps little in flight (§2.15.2).
pub(super) const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// Datagrams that keep a path with delayed acknowledgements busy (§2.7).
pub(super) const MIN_PIPE_DATAGRAMS: u64 = 4;

/// The largest send quantum (§5.6.3).
pub(super) const MAX_SEND_QUANTUM: u64 = 64 * 1024;

/// Returns the bytes that `rate` bytes per second amount to in `time`.
pub(super) fn volume(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(UNBOUNDED)
}
