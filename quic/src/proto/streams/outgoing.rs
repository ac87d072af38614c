use super::{Direction, Sent, Streams, marks::Mark, schedule::Control, sent::SentFrame};
use crate::proto::frame::{DataBlocked, Encode, FrameWriter, MaxData, MaxStreams, StreamsBlocked};

/// Bytes a stream sends before the next one gets its turn: several packets, so that a receiver
/// sees runs, and few enough that nobody waits long.
const QUANTUM: usize = 8 * 1024;

/// Filling packets.
impl Streams {
    /// Whether [`Streams::write_frames`] would write something into an empty packet.
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

    /// Whether the connection's limit holds data back, and the peer does not know.
    fn is_data_blocked(&self) -> bool {
        self.send_credit.is_report_due() && !self.schedule.fresh.is_empty()
    }

    /// Fills the packet: credit and control frames, then what was lost, then new data.
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        self.write_credit(out, sent);
        self.write_controls(out, sent);
        self.write_free(out, sent);
        self.write_fresh(out, sent);
        // Only now it is known who is blocked.
        self.write_data_blocked(out, sent);
        self.write_controls(out, sent);
    }

    /// `MAX_DATA`, `MAX_STREAMS`, `STREAMS_BLOCKED`.
    fn write_credit(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let max = self.receive_credit.target();
        if self.receive_credit.is_due() && out.write(&MaxData { max }) {
            self.receive_credit.advertise();
            sent.push(SentFrame::MaxData(max));
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

    fn write_controls(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while let Some(&control) = self.schedule.controls.front() {
            let Some(frame) = self.write_control(control, out) else {
                return;
            };
            self.schedule.controls.pop_front();
            if let Written::Frame(frame) = frame {
                sent.push(frame);
            }
        }
    }

    /// Writes one control frame, unless there is no more reason for it. `None` if the packet is
    /// full.
    fn write_control(&mut self, control: Control, out: &mut FrameWriter<'_>) -> Option<Written> {
        match control {
            Control::ResetStream(id) => {
                let Some(send) = self.sends.get_mut(id) else {
                    return Some(Written::Nothing);
                };
                let written = Written::of(out, send.reset_frame(id), SentFrame::ResetStream(id))?;
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

    /// What was lost, and lone FINs.
    fn write_free(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while let Some(id) = self.schedule.free.front() {
            let Some(send) = self
                .sends
                .get_mut(id)
                .filter(|send| send.marks.has(Mark::InFree))
            else {
                self.schedule.free.pop_stale();
                continue;
            };
            let bytes = send.write_free(id, out, sent);
            self.bytes_resent += bytes;
            if send.has_free() {
                return self.schedule.free.sent(bytes as usize, QUANTUM);
            }
            send.marks.clear(Mark::InFree);
            self.schedule.free.pop();
        }
    }

    /// New data, within the connection's limit.
    #[inline]
    fn write_fresh(&mut self, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        while self.send_credit.available() > 0 {
            let Some(id) = self.schedule.fresh.front() else {
                return;
            };
            let Some(send) = self
                .sends
                .get_mut(id)
                .filter(|send| send.marks.has(Mark::InFresh))
            else {
                self.schedule.fresh.pop_stale();
                continue;
            };
            let Some(written) = send.write_fresh(id, self.send_credit.available(), out, sent)
            else {
                return;
            };
            self.send_credit.take(written);
            if send.has_fresh() {
                self.schedule.fresh.sent(written as usize, QUANTUM);
            } else {
                send.marks.clear(Mark::InFresh);
                self.schedule.fresh.pop();
                self.schedule.update_send(id, send);
            }
        }
    }
}

/// What became of a frame that was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// There is no more reason for it.
    Nothing,
    Frame(SentFrame),
}

impl Written {
    /// `None` if the frame does not fit.
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
