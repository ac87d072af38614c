//! The sending part of a stream.

mod delivery;
pub(super) mod sent;

use bytes::Bytes;

use self::sent::{End, Sent, SentFrame};
use super::{
    ClosedStream, Priority, StreamId, WriteError,
    flow::SendCredit,
    halves::{Mark, Marks},
    queue::Places,
};
use crate::{
    buffer::SendBuffer,
    wire::frame::{self, FrameWriter, StreamHeader},
};

/// Smallest room in a packet for which data is cut: a sliver costs as much in headers and records
/// as a full packet.
const WORTH_CUTTING: usize = 64;

/// The sending part of a stream (RFC 9000 §3.1).
///
/// ```text
///        +-------+
///        | Ready | ----- reset, STOP_SENDING ----.
///        +-------+                               |
///            | STREAM                            |
///            v                                   v
///        +-------+ ----- reset, STOP_SENDING -> +-------+
///        | Send  |                              | Reset |
///        +-------+                              | Sent  |
///            | STREAM with FIN                  +-------+
///            v                                     ^ |
///        +-------+ ----- reset, STOP_SENDING ------' |
///        | Data  |                                   | RESET_STREAM
///        | Sent  |                                   | acknowledged
///        +-------+                                   |
///            | all acknowledged                      |
///            v                                       v
///        +-------+                              +-------+
///        | Data  |                              | Reset |
///        | Recvd |                              | Recvd |
///        +-------+                              +-------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendState {
    Ready,
    Send,
    DataSent,
    DataRecvd,
    ResetSent,
    ResetRecvd,
}

/// A `RESET_STREAM_AT` to be sent, or already sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResetAt {
    pub(super) code: u64,
    /// Number of bytes still delivered.
    pub(super) reliable_size: u64,
    pub(super) told: Told,
}

/// Progress of a frame that informs the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Pending,
    Sent,
    Acked,
}

impl ResetAt {
    pub(super) fn is_acked(self) -> bool {
        self.told == Told::Acked
    }
}

impl SendState {
    /// Returns true if data may still be on its way.
    pub(super) const fn is_sending(self) -> bool {
        matches!(self, Self::Ready | Self::Send | Self::DataSent)
    }

    const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRecvd | Self::ResetRecvd)
    }
}

/// State of the FIN bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fin {
    /// The application may write more.
    Open,
    /// The FIN must be sent, for the first time or again.
    Pending,
    Sent,
    Acked,
    /// The FIN was replaced by a `RESET_STREAM_AT`.
    Replaced,
}

/// State of a stream that ends before all of its data.
#[derive(Debug, Default)]
pub(super) struct EarlyEnd {
    /// Code for `RESET_STREAM`.
    code: u64,
    /// Final size for `RESET_STREAM`.
    final_size: u64,
    pub(super) reset_at: Option<ResetAt>,
    stop_code: Option<u64>,
}

/// The sending part of one stream.
#[derive(Debug)]
pub(super) struct Send {
    pub(super) state: SendState,
    pub(super) buffer: SendBuffer,
    credit: SendCredit,
    pub(super) fin: Fin,
    /// State of a stream that ends before all of its data.
    pub(super) early_end: Option<Box<EarlyEnd>>,
    /// Bytes of packets that were declared lost.
    lost: u64,
    pub(super) priority: Priority,
    pub(super) places: Places,
    pub(super) marks: Marks,
}

/// Limits of the send buffer.
///
/// The first limit applies to data not yet sent: it waits only for the network, and more of it
/// would not speed anything up. Data in flight is limited by the congestion window; a fixed limit
/// on both together would restrict it on a long fat path. The second limit applies to both anyway,
/// because a peer may acknowledge everything but the oldest bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendRoom {
    /// Number of bytes that may wait to be sent.
    pub(super) unsent: u64,
    /// Number of bytes that may wait to be sent or acknowledged.
    pub(super) held: u64,
}

