//! Lasting losses: bursts and blackouts.

use std::time::Duration;

use crate::rng::{Chance, Rng, one_in};

/// Losses in bursts: the model of Gilbert and Elliott.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    begin: Chance,
    end: Chance,
    lost_within: Chance,
    longest: Duration,
    /// Start of the current burst.
    since: Option<Duration>,
}

impl GilbertElliott {
    /// Begins a burst with the probability `begin` at each datagram outside of one, and ends it
    /// with the probability `end` at each datagram in it. All datagrams of a burst are lost.
    pub const fn new(begin: Chance, end: Chance) -> Self {
        Self {
            begin,
            end,
            lost_within: one_in(1),
            longest: Duration::MAX,
            since: None,
        }
    }

    /// Loses only some of the datagrams in a burst.
    #[must_use]
    pub const fn lost_within(mut self, chance: Chance) -> Self {
        self.lost_within = chance;
        self
    }

    /// Ends a burst after this time, however few datagrams arrive.
    #[must_use]
    pub const fn longest(mut self, span: Duration) -> Self {
        self.longest = span;
        self
    }

    /// Returns true if the datagram at `now` is lost. Must be called for every datagram.
    pub fn takes(&mut self, now: Duration, rng: &mut Rng) -> bool {
        self.since = match self.since {
            Some(at) if now.saturating_sub(at) > self.longest => None,
            Some(at) => (!rng.happens(self.end)).then_some(at),
            None => rng.happens(self.begin).then_some(now),
        };
        self.since.is_some() && rng.happens(self.lost_within)
    }
}

/// Intervals in which everything is lost, each excluding its end.
#[derive(Clone, Debug, Default)]
pub struct Blackouts(Vec<(Duration, Duration)>);

impl Blackouts {
    /// Creates blackouts from their beginnings and ends.
    pub fn new(spans: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        Self(spans.into_iter().collect())
    }

    /// Returns true if a datagram is lost at that time.
    pub fn covers(&self, at: Duration) -> bool {
        self.0.iter().any(|&(from, to)| from <= at && at < to)
    }

    /// Returns the number of spans.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
