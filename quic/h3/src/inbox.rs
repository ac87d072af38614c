//! HTTP Datagrams that wait.

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes that a waiting datagram counts as in addition to its payload: its place in the queue, which may have spare
/// places, and the allocator's overhead.
pub const DATAGRAM_OVERHEAD: usize = 96;

/// A queue of datagrams, each under a key: the stream of its request, or `()` in the queue of one request. The oldest
/// are dropped when their total cost is too high.
#[derive(Debug)]
pub struct Inbox<K> {
    entries: VecDeque<(K, Bytes)>,
    /// Bytes of the payloads and [`DATAGRAM_OVERHEAD`] for each.
    cost: usize,
    most: usize,
}

impl<K: Copy + PartialEq> Inbox<K> {
    /// Returns an empty queue for datagrams that cost at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            cost: 0,
            most,
        }
    }

    /// Adds a datagram, and returns the number of datagrams that were dropped to make room. One always fits.
    pub fn push(&mut self, key: K, data: Bytes) -> usize {
        let cost = cost(&data);
        let mut dropped = 0;
        while self.cost + cost > self.most && self.pop().is_some() {
            dropped += 1;
        }
        self.cost += cost;
        self.entries.push_back((key, data));
        dropped
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Bytes> {
        let (_, data) = self.entries.pop_front()?;
        self.cost -= cost(&data);
        Some(data)
    }

    /// Takes all under a key.
    pub fn take(&mut self, key: K) -> Vec<Bytes> {
        let mut taken = Vec::new();
        self.entries.retain_mut(|(other, data)| {
            let stays = *other != key;
            if !stays {
                taken.push(std::mem::take(data));
            }
            stays
        });
        self.cost -= taken.iter().map(cost).sum::<usize>();
        taken
    }

    /// Returns the number of datagrams and what they cost.
    pub fn held(&self) -> (usize, usize) {
        (self.entries.len(), self.cost)
    }
}

fn cost(data: &Bytes) -> usize {
    data.len() + DATAGRAM_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the size of the payloads, they and their places stay within the bound.
    #[test]
    fn datagrams_of_any_size_are_bounded() {
        let bound = 16 * 1024;
        for len in [0, 1, 1000] {
            let mut inbox = Inbox::new(bound);
            for index in 0..10_000_u32 {
                inbox.push(index % 3, vec![7; len].into());
            }
            let kept = bound / (len + DATAGRAM_OVERHEAD);
            assert_eq!(
                inbox.held(),
                (kept, kept * (len + DATAGRAM_OVERHEAD)),
                "{len}"
            );
            let place = size_of::<(u32, Bytes)>();
            let places = inbox.entries.capacity() * place;
            assert!(places + kept * len <= bound, "{places} bytes of places");
        }
    }

    #[test]
    fn the_oldest_are_dropped_and_one_always_fits() {
        let mut inbox = Inbox::new(2 * DATAGRAM_OVERHEAD + 2);
        for data in [&b"a"[..], b"b", b"c"] {
            inbox.push((), Bytes::from_static(data));
        }
        assert_eq!(inbox.pop().as_deref(), Some(&b"b"[..]));
        inbox.push((), vec![0; 1000].into());
        assert_eq!(inbox.held(), (1, 1000 + DATAGRAM_OVERHEAD));
        assert!(inbox.pop().is_some() && inbox.pop().is_none());
        assert_eq!(inbox.held(), (0, 0));
    }

    #[test]
    fn datagrams_are_taken_by_key() {
        let mut inbox = Inbox::new(1 << 20);
        for (key, data) in [(1, &b"a"[..]), (2, b"b"), (1, b"c")] {
            inbox.push(key, Bytes::from_static(data));
        }
        assert_eq!(inbox.take(1), ["a", "c"]);
        assert_eq!(inbox.take(3), [""; 0]);
        assert_eq!(inbox.take(2), ["b"]);
        assert_eq!(inbox.held(), (0, 0));
    }
}