impl Send {
    /// Bytes that a half holds apart from its table, besides its data, if it lost data and ends early.
    pub(super) const APART: u64 = (size_of::<EarlyEnd>() + SendBuffer::APART) as u64;

    /// Creates a sending part whose peer initially accepts `max` bytes.
    pub(super) fn new(max: u64) -> Self {
        Self {
            state: SendState::Ready,
            buffer: SendBuffer::new(),
            credit: SendCredit::new(max),
            fin: Fin::Open,
            early_end: None,
            lost: 0,
            priority: Priority::default(),
            places: Places::default(),
            marks: Marks::default(),
        }
    }

    /// Releases memory that is not used now.
    pub(super) fn release_memory(&mut self) {
        self.buffer.release_memory();
    }

    pub(super) fn write(&mut self, data: &[u8], room: SendRoom) -> Result<usize, WriteError> {
        let len = self.check_room(room, 1)?.min(data.len());
        self.buffer.write(data.split_at(len).0);
        Ok(len)
    }

    pub(super) fn write_chunk(
        &mut self,
        chunk: &mut Bytes,
        room: SendRoom,
    ) -> Result<usize, WriteError> {
        let len = self.check_room(room, 1)?.min(chunk.len());
        self.buffer.push(chunk.split_to(len));
        Ok(len)
    }

    /// Returns how many bytes fit into the buffer: at least `least`, or all of it if it is smaller.
    pub(super) fn check_room(&mut self, room: SendRoom, least: u64) -> Result<usize, WriteError> {
        let least = least.min(room.unsent.max(1));
        if self.marks.has(Mark::Ended) || self.fin != Fin::Open {
            return Err(WriteError::Closed);
        }
        if let Some(code) = self.stop_code() {
            return Err(WriteError::Stopped(code));
        }
        let room = self.room(room);
        if room < least {
            self.marks.set(Mark::Waiting);
            return Err(WriteError::Blocked);
        }
        Ok(usize::try_from(room).unwrap_or(usize::MAX))
    }

    fn room(&self, room: SendRoom) -> u64 {
        let unsent = room.unsent.saturating_sub(self.buffer.unsent());
        unsent.min(room.held.saturating_sub(self.buffer.held()))
    }

    /// Returns true, once, if a blocked writer should try again: when a quarter of the buffer is
    /// free, so that it does not wake up for every packet.
    #[inline]
    pub(super) fn wakes_writer(&mut self, room: SendRoom) -> bool {
        self.marks.has(Mark::Waiting)
            && self.room(room) >= room.unsent.div_ceil(4)
            && self.marks.clear(Mark::Waiting)
    }

    pub(super) fn finish(&mut self) -> Result<(), ClosedStream> {
        let open = !self.marks.has(Mark::Ended) && self.state.is_sending();
        self.marks.set(Mark::Ended);
        if !open {
            return Err(ClosedStream);
        }
        self.fin = Fin::Pending;
        Ok(())
    }

    /// Resets the stream for the application.
    pub(super) fn reset(&mut self, code: u64) -> Result<(), ClosedStream> {
        self.marks.set(Mark::Ended);
        self.abort(code)
    }

    /// Handles the peer's request to stop. Returns true if it is new. The answer is a reset with
    /// the peer's code (RFC 9000 §3.5).
    pub(super) fn on_stop_sending(&mut self, code: u64) -> bool {
        let news = self.abort(code).is_ok();
        if news {
            self.early_end.get_or_insert_default().stop_code = Some(code);
        }
        news
    }

    fn abort(&mut self, code: u64) -> Result<(), ClosedStream> {
        if !self.state.is_sending() {
            return Err(ClosedStream);
        }
        // Code and final size do not change once they have been sent.
        let end = self.early_end.get_or_insert_default();
        end.code = end.reset_at.take().map_or(code, |reset| reset.code);
        end.final_size = self.buffer.next_offset();
        self.state = SendState::ResetSent;
        self.buffer = SendBuffer::new();
        self.marks.clear(Mark::Waiting);
        Ok(())
    }

