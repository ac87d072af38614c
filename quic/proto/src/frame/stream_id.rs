//! Stream ids.

use std::fmt;

use hybriq_tls::Side;

/// Whether a stream carries data both ways (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Both ends send.
    Bidi,
    /// Only the end that opened it sends.
    Uni,
}

/// A stream's number (RFC 9000 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The `index`-th stream that `initiator` opens in a direction, from 0.
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        Self(index << 2 | (direction as u64) << 1 | initiator as u64)
    }

    /// Who opened it.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Returns whether it carries data both ways.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 {
            Direction::Bidi
        } else {
            Direction::Uni
        }
    }

    /// Its place among the streams of its initiator and direction, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:?} stream {}",
            self.initiator(),
            self.direction(),
            self.index()
        )
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
