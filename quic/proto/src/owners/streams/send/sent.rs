//! Record of stream frames in a sent packet, and handling of its acknowledgement or loss.

use smallvec::SmallVec;

use crate::owners::streams::{Direction, StreamEvent, StreamId, Streams, halves::Mark};

/// Stream frames of one packet: enough to handle its acknowledgement or loss.
///
/// The common packet has one STREAM frame and costs no allocation.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    frames: SmallVec<[SentFrame; 1]>,
}

impl Sent {
    /// Returns true if the packet carried no stream frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the bytes of memory that it holds in addition to its own size.
    #[inline]
    pub fn held(&self) -> usize {
        if self.frames.spilled() {
            self.frames.capacity() * size_of::<SentFrame>()
        } else {
            0
        }
    }

    #[inline]
    pub(in crate::owners::streams) fn push(&mut self, frame: SentFrame) {
        self.frames.push(frame);
    }

    pub(in crate::owners::streams) fn frames(&self) -> &[SentFrame] {
        &self.frames
    }
}

/// One frame. Credit frames record their value, so that only the newest value is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) enum SentFrame {
    Stream {
        id: StreamId,
        offset: u64,
        len: u32,
        end: End,
    },
    ResetStream(StreamId),
    /// `RESET_STREAM_AT`, with its reliable size.
    ResetStreamAt(StreamId, u64),
    StopSending(StreamId),
    MaxData(u64),
    MaxStreamData(StreamId, u64),
    MaxStreams(Direction, u64),
    DataBlocked(u64),
    StreamDataBlocked(StreamId, u64),
    StreamsBlocked(Direction, u64),
}

/// FIN bit of a STREAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::streams) enum End {
    Open,
    Fin,
}

impl Streams {
    #[inline]
    pub(in crate::owners::streams) fn on_frame_acked(&mut self, frame: SentFrame) {
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                end,
            } => {
                self.on_stream_acked(id, offset, len, end);
            }
            SentFrame::ResetStream(id) => {
                if let Some(send) = self.sends.get_mut(id) {
                    if send.on_reset_acked() {
                        self.on_all_acked(id);
                    }
                }
            }
            SentFrame::ResetStreamAt(id, reliable) => {
                if let Some(send) = self.sends.get_mut(id) {
                    if send.on_reset_at_acked(reliable) {
                        self.on_all_acked(id);
                    }
                }
            }
            SentFrame::StopSending(id) => {
                if let Some(recv) = self.recvs.get_mut(id) {
                    recv.on_stop_acked();
                    self.on_recv_changed(id);
                }
            }
            SentFrame::MaxData(_)
            | SentFrame::MaxStreamData(..)
            | SentFrame::MaxStreams(..)
            | SentFrame::DataBlocked(_)
            | SentFrame::StreamDataBlocked(..)
            | SentFrame::StreamsBlocked(..) => {}
        }
    }

    #[inline]
    fn on_stream_acked(&mut self, id: StreamId, offset: u64, len: u32, end: End) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        let all = send.on_stream_acked(offset, len, end);
        if send.marks.has_either(Mark::Waiting, Mark::Watching) {
            self.tell_acked(id);
        }
        if all {
            self.on_all_acked(id);
        }
    }

    /// Tells a blocked writer of new room, and those who watch the stream what the peer has.
    fn tell_acked(&mut self, id: StreamId) {
        let Some(send) = self.sends.get_mut(id) else {
            return;
        };
        if send.wakes_writer(self.limits.send_room()) {
            self.events.push_back(StreamEvent::Writable(id));
        }
        if !send.marks.has(Mark::Watching) {
            return;
        }
        let acknowledged = send.delivered();
        match self.events.back_mut() {
            // Many packets are acknowledged at once.
            Some(StreamEvent::Delivered {
                id: last,
                acknowledged: before,
            }) if *last == id => {
                *before = acknowledged;
            }
            _ => self
                .events
                .push_back(StreamEvent::Delivered { id, acknowledged }),
        }
    }

    /// Handles the acknowledgement of all data and the end, or of the reset.
    fn on_all_acked(&mut self, id: StreamId) {
        if self.sends.get_mut(id).is_some_and(|send| send.tells_end()) {
            self.events.push_back(StreamEvent::Acknowledged(id));
        }
        self.on_send_changed(id);
    }

    /// Counts the data of a frame whose packet was declared lost.
    pub(in crate::owners::streams) fn count_lost(&mut self, frame: SentFrame) {
        if let SentFrame::Stream { id, len, .. } = frame {
            if let Some(send) = self.sends.get_mut(id) {
                send.lost += u64::from(len);
            }
        }
    }

    /// Takes back the losses that were counted. A server that sends a Retry packet drops 0-RTT packets, and nothing was
    /// declared lost before it.
    pub(crate) fn on_retry(&mut self) {
        for (_, send) in self.sends.iter_mut() {
            send.lost = 0;
        }
    }

    /// Queues a frame again if it still matters.
    pub(in crate::owners::streams) fn repeat_frame(&mut self, frame: SentFrame) {
        match frame {
            SentFrame::Stream {
                id,
                offset,
                len,
                end,
            } => {
                if let Some(send) = self.sends.get_mut(id) {
                    send.on_stream_lost(offset, len, end);
                    self.schedule.update_send(id, send);
                }
            }
            SentFrame::ResetStream(id) => {
                if let Some(send) = self.sends.get_mut(id) {
                    if send.reset_frame(id).is_some() {
                        self.schedule.reset(id, send);
                    }
                }
            }
            SentFrame::ResetStreamAt(id, reliable) => {
                if let Some(send) = self.sends.get_mut(id) {
                    send.on_reset_at_lost(reliable);
                    self.schedule.update_send(id, send);
                }
            }
            SentFrame::StopSending(id) => {
                if let Some(recv) = self.recvs.get_mut(id) {
                    if recv.stop_frame(id).is_some() {
                        self.schedule.stop(id, recv);
                    }
                }
            }
            SentFrame::MaxData(max) => self.receive_credit.on_lost(max),
            SentFrame::MaxStreamData(id, max) => {
                if let Some(recv) = self.recvs.get_mut(id) {
                    recv.on_credit_lost(max);
                    self.schedule.update_recv(id, recv);
                }
            }
            SentFrame::MaxStreams(direction, max) => {
                self.peer.of_mut(direction).credit.on_lost(max);
            }
            SentFrame::DataBlocked(limit) => self.send_credit.on_report_lost(limit),
            SentFrame::StreamDataBlocked(id, limit) => {
                if let Some(send) = self.sends.get_mut(id) {
                    send.on_blocked_lost(limit);
                    self.schedule.update_send(id, send);
                }
            }
            SentFrame::StreamsBlocked(direction, limit) => {
                self.local.of_mut(direction).credit.on_report_lost(limit);
            }
        }
    }
}
