//! All parts of a link put together, for one direction.

use std::time::Duration;

use super::{Blackouts, Departure, GilbertElliott, InOrder, Line, Offer};
use crate::rng::{Chance, Rng};

/// Conditions in one direction. The default lets everything pass at once.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Time that every datagram takes.
    pub delay: Duration,
    /// Most time that is added to the delay, uniform from nothing to this. Keeps the order.
    pub jitter: Duration,
    /// Most bytes of UDP payload that pass.
    pub mtu: Option<u64>,
    /// The bottleneck.
    pub line: Option<Line>,
    /// Chance of each datagram to be lost.
    pub loss: Chance,
    /// Losses in bursts.
    pub bursts: Option<GilbertElliott>,
    /// Datagrams that are held back so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Chance of each datagram to be sent twice.
    pub duplicate: Chance,
    /// Chance of each datagram to have one bit flipped.
    pub corrupt: Chance,
    /// Times at which everything is lost.
    pub blackouts: Blackouts,
}

/// Datagrams that are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Chance of each datagram.
    pub chance: Chance,
    /// Time for which it is held back.
    pub wait: Duration,
}

/// Reason for which a datagram is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It was larger than the MTU.
    Size,
    /// The queue was full.
    Queue,
    /// It entered the wire in a blackout.
    Blackout,
    /// It was part of a burst.
    Burst,
    /// It was lost by itself.
    Random,
}

/// What a direction decides about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// How it left the line; `None` if it was lost before. Where there is no line, it leaves when it
    /// comes.
    pub departure: Option<Departure>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never arrives.
    Lost(Loss),
    /// It arrives.
    Passed(Passage),
}

/// How a datagram passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Time at which it arrives.
    pub due: Duration,
    /// Number of its copies: one, or two where it was duplicated.
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
/// Each datagram draws from a generator of its own, so that the n-th datagram of a direction meets
/// the same fortune whatever happened before it and whenever it comes.
#[derive(Clone, Debug)]
pub struct Direction {
    settings: Settings,
    seed: u64,
    offered: u64,
    now: Duration,
    order: InOrder,
}

impl Direction {
    /// Makes both directions of a link, idle. What chance does in one says nothing about the other.
    pub fn pair(to_server: Settings, to_client: Settings, seed: u64) -> [Self; 2] {
        let seed = seed.wrapping_mul(2);
        [
            Self::new(to_server, seed),
            Self::new(to_client, seed.wrapping_add(1)),
        ]
    }

    /// Makes an idle one.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            settings,
            seed,
            offered: 0,
            now: Duration::ZERO,
            order: InOrder::default(),
        }
    }

    /// Decides about the next datagram. A time before that of the last one counts as that.
    pub fn offer(&mut self, offer: Offer) -> Decision {
        self.now = self.now.max(offer.now);
        let now = self.now;
        let rng = &mut Rng::nth(self.seed, self.offered);
        self.offered += 1;
        // Every datagram that comes begins or ends bursts, even one that is lost for another reason.
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

    /// Returns the time at which a datagram arrives. One that is held back holds up no other.
    fn due(&mut self, left: Duration, fortune: &Fortune) -> Duration {
        let due = left + self.settings.delay + fortune.jitter;
        match fortune.held_back {
            Some(wait) => {
                // A copy of the order forgets this one.
                let mut order = self.order;
                order.arrival(due) + wait
            }
            None => self.order.arrival(due),
        }
    }
}

/// What chance has to say about one datagram, whatever else happens to it.
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
