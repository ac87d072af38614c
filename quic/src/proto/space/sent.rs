use std::{collections::VecDeque, time::Instant};

use crate::proto::{
    delivery::Snapshot,
    ecn::Ecn,
    limits::{ACK_ONLY_PACKETS, SENT_PACKETS},
};

#[cfg(test)]
mod tests;

/// A sent packet that waits for its acknowledgement.
#[derive(Clone, Debug)]
pub struct SentPacket<R> {
    /// When it left.
    pub time_sent: Instant,
    /// Its bytes, headers and tag included.
    pub size: u16,
    /// Whether the peer must acknowledge it (RFC 9002 §2).
    pub ack_eliciting: bool,
    /// Whether it counts towards the bytes in flight: ack-eliciting, or with PADDING (RFC 9002 §2).
    pub in_flight: bool,
    /// The largest number of the ACK frame it carried.
    pub largest_acked: Option<u64>,
    /// How its datagram was marked.
    pub ecn: Option<Ecn>,
    /// What was known of the path's deliveries when it left; noted by loss detection.
    pub snapshot: Option<Snapshot>,
    /// What it carried.
    pub record: R,
}

impl<R> SentPacket<R> {
    /// Its share of the bytes in flight.
    #[inline]
    pub fn bytes_in_flight(&self) -> u64 {
        if self.in_flight { self.size.into() } else { 0 }
    }
}

#[derive(Debug)]
enum State<R> {
    /// Waits for its acknowledgement.
    Outstanding(SentPacket<R>),
    /// Left out on purpose; its acknowledgement would be a lie.
    Skipped,
    /// Acknowledged or lost.
    Settled,
}

#[derive(Debug)]
struct Entry<R> {
    pn: u64,
    state: State<R>,
}

/// The packets of one space that are neither acknowledged nor lost yet.
///
/// A queue in the order of packet numbers. Almost every number is in it, so that a packet's place is
/// its distance from the first; only ACK-only packets beyond [`ACK_ONLY_PACKETS`] are left out.
#[derive(Debug)]
pub struct SentPackets<R> {
    entries: VecDeque<Entry<R>>,
    /// One more than the largest number used.
    next: u64,
    outstanding: usize,
    ack_only: usize,
    skipped: usize,
    /// Most entries since the queue was empty last.
    peak: usize,
}

impl<R> Default for SentPackets<R> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            next: 0,
            outstanding: 0,
            ack_only: 0,
            skipped: 0,
            peak: 0,
        }
    }
}

