//! What became of datagrams whose sender wants to know.

use std::collections::VecDeque;

use slab::Slab;

use super::Sent;
use crate::wire::limits;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// The peer's transport received it, though it may have dropped it for lack of room.
    Acknowledged,
    /// Its packet was declared lost (RFC 9002 §6.1). It may have arrived anyway.
    Lost,
    /// It was not sent before its deadline.
    Expired,
    /// It was not sent: newer or more urgent ones took its place in the queue, the path became too small for it, or
    /// the server refused 0-RTT data.
    Dropped,
}

/// Datagrams whose fate is not known yet, and fates to report. Takes no memory beyond a pointer while nobody asks.
#[derive(Debug, Default)]
pub(super) struct Fates(Option<Box<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// Tags of packets in flight.
    packets: Slab<Vec<u64>>,
    known: VecDeque<(u64, Fate)>,
    /// Datagrams that wait, are in flight, or have a fate to report.
    open: usize,
}

impl Fates {
    /// Returns true if there may be another datagram whose fate is awaited.
    pub(super) fn has_room(&self) -> bool {
        self.open() < limits::DATAGRAM_FATES
    }

    /// Returns the number of datagrams whose fate was not reported.
    pub(super) fn open(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.open)
    }

    /// Counts a datagram that was queued.
    pub(super) fn on_queued(&mut self, tag: Option<u64>) {
        if tag.is_some() {
            self.0.get_or_insert_default().open += 1;
        }
    }

    /// Notes that a datagram is in a packet.
    pub(super) fn on_sent(&mut self, tag: Option<u64>, sent: &mut Sent) {
        let (Some(tag), Some(table)) = (tag, &mut self.0) else {
            return;
        };
        // One slot for each of at most `DATAGRAM_FATES` datagrams.
        let slot = match sent.slot.checked_sub(1) {
            Some(slot) => slot.into(),
            None => table.packets.insert(Vec::with_capacity(1)),
        };
        sent.slot = slot as u16 + 1;
        if let Some(tags) = table.packets.get_mut(slot) {
            tags.push(tag);
        }
    }

    /// Notes the fate of the datagrams of a packet.
    pub(super) fn on_packet(&mut self, sent: Sent, fate: Fate) {
        let (Some(slot), Some(table)) = (sent.slot.checked_sub(1), &mut self.0) else {
            return;
        };
        let tags = table.packets.try_remove(slot.into());
        let fates = tags.into_iter().flatten().map(|tag| (tag, fate));
        table.known.extend(fates);
    }

    /// Notes the fate of a datagram that was not sent.
    pub(super) fn on_unsent(&mut self, tag: Option<u64>, fate: Fate) {
        if let (Some(tag), Some(table)) = (tag, &mut self.0) {
            table.known.push_back((tag, fate));
        }
    }

    /// Notes that all packets in flight were lost, and that nothing more is heard of them.
    pub(super) fn on_all_lost(&mut self) {
        if let Some(table) = &mut self.0 {
            let tags = std::mem::take(&mut table.packets).into_iter();
            let fates = tags.flat_map(|(_, tags)| tags).map(|tag| (tag, Fate::Lost));
            table.known.extend(fates);
        }
    }

    /// Returns the next fate to report.
    pub(super) fn poll(&mut self) -> Option<(u64, Fate)> {
        let table = self.0.as_mut()?;
        let known = table.known.pop_front()?;
        table.open -= 1;
        if table.open == 0 {
            self.0 = None;
        }
        Some(known)
    }
}
