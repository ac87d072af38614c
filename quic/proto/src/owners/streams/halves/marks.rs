//! Flags of one half of a stream.

/// Flags of one half of a stream: the events it waits for and the queues it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::owners::streams) struct Marks(u8);

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::owners::streams) enum Mark {
    /// The application's call was blocked, and it must be told when to try again.
    Waiting,
    /// The application dropped its handle.
    Released,
    /// The application ended this half itself and needs no further events for it.
    Ended,
    /// A `RESET_STREAM` or `STOP_SENDING` is queued.
    Abort,
    /// A `MAX_STREAM_DATA` or `STREAM_DATA_BLOCKED` is queued.
    Credit,
    /// The application waits for any kind of end of the stream.
    Watching,
    /// Some of its data was received in 0-RTT packets.
    Early,
}

impl Marks {
    pub(in crate::owners::streams) const fn has(self, mark: Mark) -> bool {
        self.0 & 1 << mark as u8 != 0
    }

    /// Sets the mark. Returns true if it was not set before.
    pub(in crate::owners::streams) const fn set(&mut self, mark: Mark) -> bool {
        let fresh = !self.has(mark);
        self.0 |= 1 << mark as u8;
        fresh
    }

    /// Clears the mark. Returns true if it was set before.
    pub(in crate::owners::streams) const fn clear(&mut self, mark: Mark) -> bool {
        let was = self.has(mark);
        self.0 &= !(1 << mark as u8);
        was
    }
}
