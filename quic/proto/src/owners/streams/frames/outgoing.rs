//! Sending of stream frames.

use super::schedule::{Control, Turn};
use crate::{
    owners::streams::{
        Awaited, Direction, Sent, StreamEvent, StreamId, Streams, halves::Mark,
        send::sent::SentFrame,
    },
    wire::{
        frame::{
            DataBlocked, Encode, FrameWriter, MaxData, MaxStreams, Owner, StreamsBlocked, Timing,
        },
        packet::Space,
    },
};

impl Owner for Streams {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.has_pending()
    }

    /// Fills the packet: credit and control frames first, then data by priority, lost data before
    /// new data.
    fn write_frames(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        self.write_credit(timing, out, sent);
        self.write_controls(timing, out, sent);
        self.write_data(out, sent);
        // Only now is it known which streams are blocked.
        self.write_data_blocked(out, sent);
        self.write_controls(timing, out, sent);
    }

    fn on_acked(&mut self, sent: &Sent) {
        for &frame in sent.frames() {
            self.on_frame_acked(frame);
        }
    }

    fn on_lost(&mut self, sent: &Sent) {
        for &frame in sent.frames() {
            self.count_lost(frame);
        }
        self.repeat(sent);
    }
}

/// Packet filling.
impl Streams {
    /// Queues frames again if they still matter, credit with its newest value (RFC 9000 §13.3). Their packet need not be
    /// lost: a probe repeats it (RFC 9002 §6.2.4).
    pub(crate) fn repeat(&mut self, sent: &Sent) {
        for &frame in sent.frames() {
            self.repeat_frame(frame);
        }
    }

    /// Returns what the application is waiting for, on streams whose end it does not know yet.
    #[inline]
    pub fn awaited(&self) -> Awaited {
        if self.unanswered > 0 {
            Awaited::Answers
        } else if self.recvs.is_empty() {
            Awaited::Nothing
        } else {
            Awaited::News
        }
    }

    /// Returns true if [`Owner::write_frames`] would write something into an empty packet.
    #[inline]
    pub fn has_pending(&self) -> bool {
        !self.schedule.controls.is_empty()
            || !self.schedule.free.is_empty()
            || self.has_sendable_data()
            || self.receive_credit.is_due()
            || self.peer.bidi.credit.is_due()
            || self.peer.uni.credit.is_due()
            || self.local.bidi.is_report_due()
            || self.local.uni.is_report_due()
            || self.is_data_blocked()
    }

    fn has_sendable_data(&self) -> bool {
        self.send_credit.available() > 0 && !self.schedule.fresh.is_empty()
    }

    /// Returns true if the connection's limit blocks data and is not yet reported to the peer.
    fn is_data_blocked(&self) -> bool {
        self.send_credit.is_report_due() && !self.schedule.fresh.is_empty()
    }

    /// Writes `MAX_DATA`, `MAX_STREAMS` and `STREAMS_BLOCKED`.
    fn write_credit(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        if self.receive_credit.is_due() {
            self.receive_credit.tune(timing);
            let max = self.receive_credit.target();
            if out.write(&MaxData { max }) {
                self.receive_credit.advertise();
                sent.push(SentFrame::MaxData(max));
            }
        }
        for direction in [Direction::Bidi, Direction::Uni] {
            let credit = &mut self.peer.of_mut(direction).credit;
            let max = credit.target();
            if credit.is_due() && out.write(&MaxStreams { direction, max }) {
                credit.advertise();
                sent.push(SentFrame::MaxStreams(direction, max));
            }
            let local = self.local.of_mut(direction);
            let limit = local.credit.limit();
            if local.is_report_due() && out.write(&StreamsBlocked { direction, limit }) {
                local.credit.report();
                sent.push(SentFrame::StreamsBlocked(direction, limit));
            }
        }
    }

    fn write_data_blocked(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let limit = self.send_credit.limit();
        if self.is_data_blocked() && out.write(&DataBlocked { limit }) {
            self.send_credit.report();
            sent.push(SentFrame::DataBlocked(limit));
        }
    }

    fn write_controls(&mut self, timing: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while let Some(&control) = self.schedule.controls.front() {
            let Some(frame) = self.write_control(control, timing, out) else {
                return;
            };
            self.schedule.controls.pop_front();
            if let Written::Frame(frame) = frame {
                sent.push(frame);
            }
        }
    }

