//! Nodes that lose, delay and change datagrams.

use std::time::Duration;

use hybriq_tls::Side;

use super::node::Both;
use crate::{
    Chance, Datagram, Hop, Node,
    link::{Blackouts, GilbertElliott, InOrder},
    one_in,
};
use hybriq_proto::owners::acks::Ecn;

/// Loses datagrams in bursts, following the model of Gilbert and Elliott, independently in each
/// direction.
#[derive(Clone, Copy, Debug)]
pub struct Bursts(Both<GilbertElliott>);

impl Bursts {
    /// Begins a burst with this probability before every datagram. A burst has `length` datagrams
    /// on average, and all of them are lost.
    pub fn new(begin: Chance, length: u32) -> Self {
        Self(Both::of(|| GilbertElliott::new(begin, one_in(length))))
    }

    /// Loses only some of the datagrams in a burst.
    #[must_use]
    pub fn lost_within(self, chance: Chance) -> Self {
        Self(self.0.map(|model| model.lost_within(chance)))
    }

    /// Ends a burst after this time, however few datagrams arrive.
    #[must_use]
    pub fn longest(self, span: Duration) -> Self {
        Self(self.0.map(|model| model.longest(span)))
    }
}

impl Node for Bursts {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !self.0.toward_mut(hop.toward).takes(hop.now, hop.rng) {
            hop.forward(datagram);
        }
    }
}

/// Loses everything in some intervals.
#[derive(Clone, Debug)]
pub struct Blackout(Blackouts);

impl Blackout {
    /// Loses datagrams in these intervals, each excluding its end.
    pub fn new(spans: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        Self(Blackouts::new(spans))
    }
}

impl Node for Blackout {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !self.0.covers(hop.now) {
            hop.forward(datagram);
        }
    }
}

/// A datagram that will be overtaken.
#[derive(Clone, Debug)]
struct Held {
    datagram: Datagram,
    left: u32,
    until: Duration,
}

/// Holds some datagrams back until others have passed: reordering by place, at any rate.
#[derive(Clone, Debug)]
pub struct Overtake {
    chance: Chance,
    most: u32,
    patience: Duration,
    held: Both<Vec<Held>>,
}

impl Overtake {
    /// Lets each datagram be overtaken with this probability, by one to `most` others, but holds it
    /// back for at most a tenth of a second.
    pub fn new(chance: Chance, most: u32) -> Self {
        Self {
            chance,
            most,
            patience: Duration::from_millis(100),
            held: Both::default(),
        }
    }
}

impl Node for Overtake {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let held = self.held.toward_mut(hop.toward);
        if hop.rng.happens(self.chance) {
            let left = 1 + hop.rng.below(self.most.into()) as u32;
            held.push(Held {
                datagram,
                left,
                until: hop.now + self.patience,
            });
            return;
        }
        hop.forward(datagram);
        for one in held.iter_mut() {
            one.left -= 1;
        }
        for over in take_if(held, |one| one.left == 0) {
            hop.forward(over.datagram);
        }
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        self.held.toward(toward).first().map(|held| held.until)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        let now = hop.now;
        let held = self.held.toward_mut(hop.toward);
        for over in take_if(held, |one| one.until <= now) {
            hop.forward(over.datagram);
        }
    }
}

/// Removes the datagrams that meet the condition; both groups keep their order.
fn take_if(held: &mut Vec<Held>, is_over: impl Fn(&Held) -> bool) -> Vec<Held> {
    let (over, left) = held.drain(..).partition(is_over);
    *held = left;
    over
}

/// Delays every datagram by a random time and keeps their order.
#[derive(Clone, Copy, Debug)]
pub struct OrderedJitter {
    most: Duration,
    order: Both<InOrder>,
}

impl OrderedJitter {
    /// Sets the maximum delay.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            order: Both::default(),
        }
    }
}

impl Node for OrderedJitter {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let due = hop.now + hop.rng.up_to(self.most);
        let arrival = self.order.toward_mut(hop.toward).arrival(due);
        hop.forward_at(arrival, datagram);
    }
}

/// How a broken middlebox changes ECN codepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mangle {
    /// Clears them: ECN is bleached.
    Bleach,
    /// Turns ECT(0) into ECT(1).
    Ect0ToEct1,
    /// Turns ECT(1) into ECT(0).
    Ect1ToEct0,
    /// Sets CE on every datagram, ECN capable or not.
    AllCe,
}

impl Node for Mangle {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        datagram.ecn = match (self, datagram.ecn) {
            (Self::Bleach, _) => None,
            (Self::AllCe, _) => Some(Ecn::Ce),
            (Self::Ect0ToEct1, Some(Ecn::Ect0)) => Some(Ecn::Ect1),
            (Self::Ect1ToEct0, Some(Ecn::Ect1)) => Some(Ecn::Ect0),
            (_, ecn) => ecn,
        };
        hop.forward(datagram);
    }
}
