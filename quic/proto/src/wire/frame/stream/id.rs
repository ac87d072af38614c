//! Stream ids.

use std::fmt;

use hybriq_tls::Side;

/// Direction of a stream (RFC 9000 §2.1).
///
/// Exhaustive: RFC 9000 §2.1 has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Both ends send.
    Bidi,
    /// Only the initiator sends.
    Uni,
}

/// Id of a stream (RFC 9000 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// Returns the id of the `index`-th stream, from 0, that `initiator` opens in a direction.
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Self {
        Self(index << 2 | (direction as u64) << 1 | initiator as u64)
    }

    /// Returns the end that opens the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Returns the direction of the stream.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 {
            Direction::Bidi
        } else {
            Direction::Uni
        }
    }

    /// Returns the index of the stream among those of its initiator and direction, from 0.
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
