//! One direction of a link, made of all parts.

use std::time::Duration;

use super::{Blackouts, Departure, GilbertElliott, InOrder, Line, Offer};
use crate::rng::{Chance, Rng};

/// Conditions in one direction. By default everything passes at once.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Time that every datagram takes.
    pub delay: Duration,
    /// Maximum time added to the delay, uniform from 0. Preserves the order.
    pub jitter: Duration,
    /// Maximum number of UDP payload bytes that pass.
    pub mtu: Option<u64>,
    /// The bottleneck.
    pub line: Option<Line>,
    /// Probability that a datagram is lost.
    pub loss: Chance,
    /// Losses in bursts.
    pub bursts: Option<GilbertElliott>,
    /// Datagrams that are held back so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Probability that a datagram is sent twice.
    pub duplicate: Chance,
    /// Probability that one bit of a datagram is flipped.
    pub corrupt: Chance,
    /// Times at which everything is lost.
    pub blackouts: Blackouts,
}

/// Rule for holding datagrams back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Probability for each datagram.
    pub chance: Chance,
    /// Time for which it is held back.
    pub wait: Duration,
}

/// Reason for the loss of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Larger than the MTU.
    Size,
    /// Dropped by a full queue.
    Queue,
    /// Arrived during a blackout.
    Blackout,
    /// Part of a burst.
    Burst,
    /// Lost individually.
    Random,
}

/// Decision of a direction about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Departure from the line; `None` if the datagram was lost before. Without a line, it leaves
    /// when it arrives.
    pub departure: Option<Departure>,
    /// Fate of the datagram.
    pub fate: Fate,
}

/// Fate of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The datagram never arrives.
    Lost(Loss),
    /// The datagram arrives.
    Passed(Passage),
}

/// Delivery of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passage {
    /// Time at which it arrives.
    pub due: Duration,
    /// Number of its copies: one, or two if it was duplicated.
    pub copies: usize,
    /// Number of the bit that is flipped ([`flip`](super::flip)).
    pub flip: Option<u64>,
    /// True if it is given the CE mark.
    pub marked: bool,
    /// True if it was held back, so that later ones overtake it.
    pub held_back: bool,
}

/// One direction of a link.
///
/// Each datagram draws from its own generator, so that the n-th datagram of a direction has the
/// same fate, whatever happened before it and whenever it arrives.
#[derive(Clone, Debug)]
pub struct Direction {
    settings: Settings,
    seed: u64,
    offered: u64,
    now: Duration,
    order: InOrder,
}

impl Direction {
    /// Creates both directions of an idle link, with independent randomness.
    pub fn pair(to_server: Settings, to_client: Settings, seed: u64) -> [Self; 2] {
        let seed = seed.wrapping_mul(2);
        [
            Self::new(to_server, seed),
            Self::new(to_client, seed.wrapping_add(1)),
        ]
    }

    /// Creates an idle direction.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            offered: 0,
            now: Duration::ZERO,
            order: InOrder::default(),
        }
    }

    /// Decides about the next datagram. A time earlier than that of the last datagram counts as the
    /// same time.
    pub fn offer(&mut self, offer: Offer) -> Decision {
        self.now = self.now.max(offer.now);
        let now = self.now;
        let rng = &mut Rng::nth(self.seed, self.offered);
        self.offered += 1;
        // Every datagram can begin or end a burst, even one lost for another reason.
        let bursts = self.settings.bursts.as_mut();
        let in_burst = bursts.is_some_and(|bursts| bursts.takes(now, rng));
        let fortune = Fortune::draw(&self.settings, offer.bytes, rng);
        let lost = |departure, loss| Decision {
            departure,
            fate: Fate::Lost(loss),
        };
        if self.settings.mtu.is_some_and(|mtu| offer.bytes > mtu) {
            return lost(None, Loss::Size);
        }
        let Some(departure) = self.enter_line(Offer { now, ..offer }, rng) else {
            return lost(None, Loss::Queue);
        };
        let behind_the_line = if self.settings.blackouts.covers(departure.at) {
            Some(Loss::Blackout)
        } else if in_burst {
            Some(Loss::Burst)
        } else {
            fortune.is_lost.then_some(Loss::Random)
        };
        if let Some(loss) = behind_the_line {
            return lost(Some(departure), loss);
        }
        Decision {
            departure: Some(departure),
            fate: Fate::Passed(Passage {
                due: self.due(departure.at, &fortune),
                copies: 1 + usize::from(fortune.is_duplicated),
                flip: fortune.flip,
                marked: departure.marked,
                held_back: fortune.held_back.is_some(),
            }),
        }
    }

    fn enter_line(&mut self, offer: Offer, rng: &mut Rng) -> Option<Departure> {
        match &mut self.settings.line {
            Some(line) => line.enter(offer, rng),
            None => Some(Departure {
                at: offer.now,
                waited: Duration::ZERO,
                marked: false,
            }),
        }
    }

    /// Returns the arrival time of a datagram. A datagram that is held back does not delay others.
    fn due(&mut self, left: Duration, fortune: &Fortune) -> Duration {
        let due = left + self.settings.delay + fortune.jitter;
        match fortune.held_back {
            Some(wait) => {
                // The copy of the order does not include this datagram.
                let mut order = self.order;
                order.arrival(due) + wait
            }
            None => self.order.arrival(due),
        }
    }
}

/// Random decisions about one datagram, whatever else happens to it.
struct Fortune {
    is_lost: bool,
    is_duplicated: bool,
    flip: Option<u64>,
    held_back: Option<Duration>,
    jitter: Duration,
}

impl Fortune {
    fn draw(settings: &Settings, bytes: u64, rng: &mut Rng) -> Self {
        let is_lost = rng.happens(settings.loss);
        let is_duplicated = rng.happens(settings.duplicate);
        let is_corrupted = rng.happens(settings.corrupt) && bytes > 0;
        let reorder = settings.reorder;
        Self {
            is_lost,
            is_duplicated,
            flip: is_corrupted.then(|| rng.below(bytes * 8)),
            held_back: reorder
                .filter(|reorder| rng.happens(reorder.chance))
                .map(|reorder| reorder.wait),
            jitter: rng.up_to(settings.jitter),
        }
    }
}
