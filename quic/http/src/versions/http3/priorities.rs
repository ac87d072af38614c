//! Priorities of responses that come apart from their requests (RFC 9218 §7).

use std::collections::VecDeque;

use hybriq::StreamId;
use hybriq_h3::Priority;

/// Priorities that are remembered, of requests before and after they are read.
const MOST: usize = 32;

/// Priorities of the streams that were named last.
#[derive(Debug, Default)]
struct Newest(VecDeque<(StreamId, Priority)>);

/// The newest priorities that the client has asked for with PRIORITY_UPDATE.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    /// Those of requests that were not read.
    early: Newest,
    /// Those of requests that were, for the fields of their responses (RFC 9218 §8).
    late: Newest,
    /// Number behind that of the last stream whose request was read.
    next: u64,
    /// Those before it that were read, the last one in the lowest bit. Older ones count as read.
    read: u128,
}

impl Priorities {
    /// Remembers a priority. That of a request that was read takes no place from those of others.
    pub(super) fn set(&mut self, stream: StreamId, priority: Priority) {
        let is_read = self.is_read(stream);
        let newest = if is_read {
            &mut self.late
        } else {
            &mut self.early
        };
        newest.set(stream, priority);
    }

    /// Forgets the priority that arrived after a request was read, and returns it.
    pub(super) fn updated(&mut self, stream: StreamId) -> Option<Priority> {
        self.late.take(stream)
    }

    /// Notes that a request was read. Forgets its priority, and returns it.
    pub(super) fn begin(&mut self, stream: StreamId) -> Option<Priority> {
        let number = stream.0 / 4;
        if let Some(before) = self.next.checked_sub(number + 1) {
            self.read |= shifted(before);
        } else {
            let skipped = number - self.next;
            let read = u32::try_from(skipped + 1).ok();
            let read = read.and_then(|by| self.read.checked_shl(by));
            self.read = read.unwrap_or(0) | 1;
            self.next = number + 1;
        }
        self.early.take(stream)
    }

    fn is_read(&self, stream: StreamId) -> bool {
        let before = self.next.checked_sub(stream.0 / 4 + 1);
        before.is_some_and(|before| match shifted(before) {
            0 => true,
            bit => self.read & bit != 0,
        })
    }
}

impl Newest {
    /// Remembers a priority, in the place of an earlier one of the stream, or of the oldest one.
    fn set(&mut self, stream: StreamId, priority: Priority) {
        self.take(stream);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((stream, priority));
    }

    fn take(&mut self, stream: StreamId) -> Option<Priority> {
        let index = self.0.iter().position(|(id, _)| *id == stream)?;
        self.0.remove(index).map(|(_, priority)| priority)
    }
}

/// Returns the bit of the stream that is so many before the last one, or 0 if there is none.
fn shifted(before: u64) -> u128 {
    let before = u32::try_from(before).ok();
    let bit = before.and_then(|before| 1_u128.checked_shl(before));
    bit.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_priorities_are_remembered() {
        let mut priorities = Priorities::default();
        for index in 0..=MOST as u64 {
            priorities.set(StreamId(4 * index), Priority::new(1));
        }
        priorities.set(StreamId(4), Priority::new(2));
        priorities.set(StreamId(4), Priority::new(3));
        assert_eq!(priorities.early.0.len(), MOST);
        assert_eq!(priorities.begin(StreamId(0)), None, "the oldest");
        assert_eq!(priorities.begin(StreamId(4)), Some(Priority::new(3)));
        assert_eq!(priorities.begin(StreamId(4)), None, "it was taken");
    }

    /// The field of a response changes the newest one (RFC 9218 §8).
    #[test]
    fn a_priority_that_comes_after_its_request_is_remembered() {
        let mut priorities = Priorities::default();
        let stream = StreamId(0);
        priorities.set(stream, Priority::new(1));
        assert_eq!(priorities.begin(stream), Some(Priority::new(1)));
        assert_eq!(priorities.updated(stream), None);
        priorities.set(stream, Priority::new(2));
        priorities.set(stream, Priority::new(4));
        assert_eq!(priorities.updated(stream), Some(Priority::new(4)));
        assert_eq!(priorities.updated(stream), None, "it was taken");
    }

    /// Those of requests that are answered take no places, in whatever order these were read.
    #[test]
    fn requests_that_were_read_take_no_places() {
        let mut priorities = Priorities::default();
        let late = StreamId(4 * 3);
        priorities.set(late, Priority::new(1));
        let order = (0..400)
            .map(|number| number ^ 1)
            .filter(|number| *number != 3);
        for number in order.clone() {
            priorities.begin(StreamId(4 * number));
            let is_late = late.0 / 4 + 128 > priorities.next - 1;
            assert_eq!(!priorities.is_read(late), is_late, "{number}");
        }
        for number in order {
            priorities.set(StreamId(4 * number), Priority::new(2));
        }
        assert_eq!(priorities.early.0.len(), 1);
        assert_eq!(priorities.late.0.len(), MOST);
        priorities.set(StreamId(4 * 400), Priority::new(3));
        assert_eq!(priorities.begin(late), Some(Priority::new(1)));
        let far = StreamId((1 << 62) - 4);
        assert_eq!(priorities.begin(far), None);
        assert!(priorities.is_read(far));
        assert_eq!(priorities.begin(StreamId(4 * 400)), Some(Priority::new(3)));
    }
}