    /// Writes one control frame, unless it is no longer needed. Returns `None` if the packet is
    /// full.
    fn write_control(
        &mut self,
        control: Control,
        timing: Timing,
        out: &mut FrameWriter<'_>,
    ) -> Option<Written> {
        match control {
            Control::ResetStream(id) => {
                let Some(send) = self.sends.get_mut(id) else {
                    return Some(Written::Nothing);
                };
                let written = match send.reset_at_frame(id) {
                    Some(frame) => {
                        let record = SentFrame::ResetStreamAt(id, frame.reliable_size);
                        let written = Written::of(out, Some(frame), record)?;
                        send.on_reset_at_sent();
                        written
                    }
                    None => Written::of(out, send.reset_frame(id), SentFrame::ResetStream(id))?,
                };
                send.marks.clear(Mark::Abort);
                Some(written)
            }
            Control::StopSending(id) => {
                let Some(recv) = self.recvs.get_mut(id) else {
                    return Some(Written::Nothing);
                };
                let written = Written::of(out, recv.stop_frame(id), SentFrame::StopSending(id))?;
                recv.marks.clear(Mark::Abort);
                Some(written)
            }
            Control::MaxStreamData(id) => {
                let Some(recv) = self.recvs.get_mut(id) else {
                    return Some(Written::Nothing);
                };
                if recv.is_credit_due() {
                    if let Some(window) = recv.tune(timing, self.widest_window) {
                        self.widest_window = self.widest_window.max(window);
                        self.receive_credit.raise_window(of_connection(window));
                    }
                }
                let frame = recv.credit_frame(id);
                let max = frame.map_or(0, |frame| frame.max);
                let written = Written::of(out, frame, SentFrame::MaxStreamData(id, max))?;
                recv.marks.clear(Mark::Credit);
                if written != Written::Nothing {
                    recv.on_credit_sent();
                }
                Some(written)
            }
            Control::StreamDataBlocked(id) => {
                let Some(send) = self.sends.get_mut(id) else {
                    return Some(Written::Nothing);
                };
                let frame = send.blocked_frame(id);
                let limit = frame.map_or(0, |frame| frame.limit);
                let written = Written::of(out, frame, SentFrame::StreamDataBlocked(id, limit))?;
                send.marks.clear(Mark::Credit);
                if written != Written::Nothing {
                    send.on_blocked_sent();
                }
                Some(written)
            }
        }
    }

    /// Writes lost data, lone FINs and, within the connection's limit, new data.
    #[inline]
    fn write_data(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while let Some(turn) = self.schedule.next(self.send_credit.available()) {
            let more = match turn {
                Turn::Free(id) => self.write_free(id, out, sent),
                Turn::Fresh(id) => self.write_fresh(id, out, sent),
            };
            if more.is_none() {
                return;
            }
        }
    }

    /// Writes data that needs no credit. Returns `None` if the packet is full.
    fn write_free(
        &mut self,
        id: StreamId,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
    ) -> Option<()> {
        let send = self.sends.get_mut(id)?;
        let bytes = send.write_free(id, out, sent);
        self.bytes_resent += bytes;
        if send.has_free() {
            self.schedule.free.sent(bytes as u32);
            return None;
        }
        self.schedule.leave_free(id, &mut send.places);
        Some(())
    }

    /// Writes new data. Returns `None` if the packet is full.
    #[inline]
    fn write_fresh(
        &mut self,
        id: StreamId,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
    ) -> Option<()> {
        let send = self.sends.get_mut(id)?;
        let credit = self.send_credit.available();
        let written = send.write_fresh(id, credit, out, sent)?;
        self.send_credit.take(written);
        if send.has_fresh() {
            self.schedule.fresh.sent(written as u32);
        } else {
            self.schedule.leave_fresh(id, &mut send.places);
            self.schedule.update_send(id, send);
        }
        if send.wakes_writer(self.limits.send_room()) {
            self.events.push_back(StreamEvent::Writable(id));
        }
        Some(())
    }
}

/// Returns the connection's window for a stream's window, with room for other streams.
const fn of_connection(stream_window: u64) -> u64 {
    stream_window.saturating_add(stream_window / 2)
}

/// Result of writing a queued frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// The frame is no longer needed.
    Nothing,
    Frame(SentFrame),
}

impl Written {
    /// Writes a frame. Returns `None` if it does not fit.
    fn of<F: Encode>(
        out: &mut FrameWriter<'_>,
        frame: Option<F>,
        record: SentFrame,
    ) -> Option<Self> {
        let Some(frame) = frame else {
            return Some(Self::Nothing);
        };
        out.write(&frame).then_some(Self::Frame(record))
    }
}
