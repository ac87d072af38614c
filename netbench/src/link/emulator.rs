//! What happens to a datagram, and when: no sockets, no clock, no source of randomness but a seed.
//!
//! ```text
//!            ┌─ too large? ─┐   ┌─ queue full? ─┐           ┌─ blackout, burst, random ─┐
//!  offer ────┤    lost      ├───┤     lost      ├── line ───┤           lost            ├── delay,
//!            └──────────────┘   └───────────────┘  (rate,   └───────────────────────────┘   jitter,
//!                                                   mark)                                   reorder ─► due
//! ```
//! What is lost behind the line has taken its share of the rate.

use std::time::Duration;

use super::dice::Dice;
use super::tally::{Loss, Tally, micros};
use crate::units::{Blackout, Burst, Rate, Reorder, Share};

/// What one direction is like. The default lets everything pass at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) delay: Duration,
    /// Added to the delay: uniform from nothing to this. Keeps the order.
    pub(crate) jitter: Duration,
    pub(crate) mtu: Option<u64>,
    pub(crate) line: Option<Line>,
    pub(crate) loss: Share,
    pub(crate) burst: Option<Burst>,
    pub(crate) reorder: Option<Reorder>,
    pub(crate) duplicate: Share,
    pub(crate) corrupt: Share,
    pub(crate) blackouts: Vec<Blackout>,
}

/// The bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) rate: Rate,
    /// Bytes that may wait, what is being sent included.
    pub(crate) queue: u64,
    /// ECN-capable datagrams that waited longer are marked.
    pub(crate) mark_above: Option<Duration>,
}

/// A datagram before it enters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Since the first datagram of the link.
    pub(crate) now: Duration,
    /// Of UDP payload.
    pub(crate) bytes: u64,
    /// Whether it may be marked: it carries ECT(0) or ECT(1).
    pub(crate) ecn_capable: bool,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost(Loss),
    Passed(Passage),
}

/// How a datagram passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// When it is to leave.
    pub(crate) due: Duration,
    /// Once, or twice where it was duplicated.
    pub(crate) copies: usize,
    /// Which of its bits is flipped.
    pub(crate) flip: Option<u64>,
    /// Whether it is given the CE mark.
    pub(crate) marked: bool,
}

/// One direction of a link.
pub(crate) struct Direction {
    settings: Settings,
    seed: u64,
    now: Duration,
    /// When all that waits has left the line.
    line_free: Duration,
    /// The latest time that a datagram is due which was not held back.
    last_due: Duration,
    in_burst: bool,
    first: Option<Duration>,
    line_bytes: u64,
    line_datagrams: u64,
    waited: Duration,
    lateness: Duration,
    released: u64,
    tally: Tally,
}

/// When a datagram has left the line, and how long it waited before.
struct Departure {
    at: Duration,
    waited: Duration,
}

