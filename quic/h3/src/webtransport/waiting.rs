//! What arrives before its session (draft-ietf-webtrans-http3 §4.6).

use std::collections::VecDeque;

use hybriq_proto::StreamId;

/// Number of sessions that are remembered after their end, so that their streams are refused at once.
const REMEMBERED: usize = 64;

/// Bytes that a waiting stream counts as in addition to the data that was read of it: its place in the queue, which may
/// have spare places.
pub const STREAM_OVERHEAD: usize = 128;

/// Limits on what waits for sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Largest number of streams.
    pub streams: usize,
    /// Largest number of bytes of streams: what was read of them, and [`STREAM_OVERHEAD`] for each.
    pub stream_bytes: usize,
}

impl Bounds {
    /// Creates limits on the number of streams and on their bytes.
    pub const fn new(streams: usize, stream_bytes: usize) -> Self {
        Self {
            streams,
            stream_bytes,
        }
    }
}

/// Streams of sessions that are not known, and the last sessions that ended. `S` is a stream of the
/// driver, of which some data may have been read.
#[derive(Debug)]
pub struct Waiting<S> {
    bounds: Bounds,
    streams: VecDeque<Entry<S>>,
    /// Bytes for which the streams count.
    stream_bytes: usize,
    gone: VecDeque<StreamId>,
}

#[derive(Debug)]
struct Entry<S> {
    session: StreamId,
    stream: S,
    cost: usize,
}

/// What a [`Waiting`] holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Streams, and the bytes for which they count.
    pub streams: (usize, usize),
    /// Ids of sessions that are over.
    pub gone: usize,
}

impl<S> Waiting<S> {
    /// Returns an empty queue.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            streams: VecDeque::new(),
            stream_bytes: 0,
            gone: VecDeque::new(),
        }
    }

    /// Adds a stream of which this many bytes were read. Returns the oldest streams that no longer fit, which may
    /// include this one: refuse them with WT_BUFFERED_STREAM_REJECTED, in both directions.
    #[must_use = "these streams must be refused"]
    pub fn push_stream(&mut self, session: StreamId, stream: S, read: usize) -> Vec<S> {
        let cost = read.saturating_add(STREAM_OVERHEAD);
        self.stream_bytes = self.stream_bytes.saturating_add(cost);
        self.streams.push_back(Entry {
            session,
            stream,
            cost,
        });
        let mut refused = Vec::new();
        while self.streams.len() > self.bounds.streams
            || self.stream_bytes > self.bounds.stream_bytes
        {
            let Some(oldest) = self.streams.pop_front() else {
                break;
            };
            self.stream_bytes -= oldest.cost;
            refused.push(oldest.stream);
        }
        refused
    }

    /// Takes the streams that wait for a session.
    pub fn take(&mut self, session: StreamId) -> Vec<S> {
        let mut taken = Vec::new();
        for entry in std::mem::take(&mut self.streams) {
            if entry.session == session {
                self.stream_bytes -= entry.cost;
                taken.push(entry.stream);
            } else {
                self.streams.push_back(entry);
            }
        }
        taken
    }

    /// Remembers that a session is over, or was refused. Returns the streams that waited for it.
    #[must_use = "these streams must be refused"]
    pub fn on_gone(&mut self, session: StreamId) -> Vec<S> {
        self.gone.push_back(session);
        if self.gone.len() > REMEMBERED {
            self.gone.pop_front();
        }
        self.take(session)
    }

    /// Returns true if the session is one of the last that ended: refuse its streams with WT_SESSION_GONE.
    pub fn is_gone(&self, session: StreamId) -> bool {
        self.gone.contains(&session)
    }

    /// Returns what is held.
    pub fn held(&self) -> Held {
        Held {
            streams: (self.streams.len(), self.stream_bytes),
            gone: self.gone.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        streams: 3,
        stream_bytes: 1000,
    };

    const fn session(number: u64) -> StreamId {
        StreamId(4 * number)
    }

    #[test]
    fn the_oldest_streams_are_refused_beyond_their_number_and_their_bytes() {
        let mut waiting = Waiting::new(BOUNDS);
        for stream in 0..3 {
            assert_eq!(waiting.push_stream(session(1), stream, 0), []);
        }
        assert_eq!(waiting.push_stream(session(2), 3, 0), [0]);
        assert_eq!(waiting.held().streams, (3, 3 * STREAM_OVERHEAD));
        // A stream with much data takes the place of several, and one with too much does not fit at all.
        let much = 1000 - 2 * STREAM_OVERHEAD;
        assert_eq!(waiting.push_stream(session(2), 4, much), [1, 2]);
        assert_eq!(waiting.held().streams, (2, 1000));
        assert_eq!(waiting.push_stream(session(2), 5, 1000), [3, 4, 5]);
        assert_eq!(waiting.held(), Held::default());
    }

    #[test]
    fn streams_are_given_to_their_session() {
        let mut waiting = Waiting::new(BOUNDS);
        for number in [1, 2, 1] {
            assert_eq!(waiting.push_stream(session(number), number, 5), []);
        }
        assert_eq!(waiting.take(session(1)), [1, 1]);
        assert_eq!(waiting.on_gone(session(2)), [2]);
        let held = waiting.held();
        assert_eq!((held.streams, held.gone), ((0, 0), 1));
    }

    #[test]
    fn the_last_sessions_are_remembered() {
        let mut waiting = Waiting::<()>::new(BOUNDS);
        for number in 0..70 {
            assert_eq!(waiting.on_gone(session(number)), []);
        }
        assert!(!waiting.is_gone(session(5)) && waiting.is_gone(session(6)));
        assert_eq!(waiting.held().gone, 64);
    }
}
