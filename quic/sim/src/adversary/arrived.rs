//! Datagrams of a hostile peer that arrived.

use std::{fmt, net::SocketAddr, time::Duration};

use super::Move;

/// Datagram of a hostile peer that arrived at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Step in which it was sent, counted from 1.
    pub step: u64,
    /// Virtual time since the beginning.
    pub elapsed: Duration,
    /// Source address.
    pub from: SocketAddr,
    /// Size.
    pub bytes: usize,
    /// True if it acknowledges something.
    pub acknowledges: bool,
    /// True if it answers a challenge.
    pub answers: bool,
    /// Moves that it consists of. A move that is not allowed at that time leaves nothing.
    pub moves: Vec<Move>,
}

impl fmt::Display for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            elapsed,
            from,
            bytes,
            ..
        } = self;
        write!(f, "step {step}, {elapsed:?}: {bytes} bytes from {from}:")?;
        if self.answers {
            write!(f, " answers a challenge")?;
        }
        if self.acknowledges {
            write!(f, " acknowledges")?;
        }
        self.moves.iter().try_for_each(|it| write!(f, " {it:?}"))
    }
}
