//! A queue of datagrams.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;

use super::DatagramOptions;
use crate::wire::limits;

/// Datagrams in order, and the bytes they count for.
#[derive(Debug, Default)]
pub(super) struct Queue {
    datagrams: VecDeque<Bytes>,
    held: usize,
    /// What datagrams have that were sent with options. Few applications use them.
    marked: Option<Box<Marked>>,
}

/// Datagrams with options, in the order of the queue.
#[derive(Debug, Default)]
struct Marked {
    marks: VecDeque<Mark>,
    /// Number of datagrams that were taken off the front.
    taken: u64,
    /// No deadline is earlier. `None` if there are none.
    earliest: Option<Instant>,
    /// Number of datagrams of each urgency apart from the default.
    counts: [usize; 8],
}

/// Options of a waiting datagram.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Number of the datagram, from the first one of the queue.
    number: u64,
    options: DatagramOptions,
}

/// A datagram that was taken out of the queue.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) data: Bytes,
    pub(super) options: DatagramOptions,
}

/// Returns what a datagram counts for.
pub(super) const fn cost(len: usize, options: &DatagramOptions) -> usize {
    let options = if options.is_plain() {
        0
    } else {
        limits::DATAGRAM_OPTIONS
    };
    len.saturating_add(limits::DATAGRAM_OVERHEAD + options)
}

impl Queue {
    /// Returns the bytes that the datagrams count for.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Returns a time before which no deadline comes; `None` if there are none.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.marked.as_ref()?.earliest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.datagrams.len() as u64
    }

    pub(super) fn front(&self) -> Option<&Bytes> {
        self.datagrams.front()
    }

    /// Returns true if another datagram that counts for this much stays within `bound`. A single one
    /// always does.
    pub(super) fn takes(&self, cost: usize, bound: usize) -> bool {
        self.is_empty() || self.held.saturating_add(cost) <= bound
    }

    /// Returns true if another datagram that counts for this much can stay within `bound`, once all have made room for
    /// it that are not more urgent.
    pub(super) fn can_take(&self, cost: usize, bound: usize, urgency: u8) -> bool {
        let kept = self.place(urgency.checked_sub(1));
        let mut excess = self.held.saturating_add(cost).saturating_sub(bound);
        for (at, data) in self.datagrams.iter().enumerate().skip(kept) {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(self::cost(data.len(), &self.options(at)));
        }
        kept == 0 || excess == 0
    }

    /// Takes out the datagram to drop first, to make room for another: the oldest of the least urgent.
    pub(super) fn take_least(&mut self) -> Option<Taken> {
        let last = self.options(self.datagrams.len().checked_sub(1)?).urgency;
        self.remove(self.place(last.checked_sub(1)))
    }

    /// Returns the position behind all datagrams that are as urgent as this, or more; the front for `None`.
    fn place(&self, urgency: Option<u8>) -> usize {
        let Some(urgency) = urgency else { return 0 };
        let counts = self.marked.as_ref().map_or([0; 8], |marked| marked.counts);
        let more = counts.iter().take(usize::from(urgency) + 1).sum();
        if urgency < DatagramOptions::URGENCY {
            return more;
        }
        let ranked: usize = counts.iter().sum();
        self.datagrams.len() - ranked + more
    }

    fn options(&self, at: usize) -> DatagramOptions {
        let options = self.marked.as_ref().and_then(|marked| marked.at(at));
        options.copied().unwrap_or_default()
    }

    /// Adds a datagram behind those that are as urgent, or more.
    pub(super) fn push(&mut self, data: Bytes, options: DatagramOptions) {
        self.held = self.held.saturating_add(cost(data.len(), &options));
        let at = if self.marked.is_none() && options.is_plain() {
            self.datagrams.len()
        } else {
            self.place(Some(options.urgency))
        };
        if let Some(marked) = &mut self.marked {
            marked.shift(at);
        }
        self.datagrams.insert(at, data);
        if !options.is_plain() {
            self.marked.get_or_insert_default().insert(at, options);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Taken> {
        self.remove(0)
    }

    fn remove(&mut self, at: usize) -> Option<Taken> {
        let data = self.datagrams.remove(at)?;
        let options = self.marked.as_mut().map(|marked| marked.remove(at));
        let options = options.unwrap_or_default();
        self.marked.take_if(|marked| marked.marks.is_empty());
        self.held = self.held.saturating_sub(cost(data.len(), &options));
        Some(Taken { data, options })
    }

    /// Takes out the datagrams whose deadline has come, in the order of the queue. Its cost is linear in the length of
    /// the queue, however many there are.
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<Taken> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !is_due(self.earliest()) {
            return Vec::new();
        }
        if let Some(marked) = &mut self.marked {
            marked.measure();
        }
        if !is_due(self.earliest()) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        let before = std::mem::take(self);
        let marked = before.marked.map(|marked| *marked).unwrap_or_default();
        let mut marks = marked.marks.into_iter().peekable();
        for (number, data) in (marked.taken..).zip(before.datagrams) {
            let mark = marks.next_if(|mark| mark.number == number);
            let options = mark.map_or_else(DatagramOptions::default, |mark| mark.options);
            if is_due(options.expires) {
                expired.push(Taken { data, options });
            } else {
                self.push(data, options);
            }
        }
        expired
    }

    /// Returns true if the queue has no memory apart from its own size.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        self.marked.is_none() && self.datagrams.capacity() == 0
    }

    /// Releases memory that is not used now.
    pub(super) fn release_memory(&mut self) {
        self.datagrams.shrink_to_fit();
        if let Some(marked) = &mut self.marked {
            marked.marks.shrink_to_fit();
        }
    }

    /// Takes the first datagram if it has more than `most` bytes.
    pub(super) fn take_larger(&mut self, most: usize) -> Option<Taken> {
        self.front().filter(|data| data.len() > most)?;
        self.pop()
    }
}

