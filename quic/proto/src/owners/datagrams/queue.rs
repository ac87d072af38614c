//! A queue of datagrams.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;

use crate::wire::limits;

/// Datagrams in order, and the bytes they count for.
#[derive(Debug, Default)]
pub(super) struct Queue {
    datagrams: VecDeque<Bytes>,
    held: usize,
    /// Number of datagrams that were taken off the front.
    taken: u64,
    /// Deadlines, while a datagram has one.
    deadlines: Option<Box<Deadlines>>,
}

/// Deadlines of datagrams that have one, in the order of the datagrams.
#[derive(Debug)]
struct Deadlines {
    all: VecDeque<Deadline>,
    /// No deadline is earlier.
    earliest: Instant,
}

/// Deadline of a waiting datagram.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// Number of the datagram, from the first one of the queue.
    number: u64,
    at: Instant,
}

/// Returns what a datagram counts for.
pub(super) const fn cost(len: usize, deadline: Option<Instant>) -> usize {
    let deadline = match deadline {
        Some(_) => limits::DATAGRAM_DEADLINE,
        None => 0,
    };
    len.saturating_add(limits::DATAGRAM_OVERHEAD + deadline)
}

impl Queue {
    /// Returns the bytes that the datagrams count for.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Returns a time before which no deadline comes; `None` if there are none.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.deadlines.as_ref().map(|deadlines| deadlines.earliest)
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

    /// Drops the oldest datagrams until another fits, and returns their number.
    pub(super) fn make_room(&mut self, cost: usize, bound: usize) -> u64 {
        let mut dropped = 0;
        while !self.takes(cost, bound) && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }

    pub(super) fn push(&mut self, data: Bytes, deadline: Option<Instant>) {
        self.held = self.held.saturating_add(cost(data.len(), deadline));
        if let Some(at) = deadline {
            let number = self.taken.saturating_add(self.len());
            let first = || {
                let all = VecDeque::new();
                Box::new(Deadlines { all, earliest: at })
            };
            let deadlines = self.deadlines.get_or_insert_with(first);
            deadlines.all.push_back(Deadline { number, at });
            deadlines.earliest = deadlines.earliest.min(at);
        }
        self.datagrams.push_back(data);
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        self.pop_with_deadline().map(|(data, _)| data)
    }

    fn pop_with_deadline(&mut self) -> Option<(Bytes, Option<Instant>)> {
        let data = self.datagrams.pop_front()?;
        let mut deadline = None;
        if let Some(deadlines) = &mut self.deadlines {
            let own = deadlines.all.front();
            deadline = own.filter(|own| own.number == self.taken).map(|own| own.at);
            if deadline.is_some() {
                deadlines.all.pop_front();
            }
            if deadlines.all.is_empty() {
                self.deadlines = None;
            }
        }
        self.taken = self.taken.saturating_add(1);
        self.held = self.held.saturating_sub(cost(data.len(), deadline));
        Some((data, deadline))
    }

    /// Drops the datagrams whose deadline has come, and returns their number.
    pub(super) fn drop_expired(&mut self, now: Instant) -> u64 {
        let Some(deadlines) = &mut self.deadlines else {
            return 0;
        };
        let all = deadlines.all.iter().map(|deadline| deadline.at);
        deadlines.earliest = all.min().unwrap_or(deadlines.earliest);
        if deadlines.earliest > now {
            return 0;
        }
        let mut all = std::mem::take(self);
        let mut dropped = 0;
        while let Some((data, deadline)) = all.pop_with_deadline() {
            if deadline.is_some_and(|at| at <= now) {
                dropped += 1;
            } else {
                self.push(data, deadline);
            }
        }
        dropped
    }

    /// Drops the datagrams of more than `most` bytes, and returns their number.
    pub(super) fn drop_larger(&mut self, most: usize) -> u64 {
        let mut dropped = 0;
        while self.front().is_some_and(|data| data.len() > most) {
            self.pop();
            dropped += 1;
        }
        dropped
    }
}
