//! Sent packets waiting for their acknowledgement, and their fates.

pub(super) mod late;
pub(super) mod left_paths;
pub(super) mod skipped;

use std::{collections::VecDeque, time::Instant};

use crate::{
    owners::congestion::delivery::Snapshot,
    wire::{
        limits::{ACK_ONLY_PACKETS, SENT_PACKETS, SENT_RECORDS},
        packet::PacketNumber,
        udp::Ecn,
    },
};

#[cfg(test)]
mod tests;

/// Number of packets beyond a full table for which there is room: probes, and packets that only
/// acknowledge.
const BEYOND_FULL: usize = 2 * ACK_ONLY_PACKETS;

/// A sent packet waiting for its acknowledgement.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Debug)]
pub struct SentPacket<R> {
    /// Time at which it was sent.
    pub time_sent: Instant,
    /// Bytes of the packet, headers and tag included.
    pub size: u16,
    /// True if the peer must acknowledge it (RFC 9002 §2).
    pub ack_eliciting: bool,
    /// True if it counts towards the bytes in flight: ack-eliciting, or with PADDING (RFC 9002 §2).
    pub in_flight: bool,
    /// The largest number of the ACK frame it carried.
    pub largest_acked: Option<PacketNumber>,
    /// ECN mark of its datagram.
    pub ecn: Option<Ecn>,
    /// Deliveries of the path when it was sent; set by loss detection for packets in flight while
    /// their path is in use.
    pub snapshot: Option<Snapshot>,
    /// Bytes of memory that the record holds in addition to its own size.
    pub held: Held,
    /// Record of the packet's content.
    pub record: R,
}

/// Bytes of memory, rounded up to units of 32: two bytes in every record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held(u16);

impl Held {
    /// Bytes of a unit.
    const UNIT: usize = 32;

    /// Converts a number of bytes. More than 2 MiB, which no packet needs, count as 2 MiB.
    #[inline]
    pub fn of(bytes: usize) -> Self {
        Self(u16::try_from(bytes.div_ceil(Self::UNIT)).unwrap_or(u16::MAX))
    }

    /// Returns the number of bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize * Self::UNIT
    }
}

impl<R> SentPacket<R> {
    /// Returns the packet's share of the bytes in flight on the path in use.
    #[inline]
    pub fn bytes_in_flight(&self) -> u64 {
        self.snapshot.map_or(0, |_| self.size.into())
    }

    /// Returns the packet's share of the bytes in flight on paths that were left.
    #[inline]
    pub fn bytes_on_left_paths(&self) -> u64 {
        if self.in_flight && self.snapshot.is_none() {
            self.size.into()
        } else {
            0
        }
    }
}

/// Bytes in flight.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct InFlight {
    /// Bytes on the path in use.
    pub on_active_path: u64,
    /// Bytes on paths that were left.
    pub on_left_paths: u64,
}

impl InFlight {
    /// Adds a packet.
    #[inline]
    pub fn add<R>(&mut self, packet: &SentPacket<R>) {
        self.on_active_path += packet.bytes_in_flight();
        self.on_left_paths += packet.bytes_on_left_paths();
    }
}

#[derive(Debug)]
enum State<R> {
    /// The packet waits for its acknowledgement.
    Outstanding(SentPacket<R>),
    /// Acknowledged, lost, or never sent. This many entries, starting with this one, are settled
    /// and can be skipped at once.
    Settled(u32),
}

#[derive(Debug)]
struct Entry<R> {
    pn: PacketNumber,
    state: State<R>,
}

/// Packets of one space that are neither acknowledged nor lost.
///
/// A queue in the order of packet numbers. It contains almost every number, so a packet's position
/// is its distance from the first; only ACK-only packets beyond [`ACK_ONLY_PACKETS`] are left out.
#[derive(Debug)]
pub struct SentPackets<R> {
    entries: VecDeque<Entry<R>>,
    /// One more than the largest number used.
    next: PacketNumber,
    outstanding: usize,
    ack_only: usize,
    /// Bytes that the records of waiting packets hold in addition to their own size.
    held: usize,
    /// Largest number of entries since the queue was last empty.
    peak: usize,
}