    /// Handles the drop of the application's handle. Returns true if that resets the stream,
    /// with this code.
    pub(super) fn release(&mut self, code: u64) -> bool {
        self.marks.set(Mark::Released);
        self.fin == Fin::Open && self.abort(code).is_ok()
    }

    /// Drops unacknowledged data when the connection ends, but keeps the state.
    pub(super) fn on_closed(&mut self) {
        self.buffer = SendBuffer::new();
    }

    /// Returns the final size, once the half is over.
    pub(super) fn final_size(&self) -> u64 {
        match self.state {
            SendState::ResetSent | SendState::ResetRecvd => {
                self.early_end.as_ref().map_or(0, |end| end.final_size)
            }
            _ => self.buffer.next_offset(),
        }
    }

    pub(super) fn stop_code(&self) -> Option<u64> {
        self.early_end.as_ref()?.stop_code
    }

    pub(super) fn reset_at_state(&self) -> Option<ResetAt> {
        self.early_end.as_ref()?.reset_at
    }

    pub(super) const fn is_terminal(&self) -> bool {
        self.state.is_terminal()
    }

    /// Returns true if the application finished the stream, but some of it is not acknowledged.
    pub(super) const fn is_delivering(&self) -> bool {
        self.state.is_sending() && self.has_fin()
    }

    /// Returns true if this half is done.
    pub(super) const fn is_spent(&self) -> bool {
        self.is_terminal() && (self.marks.has(Mark::Released) || self.marks.has(Mark::Ended))
    }

    /// Returns how many bytes the peer's limit allows beyond those already written.
    pub(super) const fn credit(&self) -> u64 {
        self.credit.limit().saturating_sub(self.buffer.end())
    }

    /// Raises the peer's limit. Returns true if it rose.
    pub(super) const fn raise_limit(&mut self, max: u64) -> bool {
        self.credit.raise(max)
    }

    /// Returns true if something waits that needs no credit: lost data, or a FIN after data that
    /// was already sent.
    pub(super) fn has_free(&self) -> bool {
        self.state.is_sending() && (self.buffer.lost().is_some() || self.has_lone_fin())
    }

    fn has_lone_fin(&self) -> bool {
        self.fin == Fin::Pending && self.buffer.unsent() == 0
    }

    /// Returns true if new data waits and the stream's limit allows some of it.
    pub(super) fn has_fresh(&self) -> bool {
        self.buffer.unsent() > 0 && self.credit.available() > 0
    }

    /// Returns true if the stream's limit blocks data and is not yet reported to the peer.
    pub(super) fn is_report_due(&self) -> bool {
        self.buffer.unsent() > 0 && self.credit.is_report_due()
    }

    /// Writes data that needs no credit, and returns its length. If the packet becomes full,
    /// [`Self::has_free`] stays true.
    pub(super) fn write_free(
        &mut self,
        id: StreamId,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
    ) -> u64 {
        let mut total = 0;
        while self.has_free() {
            let end = self.buffer.end();
            let range = self.buffer.lost().unwrap_or(end..end);
            let Some(written) =
                self.write_range(id, range.start, range.end - range.start, out, sent)
            else {
                break;
            };
            total += written;
        }
        total
    }

    /// Writes new data within the stream's limit and `credit`. Returns `None` if the packet is
    /// full.
    #[inline]
    pub(super) fn write_fresh(
        &mut self,
        id: StreamId,
        credit: u64,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
    ) -> Option<u64> {
        let wanted = self
            .buffer
            .unsent()
            .min(self.credit.available())
            .min(credit);
        let written = self.write_range(id, self.buffer.next_offset(), wanted, out, sent)?;
        self.credit.take(written);
        Some(written)
    }

