//! What became of the data of a sending part.

use super::{Send, SendState};
use crate::owners::streams::{Delivery, halves::Mark};

impl Send {
    /// Returns what became of the data; `None` after a reset, which drops it.
    pub(in crate::owners::streams) fn delivery(&self) -> Option<Delivery> {
        self.state.is_sending().then(|| Delivery {
            written: self.buffer.end(),
            sent: self.buffer.next_offset(),
            acknowledged: self.acknowledged(),
            lost: self.lost,
        })
    }

    /// Returns the bytes from the beginning that the peer has; `u64::MAX` for the whole stream.
    pub(in crate::owners::streams) fn delivered(&self) -> u64 {
        if self.state == SendState::DataRecvd && self.reset_at_state().is_none() {
            u64::MAX
        } else {
            self.acknowledged()
        }
    }

    fn acknowledged(&self) -> u64 {
        self.buffer.end() - self.buffer.held()
    }

    /// Returns a number that changes with everything that the peer takes: bytes sent for the first
    /// time, bytes acknowledged, and its limit.
    pub(in crate::owners::streams) fn progress(&self) -> u64 {
        let (acked, sent) = (self.acknowledged(), self.buffer.next_offset());
        acked.wrapping_add(sent).wrapping_add(self.credit.limit())
    }

    /// Returns true if somebody may be waiting for the end of the stream.
    pub(in crate::owners::streams) const fn tells_end(&self) -> bool {
        !self.marks.has(Mark::Released) || self.marks.has(Mark::Watching)
    }
}
