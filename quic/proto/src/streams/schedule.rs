//! What waits to be sent, and who is next.

use std::collections::VecDeque;

use super::{
    StreamId,
    marks::Mark,
    queue::{Place, Places, Queue},
    recv::Recv,
    send::Send,
};

/// Queues of what waits to be sent, in the order of its urgency.
///
/// A half of a stream is in each queue at most once; its marks and places say in which.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) controls: VecDeque<Control>,
    /// Streams with something that needs no credit: lost data, or a FIN behind data sent before.
    pub(super) free: Queue,
    /// Streams with new data that their own limit allows.
    pub(super) fresh: Queue,
}

/// Whose turn it is, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Free(StreamId),
    Fresh(StreamId),
}

/// A frame about one stream; its fields are taken when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    ResetStream(StreamId),
    StopSending(StreamId),
    MaxStreamData(StreamId),
    StreamDataBlocked(StreamId),
}

impl Schedule {
    /// Returns who sends next, with so much credit for new data. Within one urgency lost data goes
    /// first.
    #[inline]
    pub(super) fn next(&self, credit: u64) -> Option<Turn> {
        if credit > 0 && self.fresh.urgency() < self.free.urgency() {
            self.fresh.front().map(Turn::Fresh)
        } else {
            self.free.front().map(Turn::Free)
        }
    }

    /// Queues whatever the sending part has become ready for.
    #[inline]
    pub(super) fn update_send(&mut self, id: StreamId, send: &mut Send) {
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

    /// The sending part has nothing more for now that needs no credit.
    pub(super) fn leave_free(&mut self, id: StreamId, places: &mut Places) {
        self.free.remove(id, std::mem::take(&mut places.free));
    }

    /// The sending part has no new data, or may not send it.
    #[inline]
    pub(super) fn leave_fresh(&mut self, id: StreamId, places: &mut Places) {
        self.fresh.remove(id, std::mem::take(&mut places.fresh));
    }

    /// The sending part has no data any more.
    pub(super) fn leave(&mut self, id: StreamId, places: &mut Places) {
        self.leave_free(id, places);
        self.leave_fresh(id, places);
    }

    /// Puts the sending part where its priority says.
    pub(super) fn on_priority(&mut self, id: StreamId, send: &mut Send) {
        self.leave(id, &mut send.places);
        self.update_send(id, send);
    }

    /// Queues a new limit if it is time for one.
    #[inline]
    pub(super) fn update_recv(&mut self, id: StreamId, recv: &mut Recv) {
        if recv.is_credit_due() && recv.marks.set(Mark::Credit) {
            self.controls.push_back(Control::MaxStreamData(id));
        }
    }

    /// Queues `RESET_STREAM` or `RESET_STREAM_AT`.
    pub(super) fn reset(&mut self, id: StreamId, send: &mut Send) {
        if send.marks.set(Mark::Abort) {
            self.controls.push_back(Control::ResetStream(id));
        }
    }

    /// Queues `STOP_SENDING`.
    pub(super) fn stop(&mut self, id: StreamId, recv: &mut Recv) {
        if recv.marks.set(Mark::Abort) {
            self.controls.push_back(Control::StopSending(id));
        }
    }
}
