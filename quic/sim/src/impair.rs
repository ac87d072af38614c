use std::time::Duration;

use hybriq_tls::Side;

use super::{Chance, Datagram, Hop, Node, node::Both, one_in};
use hybriq_proto::space::Ecn;

/// Loses datagrams in bursts: the model of Gilbert and Elliott, each way on its own.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    begin: Chance,
    end: Chance,
    lost_within: Chance,
    longest: Duration,
    /// When the burst began that goes on.
    since: Both<Option<Duration>>,
}

impl Bursts {
    /// Before every datagram a burst begins with this chance; it is so many datagrams long on
    /// average, and all of them are lost.
    pub fn new(begin: Chance, length: u32) -> Self {
        Self {
            begin,
            end: one_in(length),
            lost_within: one_in(1),
            longest: Duration::MAX,
            since: Both::default(),
        }
    }

    /// Of a burst only some are lost.
    #[must_use]
    pub const fn lost_within(mut self, chance: Chance) -> Self {
        self.lost_within = chance;
        self
    }

    /// No burst goes on for longer, however few datagrams come: what fades comes back by itself.
    #[must_use]
    pub const fn longest(mut self, span: Duration) -> Self {
        self.longest = span;
        self
    }
}

impl Node for Bursts {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let since = self.since.toward_mut(hop.toward);
        *since = match *since {
            Some(at) if hop.now.saturating_sub(at) > self.longest => None,
            Some(at) => (!hop.rng.happens(self.end)).then_some(at),
            None => hop.rng.happens(self.begin).then_some(hop.now),
        };
        if since.is_none() || !hop.rng.happens(self.lost_within) {
            hop.forward(datagram);
        }
    }
}

/// Loses everything for a while.
#[derive(Clone, Debug)]
pub struct Blackout(Vec<(Duration, Duration)>);

impl Blackout {
    /// Loses what comes in these spans, each from its first moment up to its last, which is not
    /// part of it.
    pub fn new(spans: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        Self(spans.into_iter().collect())
    }
}

impl Node for Blackout {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if !self
            .0
            .iter()
            .any(|&(from, to)| from <= hop.now && hop.now < to)
        {
            hop.forward(datagram);
        }
    }
}

/// Which way and how far a datagram has to be overtaken.
#[derive(Clone, Debug)]
struct Held {
    datagram: Datagram,
    left: u32,
    until: Duration,
}

/// Holds some datagrams back until others have passed: reordering by place, whatever the rate.
#[derive(Clone, Debug)]
pub struct Overtake {
    chance: Chance,
    most: u32,
    patience: Duration,
    held: Both<Vec<Held>>,
}

impl Overtake {
    /// Each datagram is overtaken with this chance, by one up to `most` others; but it waits no
    /// longer than a tenth of a second.
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
        for over in held.extract_if(.., |one| one.left == 0) {
            hop.forward(over.datagram);
        }
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        self.held.toward(toward).first().map(|held| held.until)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        let now = hop.now;
        let held = self.held.toward_mut(hop.toward);
        for over in held.extract_if(.., |one| one.until <= now) {
            hop.forward(over.datagram);
        }
    }
}

/// Takes up to that much time over a datagram, and keeps their order.
#[derive(Clone, Copy, Debug)]
pub struct OrderedJitter {
    most: Duration,
    last: Both<Duration>,
}

impl OrderedJitter {
    /// Up to this long.
    pub fn new(most: Duration) -> Self {
        Self {
            most,
            last: Both::default(),
        }
    }
}

impl Node for OrderedJitter {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let last = self.last.toward_mut(hop.toward);
        *last = (*last).max(hop.now + hop.rng.up_to(self.most));
        hop.forward_at(*last, datagram);
    }
}

/// What a broken middlebox does to ECN codepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
