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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::OneRtt];

    /// The space its packet numbers belong to.
    pub const fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Data,
        }
    }
}

/// The bit of a 1-RTT packet that changes with every key update (RFC 9001 §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyPhase {
    /// The first keys, and every second ones after them.
    #[default]
    Zero,
    /// The others.
    One,
}

impl KeyPhase {
    /// The phase of the next keys, and of the ones before.
    #[must_use]
    pub const fn toggled(self) -> Self {
        match self {
            Self::Zero => Self::One,
            Self::One => Self::Zero,
        }
    }
}