impl<R> SentPackets<R> {
    /// Adds a packet. Packet numbers only grow.
    #[inline]
    pub fn insert(&mut self, pn: u64, packet: SentPacket<R>) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn + 1);
        if !packet.in_flight {
            if self.ack_only >= ACK_ONLY_PACKETS {
                return;
            }
            self.ack_only += 1;
        }
        self.outstanding += 1;
        self.push(pn, State::Outstanding(packet));
    }

    /// Notes a number that is left out, to catch a peer that acknowledges what it never got
    /// (RFC 9000 §21.4).
    pub fn skip(&mut self, pn: u64) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn + 1);
        self.skipped += 1;
        self.push(pn, State::Skipped);
    }

    /// Notes a number whose packet leaves no trace here.
    pub fn use_number(&mut self, pn: u64) {
        debug_assert!(pn >= self.next, "packet number {pn} was used before");
        self.next = self.next.max(pn + 1);
    }

    #[inline]
    fn push(&mut self, pn: u64, state: State<R>) {
        self.entries.push_back(Entry { pn, state });
        self.peak = self.peak.max(self.entries.len());
    }

    /// Whether the number was used or left out.
    pub const fn was_sent(&self, pn: u64) -> bool {
        pn < self.next
    }

    /// The number of the next packet.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Packets that wait for their acknowledgement.
    pub const fn len(&self) -> usize {
        self.outstanding
    }

    /// Whether no packet waits.
    pub const fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    /// Whether no more packets should be sent until some are acknowledged.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= SENT_PACKETS
    }

    /// The packets that wait, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &SentPacket<R>)> {
        self.entries.iter().filter_map(|entry| match &entry.state {
            State::Outstanding(packet) => Some((entry.pn, packet)),
            State::Skipped | State::Settled => None,
        })
    }

    /// Whether numbers were left out that an acknowledgement could still name.
    pub const fn remembers_skipped(&self) -> bool {
        self.skipped > 0
    }

    /// Whether a number in `first..=last` was left out, as far as is remembered.
    pub fn has_skipped(&self, first: u64, last: u64) -> bool {
        self.skipped > 0
            && self
                .entries
                .range(self.position(first)..)
                .take_while(|entry| entry.pn <= last)
                .any(|entry| matches!(entry.state, State::Skipped))
    }

    /// Takes the packets of `first..=last`, oldest first. The work is bound by what is waiting, not
    /// by the range. Call [`SentPackets::compact`] afterwards.
    #[inline]
    pub fn take_range(&mut self, first: u64, last: u64, mut taken: impl FnMut(u64, SentPacket<R>)) {
        let start = self.position(first);
        for entry in self.entries.range_mut(start..) {
            if entry.pn > last {
                break;
            }
            if let Some(packet) = entry.settle() {
                self.outstanding -= 1;
                self.ack_only -= usize::from(!packet.in_flight);
                taken(entry.pn, packet);
            }
        }
    }

    /// Looks at the packets up to `last`, oldest first, and takes those for which `is_lost` holds.
    /// Call [`SentPackets::compact`] afterwards.
    pub fn take_lost(
        &mut self,
        last: u64,
        mut is_lost: impl FnMut(u64, &SentPacket<R>) -> bool,
        mut taken: impl FnMut(u64, SentPacket<R>),
    ) {
        for entry in &mut self.entries {
            if entry.pn > last {
                break;
            }
            let State::Outstanding(packet) = &entry.state else {
                continue;
            };
            if is_lost(entry.pn, packet)
                && let Some(packet) = entry.settle()
            {
                self.outstanding -= 1;
                self.ack_only -= usize::from(!packet.in_flight);
                taken(entry.pn, packet);
            }
        }
    }

    /// Takes every packet, oldest first. Numbers are not used again.
    pub fn take_all(&mut self, mut taken: impl FnMut(u64, SentPacket<R>)) {
        let entries = std::mem::take(&mut self.entries);
        *self = Self {
            next: self.next,
            ..Self::default()
        };
        for mut entry in entries {
            if let Some(packet) = entry.settle() {
                taken(entry.pn, packet);
            }
        }
    }

    /// Drops settled entries from the front, and memory that the last burst needed but this one
    /// does not.
    #[inline]
    pub fn compact(&mut self) {
        loop {
            match self.entries.front().map(|entry| &entry.state) {
                Some(State::Settled) => {}
                // A skipped number stays as long as the packet behind it: until then an
                // acknowledgement of it is caught.
                Some(State::Skipped)
                    if self
                        .entries
                        .get(1)
                        .is_some_and(|next| !matches!(next.state, State::Outstanding(_))) =>
                {
                    self.skipped -= 1;
                }
                _ => break,
            }
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            if self.entries.capacity() > 4 * self.peak.max(16) {
                self.entries.shrink_to(2 * self.peak);
            }
            self.peak = 0;
        }
    }

    /// Index of the first entry whose number is at least `pn`.
    #[inline]
    fn position(&self, pn: u64) -> usize {
        let Some(front) = self.entries.front() else {
            return 0;
        };
        if pn <= front.pn {
            return 0;
        }
        // Numbers are distinct and sorted: the entry is never further than its distance.
        let distance = usize::try_from(pn - front.pn).unwrap_or(usize::MAX);
        match self.entries.get(distance) {
            Some(entry) if entry.pn == pn => distance,
            _ => self.entries.partition_point(|entry| entry.pn < pn),
        }
    }
}

impl<R> Entry<R> {
    #[inline]
    fn settle(&mut self) -> Option<SentPacket<R>> {
        if !matches!(self.state, State::Outstanding(_)) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Settled) {
            State::Outstanding(packet) => Some(packet),
            State::Skipped | State::Settled => None,
        }
    }
}
