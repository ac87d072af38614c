use std::collections::VecDeque;

use super::{
    StreamId,
    marks::{Mark, Marks},
    queue::Queue,
    recv::Recv,
    send::Send,
    table::Table,
};

/// What waits to be sent, in the order of its urgency.
///
/// A half of a stream is in each queue at most once; its marks say in which.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) controls: VecDeque<Control>,
    /// Streams with something that needs no credit: lost data, or a FIN behind data sent before.
    pub(super) free: Queue,
    /// Streams with new data that their own limit allows.
    pub(super) fresh: Queue,
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
    /// Queues whatever the sending part has become ready for.
    #[inline]
    pub(super) fn update_send(&mut self, id: StreamId, send: &mut Send) {
        if send.has_fresh() {
            if send.marks.set(Mark::InFresh) {
                self.fresh.push(id);
            }
        } else if send.is_report_due() && send.marks.set(Mark::Credit) {
            self.controls.push_back(Control::StreamDataBlocked(id));
        }
        if send.has_free() && send.marks.set(Mark::InFree) {
            self.free.push(id);
        }
    }

    /// Queues a new limit if it is time for one.
    #[inline]
    pub(super) fn update_recv(&mut self, id: StreamId, recv: &mut Recv) {
        if recv.is_credit_due() && recv.marks.set(Mark::Credit) {
            self.controls.push_back(Control::MaxStreamData(id));
        }
    }

    /// Queues `RESET_STREAM`.
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

    /// The sending part has no data any more.
    pub(super) fn abandon(&mut self, marks: Marks, sends: &Table<Send>) {
        let waits = |mark| move |id| sends.get(id).is_some_and(|send| send.marks.has(mark));
        if marks.has(Mark::InFree) {
            self.free.abandon(waits(Mark::InFree));
        }
        if marks.has(Mark::InFresh) {
            self.fresh.abandon(waits(Mark::InFresh));
        }
    }
}
