//! Priorities of responses that come before their requests (RFC 9218 §7).

use std::collections::VecDeque;

use hybriq::StreamId;
use hybriq_h3::Priority;

/// Priorities that are remembered.
const MOST: usize = 32;

/// The newest priorities that the client has asked for with PRIORITY_UPDATE: those of requests that were not read.
#[derive(Debug, Default)]
pub(super) struct Priorities(VecDeque<(StreamId, Priority)>);

impl Priorities {
    /// Remembers a priority, in the place of an earlier one of the stream, or of the oldest one.
    pub(super) fn set(&mut self, stream: StreamId, priority: Priority) {
        self.take(stream);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((stream, priority));
    }

    /// Forgets the priority of a stream, and returns it.
    pub(super) fn take(&mut self, stream: StreamId) -> Option<Priority> {
        let index = self.0.iter().position(|(id, _)| *id == stream)?;
        self.0.remove(index).map(|(_, priority)| priority)
    }
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
        assert_eq!(priorities.0.len(), MOST);
        assert_eq!(priorities.take(StreamId(0)), None, "the oldest");
        assert_eq!(priorities.take(StreamId(4)), Some(Priority::new(3)));
        assert_eq!(priorities.take(StreamId(4)), None, "it was taken");
    }
}
