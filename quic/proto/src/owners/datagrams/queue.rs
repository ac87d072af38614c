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
    /// Number of datagrams with another urgency than the default.
    ranked: usize,
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

    /// Takes out the datagram to drop first, to make room for another: the oldest of the least urgent. `None` if all
    /// are more urgent than the other one.
    pub(super) fn take_least(&mut self, urgency: u8) -> Option<Taken> {
        let marked = self.marked.as_ref().filter(|marked| marked.ranked > 0);
        if marked.is_none() {
            return if urgency > DatagramOptions::URGENCY {
                None
            } else {
                self.pop()
            };
        }
        let last = self.urgency(self.datagrams.len().checked_sub(1)?);
        if last < urgency {
            return None;
        }
        self.remove(self.place(last.checked_sub(1)))
    }

    /// Returns the position behind all datagrams that are as urgent as this, or more; the front for `None`.
    fn place(&self, urgency: Option<u8>) -> usize {
        let before = |&at: &usize| urgency.is_some_and(|urgency| self.urgency(at) <= urgency);
        (0..self.datagrams.len()).take_while(before).count()
    }

    fn urgency(&self, at: usize) -> u8 {
        let options = self.marked.as_ref().and_then(|marked| marked.at(at));
        options.map_or(DatagramOptions::URGENCY, |options| options.urgency)
    }

    /// Adds a datagram behind those that are as urgent, or more.
    pub(super) fn push(&mut self, data: Bytes, options: DatagramOptions) {
        self.held = self.held.saturating_add(cost(data.len(), &options));
        let ranked = self.marked.as_ref().is_some_and(|marked| marked.ranked > 0);
        let is_ranked = options.urgency != DatagramOptions::URGENCY;
        let at = if ranked || is_ranked {
            self.place(Some(options.urgency))
        } else {
            self.datagrams.len()
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
        self.held = self.held.saturating_sub(cost(data.len(), &options));
        Some(Taken { data, options })
    }

    /// Takes out a datagram whose deadline has come.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<Taken> {
        let marked = self
            .marked
            .as_mut()
            .filter(|marked| marked.earliest.is_some_and(|at| at <= now))?;
        let is_due = |mark: &&Mark| mark.options.expires.is_some_and(|at| at <= now);
        let due = marked.marks.iter().find(is_due).map(|mark| mark.number);
        let Some(number) = due else {
            marked.measure();
            return None;
        };
        let at = number - marked.taken;
        self.remove(usize::try_from(at).ok()?)
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
        self.ranked += usize::from(options.urgency != DatagramOptions::URGENCY);
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
        self.ranked -= usize::from(options.urgency != DatagramOptions::URGENCY);
        if at == 0 {
            self.taken += 1;
        } else {
            for mark in self.marks.range_mut(index..) {
                mark.number -= 1;
            }
        }
        if self.marks.is_empty() {
            self.earliest = None;
        }
        options
    }

    /// Looks for the earliest deadline.
    fn measure(&mut self) {
        let deadlines = self.marks.iter().filter_map(|mark| mark.options.expires);
        self.earliest = deadlines.min();
    }
}
