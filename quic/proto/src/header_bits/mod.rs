//! What of a packet's first byte is free to say something or nothing: the spin bit
//! (RFC 9000 §17.4) and the QUIC bit (RFC 9287).

use hybriq_tls::Side;

use crate::{
    packet::{PacketNumber, SpinValue},
    prf::Sequence,
};

#[cfg(test)]
mod tests;

/// One in so many paths has no spin bit, whatever was chosen, so that those without are no rarity
/// (RFC 9000 §17.4).
const PATHS_WITHOUT_SPIN: u64 = 16;

/// Whether an observer may measure round trips by the spin bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinBit {
    /// The bit is random, another for each connection id.
    #[default]
    Off,
    /// It changes once a round trip, on most paths.
    On,
}

/// Whether the QUIC bit is used as RFC 9287 has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grease {
    /// Packets without it are taken, and those who take them get some.
    #[default]
    On,
    /// It is always set, and packets without it are dropped.
    Off,
}

/// The free bits of one path's packets.
#[derive(Debug)]
pub struct HeaderBits {
    side: Side,
    random: Sequence,
    /// Random bits for packets to come, behind a 1 that marks their end.
    coins: u64,
    allowed: SpinBit,
    /// True if the bit follows the peer's on this path.
    spins: bool,
    spin: SpinValue,
    /// The largest packet number whose bit was followed.
    followed: Option<PacketNumber>,
    greases: bool,
}

impl HeaderBits {
    /// Starts on the first path. The seed is random and used for nothing else.
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

    /// The peer asked for packets without the QUIC bit (RFC 9287 §3).
    pub const fn on_greased_peer(&mut self) {
        self.greases = true;
    }

    /// Another path or another id of the peer is used: whether it has a spin bit is drawn anew, and
    /// the bit starts from the beginning (RFC 9000 §17.4).
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

    /// Follows a 1-RTT packet that proved to be authentic: a server repeats the bit of the newest
    /// packet, a client says the opposite.
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

    /// The spin bit of the next packet.
    #[inline]
    pub const fn spin(&self) -> SpinValue {
        self.spin
    }

    /// Returns true if the next packet goes without the QUIC bit. Nobody can say for which it will.
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
