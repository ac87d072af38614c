//! Priorities of responses that come before their requests (RFC 9218 §7).

use std::collections::VecDeque;

use hybriq::StreamId;
use hybriq_h3::Priority;

/// Priorities that are remembered.
const MOST: usize = 32;

/// The newest priorities that the client has asked for with PRIORITY_UPDATE: those of requests that were not read.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    early: VecDeque<(StreamId, Priority)>,
    /// Number behind that of the last stream whose request was read.
    next: u64,
    /// Those before it that were read, the last one in the lowest bit. Older ones count as read.
    read: u128,
}

impl Priorities {
    /// Remembers a priority, in the place of an earlier one of the stream, or of the oldest one. That of a request
    /// that was read needs no place.
    pub(super) fn set(&mut self, stream: StreamId, priority: Priority) {
        if self.is_read(stream) {
            return;
        }
        self.take(stream);
        if self.early.len() == MOST {
            self.early.pop_front();
        }
        self.early.push_back((stream, priority));
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
        self.take(stream)
    }

    fn is_read(&self, stream: StreamId) -> bool {
        let before = self.next.checked_sub(stream.0 / 4 + 1);
        before.is_some_and(|before| match shifted(before) {
            0 => true,
            bit => self.read & bit != 0,
        })
    }

    fn take(&mut self, stream: StreamId) -> Option<Priority> {
        let index = self.early.iter().position(|(id, _)| *id == stream)?;
        self.early.remove(index).map(|(_, priority)| priority)
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
        assert_eq!(priorities.early.len(), MOST);
        assert_eq!(priorities.begin(StreamId(0)), None, "the oldest");
        assert_eq!(priorities.begin(StreamId(4)), Some(Priority::new(3)));
        assert_eq!(priorities.begin(StreamId(4)), None, "it was taken");
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
        assert_eq!(priorities.early.len(), 1);
        priorities.set(StreamId(4 * 400), Priority::new(3));
        assert_eq!(priorities.begin(late), Some(Priority::new(1)));
        let far = StreamId((1 << 62) - 4);
        assert_eq!(priorities.begin(far), None);
        assert!(priorities.is_read(far));
        assert_eq!(priorities.begin(StreamId(4 * 400)), Some(Priority::new(3)));
    }
}
