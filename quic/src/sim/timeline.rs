use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
    time::Duration,
};

/// What is to happen, earliest first, and in the order it was added where the time is the same.
///
/// Most things are added to a lane in the order of their times: then nothing is sorted. What comes
/// before the end of its lane goes to a heap.
#[derive(Debug)]
pub(super) struct Timeline<T> {
    lanes: Vec<VecDeque<Entry<T>>>,
    early: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Duration,
    order: u64,
    item: T,
}

impl<T> Entry<T> {
    const fn key(&self) -> (Duration, u64) {
        (self.at, self.order)
    }
}

/// Where the next thing is.
#[derive(Clone, Copy)]
enum Place {
    Lane(usize),
    Early,
}

impl<T> Timeline<T> {
    pub(super) const fn new() -> Self {
        Self {
            lanes: Vec::new(),
            early: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Adds something that is to happen in a lane, any small number.
    pub(super) fn push(&mut self, lane: usize, at: Duration, item: T) {
        let entry = Entry {
            at,
            order: self.added,
            item,
        };
        self.added += 1;
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        match self.lanes.get_mut(lane) {
            Some(lane) if lane.back().is_none_or(|last| last.at <= at) => lane.push_back(entry),
            _ => self.early.push(Reverse(entry)),
        }
    }

    /// When the next thing happens.
    pub(super) fn next(&self) -> Option<Duration> {
        self.find().map(|(at, _)| at)
    }

    /// Takes what happens next, if that is by `now`.
    pub(super) fn pop(&mut self, now: Duration) -> Option<(Duration, T)> {
        let (_, place) = self.find().filter(|&(at, _)| at <= now)?;
        let entry = match place {
            Place::Lane(lane) => self.lanes.get_mut(lane)?.pop_front()?,
            Place::Early => self.early.pop()?.0,
        };
        Some((entry.at, entry.item))
    }

    pub(super) fn len(&self) -> usize {
        self.early.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    fn find(&self) -> Option<(Duration, Place)> {
        let lanes = self.lanes.iter().enumerate();
        let fronts =
            lanes.filter_map(|(lane, queue)| Some((queue.front()?.key(), Place::Lane(lane))));
        let early = self.early.peek().map(|entry| (entry.0.key(), Place::Early));
        fronts
            .chain(early)
            .min_by_key(|&(key, _)| key)
            .map(|((at, _), place)| (at, place))
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
