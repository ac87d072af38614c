//! The datagram size of the path in use, and what is learned about it.

use std::time::{Duration, Instant};

use super::{Learned, Mtu, MtuCounts, MtuRange, Paths};
use crate::wire::{limits, packet::PacketNumber};

impl<S> Paths<S> {
    /// Returns the maximum size of the next datagram. The last packet of a probe timeout has the
    /// size that every path carries: if only that one arrives, the path has become a black hole for
    /// larger ones.
    #[inline]
    pub fn datagram_limit(&self, probes_left: u8) -> usize {
        if probes_left == 1 {
            limits::MIN_DATAGRAM
        } else {
            self.active.datagram_size().into()
        }
    }

    /// Starts the search on the path in use, once the handshake is confirmed.
    pub fn start_mtu(&mut self, range: MtuRange) {
        self.mtu_range = Some(range);
        self.start_mtu_at(range.size, range);
    }

    /// Continues on another path, which is known to carry 1200 bytes (RFC 9000 §9.4) or the size
    /// found when it was last used.
    pub fn resume_mtu(&mut self) {
        if let Some(range) = self.mtu_range.filter(|_| !self.active.mtu.is_started()) {
            self.start_mtu_at(limits::MIN_DATAGRAM as u16, range);
        }
    }

    /// Returns the bytes of the MTU probe that is due on the path in use. Answers to challenges go
    /// first.
    #[inline]
    pub fn mtu_probe(&self, now: Instant) -> Option<u16> {
        let size = self.active.mtu.probe(now)?;
        (self.active.is_validated() && !self.active.has_pending()).then_some(size)
    }

    /// Notes that the due probe was sent in this packet, alone in its datagram.
    pub fn on_mtu_probe_sent(&mut self, pn: PacketNumber, bytes: usize) {
        self.active.mtu.on_probe_sent(pn);
        self.active.on_sent(bytes as u64);
        self.mtu_counts.sent += 1;
    }

    /// Learns from the loss of a 1-RTT packet that was sent on the path in use.
    pub fn on_size_lost(&mut self, pn: PacketNumber, size: u16, time_sent: Instant, rtt: Duration) {
        match self.active.mtu.on_lost(pn, size, time_sent, rtt) {
            Learned::Nothing => {}
            Learned::ProbeLost => self.mtu_counts.lost += 1,
            Learned::BlackHole => self.mtu_counts.black_holes += 1,
        }
    }

    /// Returns the number of MTU probes.
    #[must_use]
    pub const fn mtu_counts(&self) -> MtuCounts {
        self.mtu_counts
    }

    fn start_mtu_at(&mut self, size: u16, range: MtuRange) {
        let mtu = &mut self.active.mtu;
        match range.most {
            Some(most) => mtu.start(size.min(range.peer), most.min(range.peer)),
            None => *mtu = Mtu::new(range.size.min(range.peer)),
        }
    }
}
