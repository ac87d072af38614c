//! Fates of sent packets.

use crate::{owners::recovery::SentPacket, wire::packet::PacketNumber};

/// A packet whose fate is known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settled<R> {
    /// Packet number.
    pub pn: PacketNumber,
    /// The packet.
    pub packet: SentPacket<R>,
}

/// Result of an ACK or a timeout. The caller clears and reuses it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<R> {
    /// Packets acknowledged for the first time.
    pub acked: Vec<Settled<R>>,
    /// Packets declared lost, oldest first.
    pub lost: Vec<Settled<R>>,
    /// The largest number in any ACK frame of ours that is now known to have arrived.
    pub largest_acked_ack: Option<PacketNumber>,
    /// True if an ack-eliciting packet was acknowledged.
    pub progress: bool,
    /// True if the losses amount to persistent congestion (RFC 9002 §7.6).
    pub persistent_congestion: bool,
}

impl<R> Default for Outcome<R> {
    fn default() -> Self {
        Self {
            acked: Vec::new(),
            lost: Vec::new(),
            largest_acked_ack: None,
            progress: false,
            persistent_congestion: false,
        }
    }
}

impl<R> Outcome<R> {
    /// Releases the memory of the lists, if they are empty.
    pub fn release_memory(&mut self) {
        self.acked.shrink_to_fit();
        self.lost.shrink_to_fit();
    }

    /// Clears the lists, but keeps their memory.
    pub fn clear(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.largest_acked_ack = None;
        self.progress = false;
        self.persistent_congestion = false;
    }
}
