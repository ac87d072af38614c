//! Opening of streams, by either end, within limits.

use super::{ReceiveCredit, SendCredit, window::Window};
use crate::owners::streams::Direction;

/// Largest number of streams that may be open at once. Counts end at 2^60 (RFC 9000 §4.6), so this
/// leaves room for as many streams to be closed.
const MOST_STREAMS: u64 = 1 << 59;

/// One value for each direction of streams.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::owners::streams) struct PerDirection<T> {
    pub(in crate::owners::streams) bidi: T,
    pub(in crate::owners::streams) uni: T,
}

impl<T> PerDirection<T> {
    pub(in crate::owners::streams) const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Bidi => &self.bidi,
            Direction::Uni => &self.uni,
        }
    }

    pub(in crate::owners::streams) const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Bidi => &mut self.bidi,
            Direction::Uni => &mut self.uni,
        }
    }
}

/// Streams of one direction that we open (RFC 9000 §4.6).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::owners::streams) struct LocalStreams {
    /// Credit in streams instead of bytes.
    pub(in crate::owners::streams) credit: SendCredit,
    /// True if the application was refused a stream and is waiting.
    waiting: bool,
}

impl LocalStreams {
    /// Returns the index of the next stream, if the peer allows another.
    pub(in crate::owners::streams) const fn open(&mut self) -> Option<u64> {
        if self.credit.available() == 0 {
            self.waiting = true;
            return None;
        }
        let index = self.credit.used();
        self.credit.take(1);
        Some(index)
    }

    /// Returns true if the stream was opened.
    pub(in crate::owners::streams) const fn has_opened(&self, index: u64) -> bool {
        index < self.credit.used()
    }

    /// Raises the peer's limit. Returns true if the application was waiting for that.
    pub(in crate::owners::streams) const fn raise_limit(&mut self, max: u64) -> bool {
        self.credit.raise(max) && std::mem::replace(&mut self.waiting, false)
    }

    /// Returns true if a `STREAMS_BLOCKED` should be sent.
    pub(in crate::owners::streams) fn is_report_due(&self) -> bool {
        self.waiting && self.credit.is_report_due()
    }
}

/// Streams of one direction that the peer opens (RFC 9000 §4.6).
///
/// A frame for a stream opens all lower ones too (§3.2), but a stream takes memory only when a
/// frame of its own arrives or the application accepts it: one frame never costs more than one
/// stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::owners::streams) struct PeerStreams {
    /// Credit in streams instead of bytes: opened streams count as received, closed ones as
    /// consumed.
    pub(in crate::owners::streams) credit: ReceiveCredit,
    accepted: u64,
    /// True if the application was told that there are streams to accept, or found none.
    announced: bool,
}

/// State of a stream that the peer opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) enum Standing {
    /// Open, and not accepted yet; it may have no state.
    Waiting,
    /// Accepted; without state it is closed.
    Accepted,
}

impl PeerStreams {
    /// Creates the state with `limit` streams that the peer may have open at once.
    pub(in crate::owners::streams) fn new(limit: u64) -> Self {
        let limit = limit.min(MOST_STREAMS);
        let credit = ReceiveCredit::new(Window::new(limit, limit));
        Self {
            credit,
            accepted: 0,
            announced: false,
        }
    }

    /// Sets the number of streams that the peer may have open at once.
    pub(in crate::owners::streams) fn set_limit(&mut self, limit: u64) {
        self.credit.set_window(limit.min(MOST_STREAMS));
    }

    /// Handles a frame for the stream. Returns `None` if it is beyond the limit.
    pub(in crate::owners::streams) const fn on_frame(&mut self, index: u64) -> Option<Standing> {
        if index < self.accepted {
            return Some(Standing::Accepted);
        }
        if !self.allows(index) {
            return None;
        }
        self.credit.receive(self.more(index));
        Some(Standing::Waiting)
    }

    /// Returns true if the peer may open the stream, or has opened it.
    pub(in crate::owners::streams) const fn allows(&self, index: u64) -> bool {
        self.credit.allows(self.more(index))
    }

    /// Returns how many streams more are open if this one is.
    const fn more(&self, index: u64) -> u64 {
        (index + 1).saturating_sub(self.credit.received())
    }

    /// Returns the index of the next stream to accept.
    pub(in crate::owners::streams) const fn accept(&mut self) -> Option<u64> {
        if self.accepted == self.credit.received() {
            self.announced = false;
            return None;
        }
        let index = self.accepted;
        self.accepted += 1;
        Some(index)
    }

    /// Returns true, once per wait, if the application should be told that there are streams to
    /// accept.
    pub(in crate::owners::streams) const fn announce_once(&mut self) -> bool {
        let news = !self.announced && self.accepted < self.credit.received();
        self.announced |= news;
        news
    }
}
