//! What the draft fixes (§2), and how its factors are applied without fractions.

use std::time::Duration;

/// Stands for a bound that is not set, the draft's infinity.
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
    /// Below 1 by the pacing margin, so that queues rather fall than rise.
    pub(super) const PACING_MARGIN: Self = Self(99);
    /// The cut of one round with losses.
    pub(super) const BETA: Self = Self(70);
    /// What a round with marks leaves of the volume that was delivered in it (RFC 8511).
    pub(super) const BETA_ECN: Self = Self(85);
    /// What is left to others of a volume that was found to be the limit.
    pub(super) const HEADROOM: Self = Self(15);
    /// Losses of a round that are put up with while probing.
    pub(super) const LOSS_THRESHOLD: Self = Self(2);
    /// What rounds with no more losses than that leave of the bandwidth, however many they are.
    pub(super) const TOLERATED: Self = Self(95);
    /// Growth of the delivery rate that means the pipe is not full.
    pub(super) const GROWTH: Self = Self(125);

    /// So many times `value`; [`UNBOUNDED`] where that is too much.
    pub(super) fn of(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(self.0) / 100;
        u64::try_from(product).unwrap_or(UNBOUNDED)
    }
}

/// Rounds without growth after which the pipe is full (§5.3.1.2).
pub(super) const FULL_PIPE_ROUNDS: u8 = 3;

/// Gaps that losses must leave in one round to end Startup (§5.3.1.3).
pub(super) const STARTUP_LOSS_RANGES: u32 = 6;

/// Datagrams of which the share that was lost means something.
pub(super) const LOSS_SAMPLE_DATAGRAMS: u64 = 200;

/// Rounds with marks that end Startup.
pub(super) const STARTUP_MARKED_ROUNDS: u8 = 2;

/// Rounds after which Drain ends whatever is in flight (§5.3.2).
pub(super) const DRAIN_ROUNDS: u64 = 3;

/// Rounds over which the degree of aggregation is remembered (§2.11).
pub(super) const EXTRA_ACKED_ROUNDS: u64 = 10;

/// Rounds at most between probes, so that Reno and CUBIC hold their own (§5.3.3.8).
pub(super) const RENO_ROUNDS: u64 = 63;

/// And at least. The draft has no such bound: where four datagrams are in flight it probes every four
/// rounds, and each probe costs some of them if the queue is as short as that.
pub(super) const MIN_RENO_ROUNDS: u64 = 20;

/// The shortest time between probes by the clock; up to a second more is drawn (§5.3.3.8).
pub(super) const PROBE_WAIT: Duration = Duration::from_secs(2);

/// How long a smallest round trip is believed (§2.15.1).
pub(super) const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// Time without a smaller round trip until ProbeRTT (§2.15.2).
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// How long ProbeRTT keeps little in flight (§2.15.2).
pub(super) const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// Datagrams that keep a path with delayed acknowledgements busy (§2.7).
pub(super) const MIN_PIPE_DATAGRAMS: u64 = 4;

/// The largest send quantum (§5.6.3).
pub(super) const MAX_SEND_QUANTUM: u64 = 64 * 1024;

/// Bytes that `rate` bytes per second amount to in that time.
pub(super) fn volume(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate).saturating_mul(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(UNBOUNDED)
}
