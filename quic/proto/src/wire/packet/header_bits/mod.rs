//! Bits of a packet's first byte, with the free ones: the spin bit (RFC 9000 §17.4) and the QUIC bit
//! (RFC 9287).

use hybriq_tls::Side;

use crate::{
    random::prf::Sequence,
    wire::{
        Eof,
        packet::{PacketNumber, SpinValue},
    },
};

#[cfg(test)]
mod tests;

/// One in this many paths never spins, whatever was chosen, so that paths without a spin bit remain
/// common (RFC 9000 §17.4).
const PATHS_WITHOUT_SPIN: u64 = 16;

/// Use of the spin bit, by which observers on the path can measure round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpinBit {
    /// The bit is random for each connection id.
    #[default]
    Off,
    /// The bit changes once a round trip, on most paths.
    On,
}

/// Use of the QUIC bit, as defined in RFC 9287.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grease {
    /// Packets without the bit are accepted, and it is randomized for peers that accept this.
    #[default]
    On,
    /// The bit is always set, and packets without it are dropped.
    Off,
}

/// The free bits of one path's packets.
#[derive(Debug)]
pub struct HeaderBits {
    side: Side,
    random: Sequence,
    /// Random bits for later packets, after a 1 that marks their end.
    coins: u64,
    allowed: SpinBit,
    /// True if the spin bit is in use on this path.
    spins: bool,
    spin: SpinValue,
    /// Largest packet number from which the spin bit was taken.
    followed: Option<PacketNumber>,
    greases: bool,
}

impl HeaderBits {
    /// Starts on the first path. The seed must be random and used for nothing else.
    pub fn new(side: Side, seed: u64, allowed: SpinBit) -> Self {
        let mut bits = Self {
            side,
            random: Sequence::new(seed),
            coins: 1,
            allowed,
            spins: false,
            spin: SpinValue::Zero,
            followed: None,
            greases: false,
        };
        bits.on_new_path();
        bits
    }

    /// Notes that the peer accepts packets without the QUIC bit (RFC 9287 §3).
    pub const fn on_greased_peer(&mut self) {
        self.greases = true;
    }

    /// Starts on another path or with another id of the peer: whether the spin bit is used is drawn
    /// again, and the bit is reset (RFC 9000 §17.4).
    pub fn on_new_path(&mut self) {
        let draw = self.random.draw();
        self.spins = self.allowed == SpinBit::On && (draw >> 32) % PATHS_WITHOUT_SPIN != 0;
        self.spin = if !self.spins && draw & 1 == 1 {
            SpinValue::One
        } else {
            SpinValue::Zero
        };
        self.followed = None;
    }

    /// Follows an authentic 1-RTT packet: a server repeats the bit of the newest packet, a client
    /// inverts it.
    #[inline]
    pub fn on_packet(&mut self, pn: PacketNumber, spin: SpinValue) {
        if self.spins && self.followed.is_none_or(|newest| pn > newest) {
            self.followed = Some(pn);
            self.spin = match self.side {
                Side::Client => spin.inverted(),
                Side::Server => spin,
            };
        }
    }

    /// Returns the spin bit of the next packet.
    #[inline]
    pub const fn spin(&self) -> SpinValue {
        self.spin
    }

    /// Returns true if the next packet is sent without the QUIC bit, chosen at random.
    #[inline]
    pub fn clears_quic_bit(&mut self) -> bool {
        self.greases && self.toss()
    }

    /// Returns true for every second packet on average. A draw lasts for 63 packets.
    fn toss(&mut self) -> bool {
        if self.coins <= 1 {
            self.coins = self.random.draw() | 1 << 63;
        }
        let heads = self.coins & 1 == 1;
        self.coins >>= 1;
        heads
    }
}

/// Set in long headers.
pub(super) const LONG: u8 = 0x80;
/// Set in every packet of versions 1 and 2 (RFC 9000 §17.2, §17.3).
pub(super) const FIXED: u8 = 0x40;
/// Bits of the type of a long header (RFC 9000 §17.2).
pub(super) const TYPE_MASK: u8 = 0x30;
/// Step from one type of a long header to the next.
pub(super) const TYPE_STEP: u8 = 0x10;

/// Reason to drop a packet silently. The connection is not at fault: anybody can send such bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// The datagram ends before the header, or before the length it states.
    #[error("packet is cut short")]
    Truncated,
    /// The fixed bit is 0 (RFC 9000 §17.2, §17.3).
    #[error("packet without the fixed bit")]
    FixedBit,
    /// A connection id of more than 20 bytes (RFC 9000 §17.2).
    #[error("connection id longer than 20 bytes")]
    CidTooLong,
    /// A Retry without a token (RFC 9000 §17.2.5.2).
    #[error("Retry without a token")]
    EmptyRetryToken,
    /// The packet is too short to sample for header protection (RFC 9001 §5.4.2).
    #[error("packet too short to be protected")]
    NoSample,
}

impl From<Eof> for DropReason {
    fn from(Eof: Eof) -> Self {
        Self::Truncated
    }
}
