//! Packets that were declared lost, in case they are acknowledged later.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::wire::{limits::LOST_PACKETS, packet::PacketNumber};

/// Capacity that is kept while the queue is empty.
const KEPT: usize = 64;

/// Record of a packet in flight that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(in crate::owners::recovery) struct LostPacket {
    pub(in crate::owners::recovery) pn: PacketNumber,
    pub(in crate::owners::recovery) time_sent: Instant,
    pub(in crate::owners::recovery) lost_at: Instant,
    pub(in crate::owners::recovery) size: u16,
    /// Congestion episode of its loss.
    pub(in crate::owners::recovery) episode: u32,
}

/// The last packets of one space that were declared lost and have not been acknowledged since, at
/// most [`LOST_PACKETS`]; the oldest are dropped.
///
/// Their content is not stored. It was already returned to be resent, so the peer may get it twice,
/// which costs less than a record for each loss.
#[derive(Debug, Default)]
pub(in crate::owners::recovery) struct LostPackets {
    /// Ascending by number, because all older packets are declared lost first.
    packets: VecDeque<LostPacket>,
}

impl LostPackets {
    pub(in crate::owners::recovery) const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
        }
    }

    #[inline]
    pub(in crate::owners::recovery) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(in crate::owners::recovery) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Returns the bytes of memory that the records take.
    pub(in crate::owners::recovery) fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<LostPacket>()
    }

    /// Returns the largest number of bytes of memory that they take.
    pub(in crate::owners::recovery) const fn most_memory() -> usize {
        LOST_PACKETS * size_of::<LostPacket>()
    }

    pub(in crate::owners::recovery) fn push(&mut self, packet: LostPacket) {
        if self.packets.len() >= LOST_PACKETS {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Removes the packets in `first..=last`.
    pub(in crate::owners::recovery) fn take_range(
        &mut self,
        first: PacketNumber,
        last: PacketNumber,
    ) -> impl Iterator<Item = LostPacket> + '_ {
        let from = self.packets.partition_point(|packet| packet.pn < first);
        let to = self.packets.partition_point(|packet| packet.pn <= last);
        self.packets.drain(from..to.max(from))
    }

    /// Forgets packets that were lost longer ago than `keep`.
    pub(in crate::owners::recovery) fn expire(&mut self, now: Instant, keep: Duration) {
        let is_old = |lost_at| now.saturating_duration_since(lost_at) > keep;
        while self
            .packets
            .front()
            .is_some_and(|oldest| is_old(oldest.lost_at))
        {
            self.packets.pop_front();
        }
        if self.packets.is_empty() && self.packets.capacity() > KEPT {
            self.packets = VecDeque::new();
        }
    }

    pub(in crate::owners::recovery) fn clear(&mut self) {
        self.packets = VecDeque::new();
    }
}

/// Losses answered by one reduction of the window (RFC 9002 §7.3.2), and the number of them that
/// were spurious.
#[derive(Debug, Default)]
pub(in crate::owners::recovery) struct Episode {
    number: u32,
    /// Send time up to which packets belong to the episode.
    start: Option<Instant>,
    lost: u64,
    late: u64,
    /// True if marks showed congestion as well.
    marked: bool,
}

impl Episode {
    /// Returns the number of episodes so far.
    pub(in crate::owners::recovery) const fn number(&self) -> u32 {
        self.number
    }

    /// Counts lost packets, the last of them sent at `newest_sent`. Returns the episode's number.
    pub(in crate::owners::recovery) fn on_lost(
        &mut self,
        now: Instant,
        newest_sent: Instant,
        count: u64,
    ) -> u32 {
        self.begin(now, newest_sent);
        self.lost += count;
        self.number
    }

    /// Notes marks, which no late arrival can refute.
    pub(in crate::owners::recovery) fn on_marked(&mut self, now: Instant, newest_sent: Instant) {
        self.begin(now, newest_sent);
        self.marked = true;
    }

    /// Continues the count of another path's episodes.
    pub(in crate::owners::recovery) const fn follow(&mut self, other: &Self) {
        self.number = other.number;
    }

    fn begin(&mut self, now: Instant, newest_sent: Instant) {
        if self.start.is_none_or(|start| newest_sent > start) {
            *self = Self {
                number: self.number.wrapping_add(1),
                start: Some(now),
                ..Self::default()
            };
        }
    }

    /// Notes the arrival of a packet that was declared lost in that episode.
    pub(in crate::owners::recovery) const fn on_late(&mut self, number: u32) {
        if number == self.number {
            self.late += 1;
        }
    }

    /// Returns true if all losses were spurious: then the reduction was unjustified, and the
    /// episode ends.
    pub(in crate::owners::recovery) fn is_refuted(&mut self) -> bool {
        let refuted = self.lost > 0 && self.late >= self.lost && !self.marked;
        if refuted {
            *self = Self {
                number: self.number,
                ..Self::default()
            };
        }
        refuted
    }
}

#[cfg(test)]
mod tests;
