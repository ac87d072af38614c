//! HyStart++ slow start (RFC 9406).

use std::time::Duration;

use crate::owners::congestion::Acked;

#[cfg(test)]
mod tests;

/// Smallest growth of the round trip that indicates a queue.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);

/// Largest growth of the round trip that is required as an indication.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);

/// Divisor of the previous round trip, which gives the required growth between those two.
const MIN_RTT_DIVISOR: u32 = 8;

/// Samples needed in a round.
const N_RTT_SAMPLE: u32 = 8;

/// Divisor of the growth in conservative slow start.
const CSS_GROWTH_DIVISOR: u64 = 4;

/// Rounds of conservative slow start until it ends.
const CSS_ROUNDS: u8 = 5;

/// HyStart++ (RFC 9406): ends the initial slow start when the round trip grows, before packets are
/// lost.
///
/// When round trips grow, slow start turns conservative: it grows at a quarter of the rate. It ends
/// five rounds later, unless the round trip falls again, which shows that it had grown for another
/// reason.
///
/// The growth per acknowledgement is not limited (L is infinite), since packets are paced (§4.3).
#[derive(Clone, Debug, Default)]
pub(in crate::owners::congestion) struct HyStart {
    /// Bytes delivered when a packet was sent whose acknowledgement ends the round.
    round_end: u64,
    /// Smallest round trip of the previous round.
    last_round: Option<Duration>,
    /// Smallest round trip of this round.
    this_round: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Round trip that started it.
    baseline: Duration,
    /// Rounds that ended since.
    rounds: u8,
}

/// Progress of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::congestion) enum Growth {
    /// The window may grow by this many bytes.
    By(u64),
    /// The capacity is found: congestion avoidance begins.
    Over,
}

impl HyStart {
    /// Handles an acknowledgement in slow start.
    pub(in crate::owners::congestion) fn on_acked(&mut self, acked: &Acked) -> Growth {
        if acked.rate.prior_delivered >= self.round_end && self.start_round(acked.delivered) {
            return Growth::Over;
        }
        if let Some(sample) = acked.rtt.sample {
            self.samples = self.samples.saturating_add(1);
            self.this_round = Some(self.this_round.map_or(sample, |min| min.min(sample)));
        }
        self.look_for_a_queue();
        Growth::By(match self.conservative {
            Some(_) => acked.bytes / CSS_GROWTH_DIVISOR,
            None => acked.bytes,
        })
    }

    /// Begins a round. Returns true if it was the last of conservative slow start.
    fn start_round(&mut self, delivered: u64) -> bool {
        self.round_end = delivered;
        self.last_round = self.this_round.take();
        self.samples = 0;
        let Some(conservative) = &mut self.conservative else {
            return false;
        };
        conservative.rounds += 1;
        conservative.rounds >= CSS_ROUNDS
    }

    /// Compares the round trips of this round with the previous one, once there are enough.
    fn look_for_a_queue(&mut self) {
        let Some(this) = self.this_round else {
            return;
        };
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if let Some(Conservative { baseline, .. }) = self.conservative {
            if this < baseline {
                self.conservative = None;
            }
        } else if let Some(last) = self.last_round {
            let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if this >= last.saturating_add(threshold) {
                self.conservative = Some(Conservative {
                    baseline: this,
                    rounds: 0,
                });
            }
        }
    }
}