impl Direction {
    pub(crate) fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            now: Duration::ZERO,
            line_free: Duration::ZERO,
            last_due: Duration::ZERO,
            in_burst: false,
            first: None,
            line_bytes: 0,
            line_datagrams: 0,
            waited: Duration::ZERO,
            lateness: Duration::ZERO,
            released: 0,
            tally: Tally::default(),
        }
    }

    /// Decides about the next datagram.
    pub(crate) fn offer(&mut self, offer: Offer) -> Fate {
        // Two sockets may be read out of turn.
        self.now = self.now.max(offer.now);
        self.first.get_or_insert(self.now);
        let dice = Dice::nth(self.seed, self.tally.datagrams_in);
        self.tally.datagrams_in += 1;
        self.tally.bytes_in += offer.bytes;
        let burst = self.step_burst(dice.burst);
        let fate = match self.decide(offer, burst, &dice) {
            Ok(passage) => Fate::Passed(passage),
            Err(loss) => Fate::Lost(loss),
        };
        self.count(fate);
        fate
    }

    /// Counts a datagram that came when there was no memory to hold it.
    pub(crate) fn refuse(&mut self, bytes: u64) {
        self.tally.datagrams_in += 1;
        self.tally.bytes_in += bytes;
        self.tally.lost.add(Loss::Memory);
    }

    /// Counts a datagram that left, so much after it was due.
    pub(crate) fn on_released(&mut self, bytes: u64, late: Duration) {
        self.tally.datagrams_out += 1;
        self.tally.bytes_out += bytes;
        self.released += 1;
        self.lateness += late;
        self.tally.max_late_us = self.tally.max_late_us.max(micros(late));
    }

    /// Counts datagrams that the system did not send after they were released.
    pub(crate) fn on_unsent(&mut self, datagrams: u64, bytes: u64) {
        self.tally.datagrams_out -= datagrams;
        self.tally.bytes_out -= bytes;
        self.tally.unsent += datagrams;
    }

    /// Counts datagrams that the system dropped before they could be read.
    pub(crate) fn on_unseen(&mut self, datagrams: u64) {
        self.tally.unseen += datagrams;
    }

    pub(crate) fn tally(&self) -> Tally {
        let first = self.first.unwrap_or_default();
        let busy = self.line_free.max(self.now).saturating_sub(first);
        let tally = &self.tally;
        let carried = tally.datagrams_in - tally.lost.sum() + tally.duplicated;
        Tally {
            held: carried - tally.datagrams_out - tally.unsent,
            rate_mbit: self.line_bytes as f64 * 8.0 / micros(busy).max(1.0),
            mean_queue_delay_us: micros(self.waited) / self.line_datagrams.max(1) as f64,
            mean_late_us: micros(self.lateness) / self.released.max(1) as f64,
            ..self.tally
        }
    }

    fn decide(&mut self, offer: Offer, burst: bool, dice: &Dice) -> Result<Passage, Loss> {
        if self.settings.mtu.is_some_and(|mtu| offer.bytes > mtu) {
            return Err(Loss::Size);
        }
        let left = self.enter_line(offer.bytes)?;
        let settings = &self.settings;
        if settings.blackouts.iter().any(|out| out.covers(left.at)) {
            return Err(Loss::Blackout);
        }
        if burst {
            return Err(Loss::Burst);
        }
        if settings.loss.hits(dice.loss) {
            return Err(Loss::Random);
        }
        let mark_above = settings.line.and_then(|line| line.mark_above);
        let marked = offer.ecn_capable && mark_above.is_some_and(|limit| left.waited > limit);
        let flip = (settings.corrupt.hits(dice.corrupt) && offer.bytes > 0)
            .then(|| dice.bit % (offer.bytes * 8));
        Ok(Passage {
            due: self.due(left.at, dice),
            copies: 1 + usize::from(self.settings.duplicate.hits(dice.duplicate)),
            flip,
            marked,
        })
    }

    /// The state of the bursts for this datagram. A burst is begun or ended by every datagram that
    /// comes, even by one that is lost for another reason.
    fn step_burst(&mut self, draw: f64) -> bool {
        let Some(burst) = self.settings.burst else {
            return false;
        };
        self.in_burst = if self.in_burst {
            draw >= burst.ends()
        } else {
            draw < burst.begins()
        };
        self.in_burst
    }

    fn enter_line(&mut self, bytes: u64) -> Result<Departure, Loss> {
        let waited = self.line_free.saturating_sub(self.now);
        if let Some(line) = self.settings.line {
            let sending = line.rate.time_of(bytes);
            // What waits is as many bytes as the line sends until it is free.
            let full = waited + sending > line.rate.time_of(line.queue);
            if full && waited > Duration::ZERO {
                return Err(Loss::Queue);
            }
            self.line_free = self.now + waited + sending;
        } else {
            self.line_free = self.now;
        }
        self.line_bytes += bytes;
        self.line_datagrams += 1;
        self.waited += waited;
        self.tally.max_queue_delay_us = self.tally.max_queue_delay_us.max(micros(waited));
        Ok(Departure {
            at: self.line_free,
            waited,
        })
    }

    fn due(&mut self, left: Duration, dice: &Dice) -> Duration {
        let due = left + self.settings.delay + self.settings.jitter.mul_f64(dice.jitter);
        let due = due.max(self.last_due);
        if let Some(reorder) = self.settings.reorder
            && reorder.share.hits(dice.reorder)
        {
            self.tally.reordered += 1;
            return due + reorder.wait;
        }
        self.last_due = due;
        due
    }

    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Lost(loss) => self.tally.lost.add(loss),
            Fate::Passed(passage) => {
                self.tally.duplicated += u64::from(passage.copies > 1);
                self.tally.corrupted += u64::from(passage.flip.is_some());
                self.tally.marked += u64::from(passage.marked);
            }
        }
    }
}

#[cfg(test)]
mod tests;
