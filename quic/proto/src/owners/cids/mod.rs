//! Connection ids (RFC 9000 §5.1): those we issue and those the peer issued to us.

mod generator;
mod local;
mod peer;
mod quic_lb;
mod reset_key;

pub use generator::{CidGenerator, RandomCids, Steering, ZeroLength};
pub use local::{CidEvent, Issued, Local};
pub use peer::Peer;
pub use quic_lb::{InvalidQuicLb, QuicLb};
pub use reset_key::ResetKey;
#[cfg(test)]
pub(crate) use reset_key::TOKENS;

/// Sequence numbers in the connection id frames of one packet.
///
/// Takes two words in every packet's record: the smallest number, and a bit mask for the 63 numbers
/// after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    first: u64,
    /// Bit `i` represents `first + i`; bit 0 is set unless the record is empty.
    mask: u64,
}

impl Sent {
    /// Returns true if the record is empty.
    pub const fn is_empty(&self) -> bool {
        self.mask == 0
    }

    /// Returns the sequence numbers, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { first, mask } = *self;
        (0..u64::from(u64::BITS))
            .filter(move |bit| mask >> bit & 1 == 1)
            .map(move |bit| first + bit)
    }

    /// Returns true if [`Sent::insert`] can take the number: it is not smaller than the first, and
    /// near enough.
    pub(super) const fn has_room_for(&self, sequence: u64) -> bool {
        self.is_empty() || (sequence >= self.first && sequence - self.first < u64::BITS as u64)
    }

    pub(super) fn insert(&mut self, sequence: u64) {
        debug_assert!(self.has_room_for(sequence), "{sequence} does not fit");
        if self.is_empty() {
            self.first = sequence;
        }
        self.mask |= 1 << (sequence - self.first);
    }
}
