//! Sides of a connection and levels of its encryption.

use std::ops::{Index, IndexMut};

/// One end of a connection.
///
/// Exhaustive: a connection has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that sends the ClientHello.
    Client,
    /// The end that answers it.
    Server,
}

impl Side {
    /// Returns the other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns true for the client.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Returns true for the server.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

/// An encryption level (RFC 9001 §2.1), in the order a handshake reaches them.
///
/// Exhaustive: RFC 9001 §2.1 has four levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Initial packets: ClientHello, HelloRetryRequest, ServerHello.
    Initial,
    /// 0-RTT packets. Carries no CRYPTO frames.
    ZeroRtt,
    /// Handshake packets: the rest of the handshake.
    Handshake,
    /// 1-RTT packets: session tickets.
    OneRtt,
}

/// One value for each level that carries handshake bytes.
///
/// Exhaustive: RFC 9001 §2.1 fixes the levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerLevel<T> {
    /// Value of [`Level::Initial`].
    pub initial: T,
    /// Value of [`Level::Handshake`].
    pub handshake: T,
    /// Value of [`Level::OneRtt`] (and [`Level::ZeroRtt`], which shares its number space).
    pub one_rtt: T,
}

impl<T> Index<Level> for PerLevel<T> {
    type Output = T;

    fn index(&self, level: Level) -> &T {
        match level {
            Level::Initial => &self.initial,
            Level::Handshake => &self.handshake,
            Level::ZeroRtt | Level::OneRtt => &self.one_rtt,
        }
    }
}

impl<T> IndexMut<Level> for PerLevel<T> {
    fn index_mut(&mut self, level: Level) -> &mut T {
        match level {
            Level::Initial => &mut self.initial,
            Level::Handshake => &mut self.handshake,
            Level::ZeroRtt | Level::OneRtt => &mut self.one_rtt,
        }
    }
}
