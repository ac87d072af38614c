//! Datagrams that wait for their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use quinn_udp::EcnCodepoint;

/// Direction of a datagram, with the number of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the server, from this client's socket.
    Up(u64),
    /// To this client.
    Down(u64),
}

/// A held datagram.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) due: Duration,
    pub(crate) way: Way,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) bytes: Box<[u8]>,
}

/// Held datagrams, ordered by the time they are due, then by arrival.
#[derive(Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<Entry>>,
    came: u64,
    bytes: usize,
}

struct Entry {
    came: u64,
    held: Held,
}

impl Entry {
    fn key(&self) -> (Duration, u64) {
        (self.held.due, self.came)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Schedule {
    pub(crate) fn push(&mut self, held: Held) {
        self.bytes += held.bytes.len();
        self.heap.push(Reverse(Entry {
            came: self.came,
            held,
        }));
        self.came += 1;
    }

    /// Returns the next datagram that is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<Held> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        self.bytes -= entry.held.bytes.len();
        Some(entry.held)
    }

    /// Returns the time at which the next one is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse(entry)| entry.held.due)
    }

    /// Returns the number of bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Held, Schedule, Way};

    #[test]
    fn datagrams_leave_by_time_and_then_in_the_order_they_came() {
        let mut schedule = Schedule::default();
        for (mark, due) in [(0, 3), (1, 1), (2, 3), (3, 1), (4, 2)] {
            schedule.push(Held {
                due: Duration::from_millis(due),
                way: Way::Up(0),
                ecn: None,
                bytes: Box::new([mark]),
            });
        }
        assert_eq!(
            (schedule.bytes(), schedule.next_due()),
            (5, Some(Duration::from_millis(1)))
        );
        let mut left = |now| {
            std::iter::from_fn(|| schedule.pop_due(Duration::from_millis(now)))
                .map(|held| held.bytes[0])
                .collect::<Vec<_>>()
        };
        assert!(left(0).is_empty());
        assert_eq!(left(2), [1, 3, 4]);
        assert_eq!(left(9), [0, 2]);
        assert_eq!(schedule.bytes(), 0);
    }
}