impl Marked {
    fn number(&self, at: usize) -> u64 {
        self.taken.saturating_add(at as u64)
    }

    /// Returns the options of the datagram at a position.
    fn at(&self, at: usize) -> Option<&DatagramOptions> {
        let number = self.number(at);
        let found = self.marks.binary_search_by_key(&number, |mark| mark.number);
        Some(&self.marks.get(found.ok()?)?.options)
    }

    /// Makes room for a datagram at a position.
    fn shift(&mut self, at: usize) {
        let number = self.number(at);
        let later = self.marks.iter_mut().rev();
        for mark in later.take_while(|mark| mark.number >= number) {
            mark.number += 1;
        }
    }

    fn insert(&mut self, at: usize, options: DatagramOptions) {
        let number = self.number(at);
        let index = self.marks.partition_point(|mark| mark.number < number);
        self.marks.insert(index, Mark { number, options });
        if let Some(count) = self.count_mut(options.urgency) {
            *count += 1;
        }
        self.earliest = [self.earliest, options.expires].into_iter().flatten().min();
    }

    /// Takes the options of the datagram at a position, which is removed.
    fn remove(&mut self, at: usize) -> DatagramOptions {
        let number = self.number(at);
        let index = self.marks.partition_point(|mark| mark.number < number);
        let own = self
            .marks
            .get(index)
            .is_some_and(|mark| mark.number == number);
        let removed = if own { self.marks.remove(index) } else { None };
        let options = removed.map_or_else(DatagramOptions::default, |mark| mark.options);
        if let Some(count) = self.count_mut(options.urgency) {
            *count -= 1;
        }
        if at == 0 {
            self.taken += 1;
        } else {
            for mark in self.marks.range_mut(index..) {
                mark.number -= 1;
            }
        }
        options
    }

    /// Returns the number of datagrams of an urgency; `None` for the default.
    fn count_mut(&mut self, urgency: u8) -> Option<&mut usize> {
        let is_ranked = urgency != DatagramOptions::URGENCY;
        self.counts
            .get_mut(usize::from(urgency))
            .filter(|_| is_ranked)
    }

    /// Looks for the earliest deadline.
    fn measure(&mut self) {
        let deadlines = self.marks.iter().filter_map(|mark| mark.options.expires);
        self.earliest = deadlines.min();
    }
}