    /// Writes as much as fits of the `wanted` bytes from `offset` on, with the FIN bit at the end of the stream.
    #[inline]
    fn write_range(
        &mut self,
        id: StreamId,
        offset: u64,
        wanted: u64,
        out: &mut FrameWriter<'_>,
        sent: &mut Sent,
    ) -> Option<u64> {
        let remaining = out.remaining();
        if remaining < WORTH_CUTTING && wanted > remaining as u64 {
            return None;
        }
        let is_end = self.has_fin() && offset + wanted == self.buffer.end();
        let header = StreamHeader {
            id,
            offset,
            fin: is_end,
        };
        let fill = |target: &mut [u8]| self.buffer.fill(offset, target);
        let written = out.stream(header, wanted as usize, fill)? as u64;
        self.buffer.on_sent(offset..offset + written);
        let end = if is_end && written == wanted {
            End::Fin
        } else {
            End::Open
        };
        self.on_stream_sent(end);
        sent.push(SentFrame::Stream {
            id,
            offset,
            len: written as u32,
            end,
        });
        Some(written)
    }

    const fn has_fin(&self) -> bool {
        matches!(self.fin, Fin::Pending | Fin::Sent | Fin::Acked)
    }

    fn on_stream_sent(&mut self, end: End) {
        if self.state == SendState::Ready {
            self.state = SendState::Send;
        }
        if end == End::Fin {
            self.state = SendState::DataSent;
            if self.fin == Fin::Pending {
                self.fin = Fin::Sent;
            }
        }
    }

    /// Returns the `RESET_STREAM` to send, if it is still needed.
    pub(super) fn reset_frame(&self, id: StreamId) -> Option<frame::ResetStream> {
        let end = self.early_end.as_ref()?;
        (self.state == SendState::ResetSent).then_some(frame::ResetStream {
            id,
            code: end.code,
            final_size: end.final_size,
        })
    }

    /// Returns the `STREAM_DATA_BLOCKED` to send, if the stream is still blocked.
    pub(super) fn blocked_frame(&self, id: StreamId) -> Option<frame::StreamDataBlocked> {
        let limit = self.credit.limit();
        self.is_report_due()
            .then_some(frame::StreamDataBlocked { id, limit })
    }

    pub(super) fn on_blocked_sent(&mut self) {
        self.credit.report();
        if self.state == SendState::Ready {
            self.state = SendState::Send;
        }
    }

    /// Returns true if this acknowledges everything that was missing.
    #[inline]
    pub(super) fn on_stream_acked(&mut self, offset: u64, len: u32, end: End) -> bool {
        if !self.state.is_sending() {
            return false;
        }
        self.buffer.on_acked(offset..offset + u64::from(len));
        if end == End::Fin && self.fin != Fin::Replaced {
            self.fin = Fin::Acked;
        }
        self.finish_if_acked()
    }

    /// Returns true if the latest acknowledgement shows that the peer has everything.
    pub(super) fn finish_if_acked(&mut self) -> bool {
        let told = match self.reset_at_state() {
            Some(reset) => reset.is_acked(),
            None => self.fin == Fin::Acked,
        };
        let all = told && self.buffer.is_acked();
        if all {
            self.state = SendState::DataRecvd;
        }
        all
    }

    pub(super) fn on_stream_lost(&mut self, offset: u64, len: u32, end: End) {
        if !self.state.is_sending() {
            return;
        }
        self.buffer.on_lost(offset..offset + u64::from(len));
        if end == End::Fin && self.fin == Fin::Sent {
            self.fin = Fin::Pending;
        }
    }

    /// Returns true if the acknowledgement was new.
    pub(super) fn on_reset_acked(&mut self) -> bool {
        let news = self.state == SendState::ResetSent;
        if news {
            self.state = SendState::ResetRecvd;
        }
        news
    }

    pub(super) fn on_blocked_lost(&mut self, limit: u64) {
        self.credit.on_report_lost(limit);
    }
}
