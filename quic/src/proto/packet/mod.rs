//! Packets (RFC 9000 §17, RFC 9001 §5): headers, numbers, protection.

mod cid;

pub use cid::Cid;

/// A packet-number space (RFC 9000 §12.3).
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
    /// All of them, in the order a handshake reaches them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// The kinds of packets that carry frames (RFC 9000 §12.4, table 3).
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
    /// The space its packet numbers belong to.
    pub const fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Data,
        }
    }
}