impl<R> Default for SentPackets<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> SentPackets<R> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            next: PacketNumber::ZERO,
            outstanding: 0,
            ack_only: 0,
            held: 0,
            peak: 0,
        }
    }

    /// Adds a packet. Packet numbers only grow.
    #[inline]
    pub fn insert(&mut self, pn: PacketNumber, packet: SentPacket<R>) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn.next());
        if !packet.in_flight {
            if self.ack_only >= ACK_ONLY_PACKETS {
                return;
            }
            self.ack_only += 1;
        }
        self.outstanding += 1;
        self.held += packet.held.bytes();
        self.push(pn, State::Outstanding(packet));
    }

    /// Notes a number that is skipped (RFC 9000 §21.4).
    pub fn skip(&mut self, pn: PacketNumber) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn.next());
        // The entry keeps its place, so that later packets can be found by their distance.
        if !self.entries.is_empty() {
            self.push(pn, State::Settled(1));
        }
    }

    /// Notes a number whose packet is not recorded.
    pub fn use_number(&mut self, pn: PacketNumber) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn.next());
    }

    #[inline]
    fn push(&mut self, pn: PacketNumber, state: State<R>) {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        self.entries.push_back(Entry { pn, state });
        self.peak = self.peak.max(self.entries.len());
    }

    /// Doubles the capacity of the queue, but not beyond what a full queue needs.
    #[cold]
    fn grow(&mut self) {
        let len = self.entries.len();
        let most = SENT_PACKETS + BEYOND_FULL;
        let wanted = (2 * len).max(4);
        let capacity = if len < most {
            wanted.min(most)
        } else {
            len + BEYOND_FULL
        };
        self.entries.reserve_exact(capacity - len);
    }

    /// Returns true if the number was used or skipped.
    pub fn was_sent(&self, pn: PacketNumber) -> bool {
        pn < self.next
    }

    /// Returns the number of the next packet.
    pub const fn next_number(&self) -> PacketNumber {
        self.next
    }

    /// Returns the number of waiting packets.
    pub const fn len(&self) -> usize {
        self.outstanding
    }

    /// Returns true if no packet is waiting.
    pub const fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    /// Returns the bytes of memory that the records take.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry<R>>() + self.held
    }

    /// Returns the largest number of bytes of memory that the records take.
    pub const fn most_memory() -> usize {
        (SENT_PACKETS + BEYOND_FULL) * size_of::<Entry<R>>() + SENT_RECORDS
    }

    /// Returns the number of recorded packets, including settled ones between them.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no more packets should be sent until some are acknowledged.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= SENT_PACKETS || self.held >= SENT_RECORDS
    }

    /// Returns the waiting packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (PacketNumber, &SentPacket<R>)> {
        self.entries.iter().filter_map(|entry| match &entry.state {
            State::Outstanding(packet) => Some((entry.pn, packet)),
            State::Settled(_) => None,
        })
    }

    /// Applies a change to the waiting packets, oldest first.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut SentPacket<R>)) {
        for entry in &mut self.entries {
            if let State::Outstanding(packet) = &mut entry.state {
                change(packet);
            }
        }
    }

    /// Takes the packets of `first..=last`, oldest first. The work is bounded by the number of
    /// waiting packets, not by the range or its repetitions. Call [`SentPackets::compact`]
    /// afterwards.
    #[inline]
    pub fn take_range(
        &mut self,
        first: PacketNumber,
        last: PacketNumber,
        mut taken: impl FnMut(PacketNumber, SentPacket<R>),
    ) {
        let start = self.position(first);
        let mut at = start;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.pn > last {
                break;
            }
            if let State::Settled(run) = entry.state {
                at += run as usize;
                continue;
            }
            if let Some(packet) = entry.take_packet() {
                self.outstanding -= 1;
                self.held -= packet.held.bytes();
                self.ack_only -= usize::from(!packet.in_flight);
                taken(entry.pn, packet);
            }
            at += 1;
        }
        // ACK frames repeat ranges, so the next frame can skip this range at once.
        let run = at.saturating_sub(start).max(1);
        if let Some(entry) = self.entries.get_mut(start) {
            if let State::Settled(known) = &mut entry.state {
                *known = (*known).max(u32::try_from(run).unwrap_or(u32::MAX));
            }
        }
    }

    /// Takes the packets up to `last`, oldest first, while `is_lost` holds: packets sent after one
    /// that is not lost are not lost either. Call [`SentPackets::compact`] afterwards.
    pub fn take_lost(
        &mut self,
        last: PacketNumber,
        mut is_lost: impl FnMut(PacketNumber, &SentPacket<R>) -> bool,
        mut taken: impl FnMut(PacketNumber, SentPacket<R>),
    ) {
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            if entry.pn > last {
                break;
            }
            let packet = match &entry.state {
                State::Outstanding(packet) => packet,
                State::Settled(run) => {
                    at += *run as usize;
                    continue;
                }
            };
            if !is_lost(entry.pn, packet) {
                break;
            }
            if let Some(packet) = entry.take_packet() {
                self.outstanding -= 1;
                self.held -= packet.held.bytes();
                self.ack_only -= usize::from(!packet.in_flight);
                taken(entry.pn, packet);
            }
            at += 1;
        }
    }

    /// Takes every packet, oldest first. Numbers are not reused.
    pub fn take_all(&mut self, mut taken: impl FnMut(PacketNumber, SentPacket<R>)) {
        let entries = std::mem::take(&mut self.entries);
        *self = Self {
            next: self.next,
            ..Self::default()
        };
        for mut entry in entries {
            if let Some(packet) = entry.take_packet() {
                taken(entry.pn, packet);
            }
        }
    }

    /// Releases memory that is not used now.
    pub fn release_memory(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Drops settled entries from the front, and memory that was needed only by an earlier burst.
    #[inline]
    pub fn compact(&mut self) {
        while self
            .entries
            .front()
            .is_some_and(|entry| matches!(entry.state, State::Settled(_)))
        {
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            if self.entries.capacity() > 4 * self.peak.max(16) {
                self.entries.shrink_to(2 * self.peak);
            }
            self.peak = 0;
        }
    }

    /// Returns the index of the first entry whose number is at least `pn`.
    #[inline]
    fn position(&self, pn: PacketNumber) -> usize {
        let Some(front) = self.entries.front() else {
            return 0;
        };
        if pn <= front.pn {
            return 0;
        }
        // Numbers are distinct and sorted: the entry's index is never larger than its distance.
        let distance = usize::try_from(pn.distance_from(front.pn)).unwrap_or(usize::MAX);
        match self.entries.get(distance) {
            Some(entry) if entry.pn == pn => distance,
            _ => self.entries.partition_point(|entry| entry.pn < pn),
        }
    }
}

impl<R> Entry<R> {
    #[inline]
    fn take_packet(&mut self) -> Option<SentPacket<R>> {
        if !matches!(self.state, State::Outstanding(_)) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Settled(1)) {
            State::Outstanding(packet) => Some(packet),
            State::Settled(_) => None,
        }
    }
}

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
