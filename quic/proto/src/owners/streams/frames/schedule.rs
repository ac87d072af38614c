//! Schedule of streams with something to send.

use std::collections::VecDeque;

use crate::owners::streams::{
    StreamId,
    halves::Mark,
    queue::{Place, Places, Queue},
    recv::Recv,
    send::Send,
};

/// Queues of frames and data waiting to be sent, by urgency.
///
/// A half of a stream is in each queue at most once; its marks and places record this.
#[derive(Debug, Default)]
pub(in crate::owners::streams) struct Schedule {
    pub(in crate::owners::streams) controls: VecDeque<Control>,
    /// Streams that can send without credit: lost data, or a FIN after data that was already sent.
    pub(in crate::owners::streams) free: Queue,
    /// Streams with new data within their own limit.
    pub(in crate::owners::streams) fresh: Queue,
}

/// Next stream to send, and kind of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) enum Turn {
    Free(StreamId),
    Fresh(StreamId),
}

/// A frame about one stream, whose fields are read when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) enum Control {
    ResetStream(StreamId),
    StopSending(StreamId),
    MaxStreamData(StreamId),
    StreamDataBlocked(StreamId),
}

impl Schedule {
    /// Releases memory that is not used now.
    pub(in crate::owners::streams) fn release_memory(&mut self) {
        self.controls.shrink_to_fit();
        self.free.release_memory();
        self.fresh.release_memory();
    }

    /// Returns the next stream to send, with this much credit for new data. Within one urgency,
    /// lost data comes first.
    #[inline]
    pub(in crate::owners::streams) fn next(&self, credit: u64) -> Option<Turn> {
        if credit > 0 && self.fresh.urgency() < self.free.urgency() {
            self.fresh.front().map(Turn::Fresh)
        } else {
            self.free.front().map(Turn::Free)
        }
    }

    /// Queues the sending part for everything it is ready to send.
    #[inline]
    pub(in crate::owners::streams) fn update_send(&mut self, id: StreamId, send: &mut Send) {
        if send.has_fresh() {
            if send.places.fresh == Place::Nowhere {
                send.places.fresh = self.fresh.insert(id, send.priority);
            }
        } else if send.is_report_due() && send.marks.set(Mark::Credit) {
            self.controls.push_back(Control::StreamDataBlocked(id));
        }
        if send.is_reset_at_due() {
            self.reset(id, send);
        }
        if send.has_free() && send.places.free == Place::Nowhere {
            send.places.free = self.free.insert(id, send.priority);
        }
    }

    /// Removes the sending part from the queue of data without credit.
    pub(in crate::owners::streams) fn leave_free(&mut self, id: StreamId, places: &mut Places) {
        self.free.remove(id, std::mem::take(&mut places.free));
    }

    /// Removes the sending part from the queue of new data.
    #[inline]
    pub(in crate::owners::streams) fn leave_fresh(&mut self, id: StreamId, places: &mut Places) {
        self.fresh.remove(id, std::mem::take(&mut places.fresh));
    }

    /// Removes the sending part from both queues.
    pub(in crate::owners::streams) fn leave(&mut self, id: StreamId, places: &mut Places) {
        self.leave_free(id, places);
        self.leave_fresh(id, places);
    }

    /// Moves the sending part according to its priority.
    pub(in crate::owners::streams) fn on_priority(&mut self, id: StreamId, send: &mut Send) {
        self.leave(id, &mut send.places);
        self.update_send(id, send);
    }

    /// Queues a new limit if one is due.
    #[inline]
    pub(in crate::owners::streams) fn update_recv(&mut self, id: StreamId, recv: &mut Recv) {
        if recv.is_credit_due() && recv.marks.set(Mark::Credit) {
            self.controls.push_back(Control::MaxStreamData(id));
        }
    }

    /// Queues `RESET_STREAM` or `RESET_STREAM_AT`.
    pub(in crate::owners::streams) fn reset(&mut self, id: StreamId, send: &mut Send) {
        if send.marks.set(Mark::Abort) {
            self.controls.push_back(Control::ResetStream(id));
        }
    }

    /// Queues `STOP_SENDING`.
    pub(in crate::owners::streams) fn stop(&mut self, id: StreamId, recv: &mut Recv) {
        if recv.marks.set(Mark::Abort) {
            self.controls.push_back(Control::StopSending(id));
        }
    }
}
