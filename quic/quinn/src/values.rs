//! Numbers and ids.

use std::fmt;

/// An integer less than 2^62 (RFC 9000 §16).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarInt(u64);

/// A number is 2^62 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value too large for varint encoding")]
pub struct VarIntBoundsExceeded;

impl VarInt {
    /// Largest value.
    pub const MAX: Self = Self((1 << 62) - 1);
    /// Largest number of bytes on the wire.
    pub const MAX_SIZE: usize = 8;

    /// Returns the integer of a number that is always small enough.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// Returns the integer of a number.
    ///
    /// # Errors
    /// It is 2^62 or more.
    pub const fn from_u64(value: u64) -> Result<Self, VarIntBoundsExceeded> {
        if value <= Self::MAX.0 {
            Ok(Self(value))
        } else {
            Err(VarIntBoundsExceeded)
        }
    }

    /// Returns the number.
    pub const fn into_inner(self) -> u64 {
        self.0
    }

    /// Returns the integer of a number that came from the wire, lowered to the largest.
    pub(crate) fn of_wire(value: u64) -> Self {
        Self(value.min(Self::MAX.0))
    }
}

impl fmt::Debug for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

macro_rules! small {
    ($($number:ty),*) => {$(
        impl From<$number> for VarInt {
            fn from(value: $number) -> Self {
                Self(value.into())
            }
        }
    )*};
}

macro_rules! large {
    ($($number:ty),*) => {$(
        impl TryFrom<$number> for VarInt {
            type Error = VarIntBoundsExceeded;

            fn try_from(value: $number) -> Result<Self, VarIntBoundsExceeded> {
                Self::from_u64(u64::try_from(value).map_err(|_| VarIntBoundsExceeded)?)
            }
        }
    )*};
}

small!(u8, u16, u32);
large!(u64, u128, usize);

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that started the connection.
    Client = 0,
    /// The end that accepted it.
    Server = 1,
}

impl Side {
    /// Returns true for the client.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// Returns true for the server.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server)
    }
}

impl std::ops::Not for Side {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl From<hybriq::tls::Side> for Side {
    fn from(side: hybriq::tls::Side) -> Self {
        if side.is_client() {
            Self::Client
        } else {
            Self::Server
        }
    }
}

/// Directions in which a stream carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Both ends send.
    Bi = 0,
    /// Only the end that opened the stream sends.
    Uni = 1,
}

/// Id of a stream (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// Returns the id of the `index`-th stream, from 0, that `initiator` opens in a direction.
    pub const fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        Self(index << 2 | (dir as u64) << 1 | initiator as u64)
    }

    /// Returns the end that opens the stream.
    pub const fn initiator(self) -> Side {
        if self.0 & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Returns the directions of the stream.
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// Returns the index of the stream among those of its initiator and direction, from 0.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let initiator = match self.initiator() {
            Side::Client => "client",
            Side::Server => "server",
        };
        let dir = match self.dir() {
            Dir::Bi => "bi",
            Dir::Uni => "uni",
        };
        write!(f, "{initiator} {dir}directional stream {}", self.index())
    }
}

impl From<StreamId> for VarInt {
    fn from(id: StreamId) -> Self {
        Self(id.0)
    }
}

impl From<VarInt> for StreamId {
    fn from(id: VarInt) -> Self {
        Self(id.0)
    }
}

impl From<StreamId> for u64 {
    fn from(id: StreamId) -> Self {
        id.0
    }
}

impl From<hybriq::StreamId> for StreamId {
    fn from(id: hybriq::StreamId) -> Self {
        Self(id.0)
    }
}
