//! A queue of future events in virtual time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
    time::Duration,
};

/// A queue of future events, earliest first; events at the same time keep the order in which they
/// were added.
///
/// Most events are added to a lane in chronological order, and need no sorting. An event that is
/// earlier than the end of its lane goes to a heap.
#[derive(Debug)]
pub(crate) struct Timeline<T> {
    lanes: Vec<VecDeque<Entry<T>>>,
    early: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
    /// Next event and its place.
    next: Option<(Key, Place)>,
}

type Key = (Duration, u64);

#[derive(Debug)]
struct Entry<T> {
    at: Duration,
    order: u64,
    item: T,
}

impl<T> Entry<T> {
    const fn key(&self) -> Key {
        (self.at, self.order)
    }
}

/// Place of an event.
#[derive(Clone, Copy, Debug)]
enum Place {
    Lane(usize),
    Early,
}

impl<T> Timeline<T> {
    pub(crate) const fn new() -> Self {
        Self {
            lanes: Vec::new(),
            early: BinaryHeap::new(),
            added: 0,
            next: None,
        }
    }

    /// Adds an event to a lane, which is any small number.
    pub(crate) fn push(&mut self, lane: usize, at: Duration, item: T) {
        let entry = Entry {
            at,
            order: self.added,
            item,
        };
        self.added += 1;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        let key = entry.key();
        let place = match self.lanes.get_mut(lane) {
            Some(queue) if queue.back().is_none_or(|last| last.at <= at) => {
                queue.push_back(entry);
                Place::Lane(lane)
            }
            _ => {
                self.early.push(Reverse(entry));
                Place::Early
            }
        };
        if self.next.is_none_or(|(next, _)| key < next) {
            self.next = Some((key, place));
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.next.map(|((at, _), _)| at)
    }

    /// Returns the next event if it is due by `now`.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<(Duration, T)> {
        let (_, place) = self.next.filter(|&((at, _), _)| at <= now)?;
        let entry = match place {
            Place::Lane(lane) => self.lanes.get_mut(lane)?.pop_front()?,
            Place::Early => self.early.pop()?.0,
        };
        self.next = self.find();
        Some((entry.at, entry.item))
    }

    pub(crate) fn len(&self) -> usize {
        self.early.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    fn find(&self) -> Option<(Key, Place)> {
        let mut next = self.early.peek().map(|entry| (entry.0.key(), Place::Early));
        for (lane, queue) in self.lanes.iter().enumerate() {
            if let Some(front) = queue.front() {
                if next.is_none_or(|(key, _)| front.key() < key) {
                    next = Some((front.key(), Place::Lane(lane)));
                }
            }
        }
        next
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
