//! Flags of one half of a stream.

/// Marks of what one half of a stream waits for or is queued in, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u8);

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mark {
    /// The application's call was blocked: tell it when it may try again.
    Waiting,
    /// The application let go of its handle.
    Released,
    /// The application ended this half itself and needs no more news of it.
    Ended,
    /// A `RESET_STREAM` or `STOP_SENDING` is queued.
    Abort,
    /// A `MAX_STREAM_DATA` or `STREAM_DATA_BLOCKED` is queued.
    Credit,
    /// The application waits for the end of the stream, however it comes.
    Watching,
    /// Some of it came in 0-RTT packets.
    Early,
}

impl Marks {
    pub(super) const fn has(self, mark: Mark) -> bool {
        self.0 & 1 << mark as u8 != 0
    }

    /// Sets the mark; whether it was not set before.
    pub(super) const fn set(&mut self, mark: Mark) -> bool {
        let fresh = !self.has(mark);
        self.0 |= 1 << mark as u8;
        fresh
    }

    /// Clears the mark; whether it was set before.
    pub(super) const fn clear(&mut self, mark: Mark) -> bool {
        let was = self.has(mark);
        self.0 &= !(1 << mark as u8);
        was
    }
}
