//! A table of stream halves by stream id, and the flags of each.

pub(super) mod deadlines;
pub(super) mod outcome;
pub(super) mod tally;

use hashbrown::HashMap;
use slab::Slab;

use super::StreamId;

/// Number of slots kept for reuse when the last stream goes.
const KEPT_SLOTS: usize = 16;

/// Table of one kind of stream halves by stream id.
///
/// Packets mostly concern the stream of the previous packet, so the slot of the last lookup is
/// remembered; other lookups cost one hash. A peer chooses which ids stay open, but only among
/// those below its limit of open streams, and does not know the seed of the hash, so it can make
/// only a few ids collide. Closed streams leave nothing behind. collide are few. Closed streams
/// leave nothing behind.
#[derive(Debug)]
pub(super) struct Halves<T> {
    slots: Slab<(StreamId, T)>,
    index: HashMap<StreamId, u32>,
    last: (StreamId, u32),
}

impl<T> Halves<T> {
    /// Returns the bytes of a table with this many entries. Both of its parts grow by doubling.
    pub(super) fn memory(entries: u64) -> u64 {
        let entries = entries.min(1 << 60);
        // A bucket of the index also has a byte of metadata, and one in eight stays empty.
        let slot = size_of::<(StreamId, T)>() as u64 + 8;
        let bucket = size_of::<(StreamId, u32)>() as u64 + 1;
        let slots = entries.next_power_of_two();
        let buckets = (entries * 8 / 7).next_power_of_two();
        slots
            .saturating_mul(slot)
            .saturating_add(buckets.saturating_mul(bucket))
    }

    /// Returns true if it has no entries.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn new() -> Self {
        Self {
            slots: Slab::new(),
            index: HashMap::new(),
            last: (StreamId(u64::MAX), 0),
        }
    }

    /// Adds a half that is not in the table.
    pub(super) fn insert(&mut self, id: StreamId, half: T) {
        let slot = self.slots.insert((id, half)) as u32;
        let before = self.index.insert(id, slot);
        debug_assert_eq!(before, None, "a stream is opened once");
        self.last = (id, slot);
    }

    pub(super) fn contains(&self, id: StreamId) -> bool {
        self.last.0 == id || self.index.contains_key(&id)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<&T> {
        let slot = if self.last.0 == id {
            self.last.1
        } else {
            *self.index.get(&id)?
        };
        self.slots.get(slot as usize).map(|(_, half)| half)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        if self.last.0 != id {
            self.last = (id, *self.index.get(&id)?);
        }
        self.slots
            .get_mut(self.last.1 as usize)
            .map(|(_, half)| half)
    }

    pub(super) fn remove(&mut self, id: StreamId) {
        let Some(slot) = self.index.remove(&id) else {
            return;
        };
        self.slots.try_remove(slot as usize);
        self.last.0 = StreamId(u64::MAX);
        if self.index.is_empty() && self.slots.capacity() > KEPT_SLOTS {
            self.index = HashMap::new();
            self.slots = Slab::new();
        }
    }

    /// Releases memory that its entries do not need.
    pub(super) fn release_memory(&mut self) {
        let index = &mut self.index;
        self.slots.compact(|(id, _), _, slot| {
            index.insert(*id, slot as u32);
            true
        });
        index.shrink_to_fit();
        self.last.0 = StreamId(u64::MAX);
    }

    /// Returns all halves in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|(_, (_, half))| half)
    }

    /// Returns all halves with their ids, in no particular order.
    pub(super) fn iter_with_ids(&self) -> impl Iterator<Item = (StreamId, &T)> {
        self.slots.iter().map(|(_, (id, half))| (*id, half))
    }

    /// Returns all halves with their ids, in no particular order, for changes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut T)> {
        self.slots.iter_mut().map(|(_, (id, half))| (*id, half))
    }
}

/// Flags of one half of a stream: the events it waits for and the queues it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::owners::streams) struct Marks(u8);

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::owners::streams) enum Mark {
    /// The application's call was blocked, and it must be told when to try again.
    Waiting,
    /// The application dropped its handle.
    Released,
    /// The application ended this half itself and needs no further events for it.
    Ended,
    /// A `RESET_STREAM` or `STOP_SENDING` is queued.
    Abort,
    /// A `MAX_STREAM_DATA` or `STREAM_DATA_BLOCKED` is queued.
    Credit,
    /// The application waits for any kind of end of the stream, or for the delivery of its data.
    Watching,
    /// Some of its data was received in 0-RTT packets.
    Early,
}

impl Marks {
    pub(in crate::owners::streams) const fn has(self, mark: Mark) -> bool {
        self.0 & 1 << mark as u8 != 0
    }

    /// Returns true if it has one of two marks.
    #[inline]
    pub(in crate::owners::streams) const fn has_either(self, one: Mark, other: Mark) -> bool {
        self.0 & (1 << one as u8 | 1 << other as u8) != 0
    }

    /// Sets the mark. Returns true if it was not set before.
    pub(in crate::owners::streams) const fn set(&mut self, mark: Mark) -> bool {
        let fresh = !self.has(mark);
        self.0 |= 1 << mark as u8;
        fresh
    }

    /// Clears the mark. Returns true if it was set before.
    pub(in crate::owners::streams) const fn clear(&mut self, mark: Mark) -> bool {
        let was = self.has(mark);
        self.0 &= !(1 << mark as u8);
        was
    }
}
