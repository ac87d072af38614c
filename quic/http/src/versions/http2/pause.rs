//! Stops reading while h2 may hold too many resets that wait to be sent.

#[cfg(test)]
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::task::{Context, Poll, Waker};

/// Stream resets that h2 may hold because the peer does not accept them, before reading stops. Frames that are in the
/// buffer of h2 by then may add as many.
pub(crate) const RESETS: usize = 1024;

/// Frames for which h2 may hold a reset, or a stream, until it was sent. Their exact number is unknown, because h2
/// ignores some.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Frames before the current round.
    before: usize,
    since: usize,
}

impl Late {
    pub(crate) fn add(&mut self) {
        self.since += 1;
    }

    /// Notes that a reset was sent for such a frame.
    pub(crate) fn on_reset_sent(&mut self) {
        match self.before {
            0 => self.since = self.since.saturating_sub(1),
            _ => self.before -= 1,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.before + self.since
    }

    /// Ends a round, and forgets what was sent in it.
    fn end_round(&mut self) {
        self.before = self.since;
        self.since = 0;
    }

    fn begin_round(&mut self) {
        self.before = self.count();
        self.since = 0;
    }
}

/// What h2 has done since it was last asked to read.
///
/// In each poll, an h2 connection reads and handles all frames until a read is pending (`Connection::poll2`). Only
/// then does it send what its streams have queued, until the queues are empty and flushed, or the socket accepts no
/// more (`Streams::poll_complete`). So after a pending read, a flush that is ready means that everything was sent,
/// unless a write or a flush was pending after that read. No other flush means that: before it reads a frame, h2 may
/// have to make room for the answer to a PING or SETTINGS, for a PING of its own, or for GOAWAY
/// (`FramedWrite::poll_ready`). That writes and flushes its buffer while the queues stay, and the next read follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It has something to handle.
    Reading,
    /// A read was pending.
    Sending,
    /// The socket accepted no more after that.
    Blocked,
    /// The socket accepted everything.
    Sent,
}

/// Counts what h2 may hold, and stops it from reading while that is too much.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) late: Late,
    turn: Turn,
    is_on: bool,
    /// Most bytes that are sent before a reset.
    round: u64,
    /// Bytes that were sent in this round.
    sent: u64,
    reader: Option<Waker>,
    #[cfg(test)]
    pub(super) count: Arc<AtomicU64>,
}

impl Pause {
    pub(super) fn new(round: u64) -> Self {
        Self {
            late: Late::default(),
            turn: Turn::Reading,
            is_on: false,
            round,
            sent: 0,
            reader: None,
            #[cfg(test)]
            count: Arc::default(),
        }
    }

    /// Waits while h2 may hold too much. `streams` adds a reset for each stream to what was counted.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, streams: usize) -> Poll<()> {
        if self.turn == Turn::Sent || self.is_on && self.sent >= self.round {
            self.late = Late::default();
            self.sent = 0;
        } else if self.is_full(streams) {
            if !self.is_on {
                self.begin();
            }
            self.reader = Some(cx.waker().clone());
            self.turn = Turn::Sending;
            return Poll::Pending;
        }
        self.is_on = false;
        Poll::Ready(())
    }

    fn begin(&mut self) {
        self.is_on = true;
        self.sent = 0;
        self.late.begin_round();
        #[cfg(test)]
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn is_full(&self, streams: usize) -> bool {
        streams + self.late.count() >= RESETS
    }

    pub(super) fn on_read(&mut self, is_pending: bool) {
        self.turn = if is_pending {
            Turn::Sending
        } else {
            Turn::Reading
        };
    }

    /// Notes a write or a flush for which there was no room.
    pub(super) fn on_blocked(&mut self) {
        if self.turn != Turn::Reading {
            self.turn = Turn::Blocked;
        }
    }

    pub(super) fn on_sent(&mut self, len: usize, streams: usize) {
        self.sent += len as u64;
        let is_over = self.sent >= self.round;
        if is_over && !self.is_on {
            self.late.end_round();
            self.sent = 0;
        }
        if is_over || !self.is_full(streams) {
            self.wake();
        }
    }

    pub(super) fn on_flushed(&mut self) {
        if self.turn == Turn::Sending {
            self.turn = Turn::Sent;
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
