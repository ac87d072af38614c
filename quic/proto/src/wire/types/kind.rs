//! Packet-number spaces and kinds of packets.

use std::ops::{Index, IndexMut};

/// A packet-number space (RFC 9000 §12.3).
///
/// Exhaustive: RFC 9000 §12.3 has three spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

impl Space {
    /// All spaces, in the order a handshake reaches them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// The kinds of packets that carry frames (RFC 9000 §12.4, table 3).
///
/// Exhaustive: RFC 9000 §12.4 has no other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT, the only kind with a short header.
    OneRtt,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::OneRtt];

    /// Returns the packet-number space.
    pub const fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Data,
        }
    }
}

/// One value for each packet-number space.
///
/// Exhaustive: RFC 9000 §12.3 fixes the spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSpace<T> {
    /// The value of [`Space::Initial`].
    pub initial: T,
    /// The value of [`Space::Handshake`].
    pub handshake: T,
    /// The value of [`Space::Data`].
    pub data: T,
}

impl<T> PerSpace<T> {
    /// Returns the values in the order a handshake reaches the spaces.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.initial, &self.handshake, &self.data].into_iter()
    }
}

impl<T> Index<Space> for PerSpace<T> {
    type Output = T;

    fn index(&self, space: Space) -> &T {
        match space {
            Space::Initial => &self.initial,
            Space::Handshake => &self.handshake,
            Space::Data => &self.data,
        }
    }
}

impl<T> IndexMut<Space> for PerSpace<T> {
    fn index_mut(&mut self, space: Space) -> &mut T {
        match space {
            Space::Initial => &mut self.initial,
            Space::Handshake => &mut self.handshake,
            Space::Data => &mut self.data,
        }
    }
}

/// Bit of a 1-RTT packet that lets observers measure round trips (RFC 9000 §17.4).
///
/// Exhaustive: a bit has two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpinValue {
    /// The bit is 0, its initial value on a path.
    #[default]
    Zero,
    /// The bit is 1.
    One,
}

impl SpinValue {
    /// Returns the other value, with which a client answers.
    #[must_use]
    pub const fn inverted(self) -> Self {
        match self {
            Self::Zero => Self::One,
            Self::One => Self::Zero,
        }
    }
}

/// Bit of a 1-RTT packet that changes with every key update (RFC 9001 §6).
///
/// Exhaustive: a bit has two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyPhase {
    /// Phase of the first keys, and of every second set of keys after them.
    #[default]
    Zero,
    /// Phase of the other keys.
    One,
}

impl KeyPhase {
    /// Returns the phase of the next keys, and of the previous ones.
    #[must_use]
    pub const fn toggled(self) -> Self {
        match self {
            Self::Zero => Self::One,
            Self::One => Self::Zero,
        }
    }
}
