//! The receiving part of a stream.

use bytes::Bytes;

use super::{
    Chunk, ClosedStream, ReadError, RecvEnd, StreamId, Timing,
    flow::{ReceiveCredit, window::Window},
    halves::{Mark, Marks, tally::Tallied},
};
use crate::{
    buffer::Reassembler,
    wire::{VarInt, error::Violation, frame, limits},
};

/// Bytes of the window per piece: the limit is the larger of this and [`limits::STREAM_PIECES`]. A
/// peer that fills its packets cannot reach it, however many are lost.
const BYTES_PER_PIECE: u64 = 1024;

/// Bytes of the connection's window per piece of all streams together: the limit is the larger of
/// this and [`limits::ALL_STREAM_PIECES`]. It is about the cost of a piece in addition to its data.
const SHARED_BYTES_PER_PIECE: u64 = 256;

/// The receiving part of a stream (RFC 9000 §3.2).
///
/// ```text
///        +-------+
///        | Recv  | ---- RESET_STREAM ----.
///        +-------+                       |
///            | FIN                       |
///            v                           v
///        +-------+                   +-------+
///        | Size  | -- RESET_STREAM > | Reset |
///        | Known |                   | Recvd |
///        +-------+                   +-------+
///            | all data                  | the application
///            v                           | knows
///        +-------+                       v
///        | Data  |                   +-------+
///        | Recvd |                   | Reset |
///        +-------+                   | Read  |
///            | end read              +-------+
///            v
///        +-------+
///        | Data  |
///        | Read  |
///        +-------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecvState {
    Recv,
    SizeKnown,
    DataRecvd,
    DataRead,
    ResetRecvd,
    ResetRead,
}

impl RecvState {
    /// Returns true if more data may be needed.
    pub(super) const fn is_receiving(self) -> bool {
        matches!(self, Self::Recv | Self::SizeKnown)
    }
}

/// Whether the application wants the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Wanted,
    /// `STOP_SENDING` with this code must be sent or is in flight.
    Asked(u64),
    /// The peer acknowledged the stop.
    Acked,
}

/// The receiving part of one stream.
#[derive(Debug)]
pub(super) struct Recv {
    pub(super) state: RecvState,
    pub(super) data: Reassembler,
    pub(super) credit: ReceiveCredit,
    pub(super) final_size: Option<u64>,
    pub(super) reset_code: u64,
    /// Number of bytes still delivered before the reset, after a `RESET_STREAM_AT`.
    pub(super) reliable: Option<u64>,
    stop: Stop,
    pub(super) marks: Marks,
}

impl Recv {
    /// Creates a receiving part whose peer may send `window` bytes beyond the data read.
    pub(super) fn new(window: Window) -> Self {
        Self {
            state: RecvState::Recv,
            // The credit limits the bytes.
            data: Reassembler::new(u64::MAX, pieces(window.size())),
            credit: ReceiveCredit::new(window),
            final_size: None,
            reset_code: 0,
            reliable: None,
            stop: Stop::Wanted,
            marks: Marks::default(),
        }
    }

    /// Handles STREAM. `total` is the credit of the connection.
    #[inline]
    pub(super) fn on_stream(
        &mut self,
        frame: &frame::Stream<'_>,
        total: &mut ReceiveCredit,
    ) -> Result<(), Violation> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        self.check_final_size(end, frame.fin.then_some(end))?;
        self.receive_up_to(end, total)?;
        if !self.state.is_receiving() {
            return Ok(());
        }
        if frame.fin {
            self.final_size = Some(end);
            self.state = RecvState::SizeKnown;
        }
        if self.stop != Stop::Wanted {
            self.return_credit(total);
            return Ok(());
        }
        let data = self.wanted(frame);
        self.data
            .insert(frame.offset, data)
            .map_err(|_| Violation::StreamPieces)?;
        self.count_pieces(total);
        if total.pieces() > pieces_of_all(total.window()) {
            return Err(Violation::StreamPieces);
        }
        if self.reliable.is_none() && self.final_size == Some(self.data.contiguous_end()) {
            self.state = RecvState::DataRecvd;
        }
        Ok(())
    }

    /// Handles `RESET_STREAM`. Unread data is dropped, unless all of it has arrived (RFC 9000 §3.2
    /// leaves the choice).
    pub(super) fn on_reset_stream(
        &mut self,
        frame: &frame::ResetStream,
        total: &mut ReceiveCredit,
    ) -> Result<(), Violation> {
        self.check_final_size(frame.final_size, Some(frame.final_size))?;
        self.receive_up_to(frame.final_size, total)?;
        self.check_code(frame.code)?;
        if self.state.is_receiving() {
            self.final_size = Some(frame.final_size);
            self.reset_code = frame.code;
            self.be_reset(total);
        }
        Ok(())
    }

    /// Checks that the final size does not change and that no data lies beyond it (RFC 9000 §4.5).
    #[inline]
    pub(super) fn check_final_size(&self, end: u64, claimed: Option<u64>) -> Result<(), Violation> {
        let violation = match (self.final_size, claimed) {
            (Some(known), _) if end > known => Violation::DataBeyondFinalSize,
            (Some(known), Some(claimed)) if claimed != known => Violation::FinalSizeChanged,
            (None, Some(claimed)) if claimed < self.credit.received() => {
                Violation::FinalSizeBelowReceived
            }
            _ => return Ok(()),
        };
        Err(violation)
    }

    #[inline]
    pub(super) fn receive_up_to(
        &mut self,
        end: u64,
        total: &mut ReceiveCredit,
    ) -> Result<(), Violation> {
        let more = end.saturating_sub(self.credit.received());
        let violation = if end > VarInt::MAX.get() {
            Violation::StreamOffset
        } else if !self.credit.allows(more) {
            Violation::StreamDataLimit
        } else if !total.allows(more) {
            Violation::ConnectionDataLimit
        } else {
            self.credit.receive(more);
            total.receive(more);
            return Ok(());
        };
        Err(violation)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop != Stop::Wanted
    }

    /// Drops held data and returns its credit to the peer (RFC 9000 §4.2).
    pub(super) fn discard(&mut self, total: &mut ReceiveCredit) {
        self.data = Reassembler::new(0, 0);
        self.count_pieces(total);
        self.return_credit(total);
    }

    #[inline]
    fn count_pieces(&mut self, total: &mut ReceiveCredit) {
        let pieces = self.data.pieces();
        if pieces != self.credit.pieces() {
            self.credit.count_pieces(pieces, total);
        }
    }

    pub(super) fn return_credit(&mut self, total: &mut ReceiveCredit) {
        let unread = self.credit.unread();
        self.credit.discard(unread);
        total.discard(unread);
    }

    pub(super) fn read(
        &mut self,
        target: &mut [u8],
        total: &mut ReceiveCredit,
    ) -> Result<usize, ReadError> {
        self.check_ordered()?;
        self.check_readable()?;
        if target.is_empty() {
            return Ok(0);
        }
        let most = self.reliable_left(target.len());
        match self.data.read(target.split_at_mut(most).0) {
            0 => self.at_gap().map(|()| 0),
            len => {
                self.consume(len as u64, total);
                Ok(len)
            }
        }
    }

    pub(super) fn read_chunk(
        &mut self,
        max: usize,
        total: &mut ReceiveCredit,
    ) -> Result<Option<Bytes>, ReadError> {
        self.check_ordered()?;
        self.check_readable()?;
        if max == 0 {
            return Ok(Some(Bytes::new()));
        }
        let max = self.reliable_left(max);
        let Some(chunk) = self.data.read_chunk(max) else {
            return self.at_gap().map(|()| None);
        };
        self.consume(chunk.len() as u64, total);
        Ok(Some(chunk))
    }

    /// Reads available data in any order. Ordered reads are refused from now on.
    pub(super) fn read_unordered(
        &mut self,
        max: usize,
        total: &mut ReceiveCredit,
    ) -> Result<Option<Chunk>, ReadError> {
        self.check_readable()?;
        let end = self.reliable.unwrap_or(u64::MAX);
        let Some((offset, bytes)) = self.data.read_unordered(max.max(1), end) else {
            return self.at_gap().map(|()| None);
        };
        self.count_pieces(total);
        self.consume(bytes.len() as u64, total);
        Ok(Some(Chunk { offset, bytes }))
    }

    const fn check_ordered(&self) -> Result<(), ReadError> {
        if self.data.is_unordered() {
            return Err(ReadError::Unordered);
        }
        Ok(())
    }

    /// Returns the bytes so far, for the application that counts them.
    pub(super) const fn tallied(&self) -> Tallied {
        let received = self.credit.received();
        Tallied {
            received,
            consumed: received - self.credit.unread(),
        }
    }

    /// Returns the number of bytes that can be read now.
    pub(super) fn readable(&self) -> usize {
        match self.state {
            RecvState::Recv | RecvState::SizeKnown | RecvState::DataRecvd => {
                self.reliable_left(self.data.readable())
            }
            RecvState::DataRead | RecvState::ResetRecvd | RecvState::ResetRead => 0,
        }
    }

    fn check_readable(&mut self) -> Result<(), ReadError> {
        if self.stop != Stop::Wanted {
            return Err(ReadError::Closed);
        }
        match self.state {
            RecvState::DataRead | RecvState::ResetRead => Err(ReadError::Closed),
            RecvState::ResetRecvd => {
                self.state = RecvState::ResetRead;
                Err(ReadError::Reset(self.reset_code))
            }
            RecvState::Recv | RecvState::SizeKnown | RecvState::DataRecvd => Ok(()),
        }
    }

    /// Handles a read without data: at the end, or to wait for more.
    fn at_gap(&mut self) -> Result<(), ReadError> {
        if self.state == RecvState::DataRecvd {
            self.state = RecvState::DataRead;
            return Ok(());
        }
        self.marks.set(Mark::Waiting);
        Err(ReadError::Blocked)
    }

    /// Takes the end if everything before it was read.
    pub(super) fn take_end(&mut self) -> bool {
        let is_over = self.state == RecvState::DataRecvd && self.readable() == 0;
        if is_over {
            self.state = RecvState::DataRead;
        }
        is_over
    }

    fn consume(&mut self, bytes: u64, total: &mut ReceiveCredit) {
        self.credit.consume(bytes);
        total.consume(bytes);
        self.end_reliable(total);
    }

    /// Stops the stream for the application. Returns true if `STOP_SENDING` must be sent.
    pub(super) fn stop(
        &mut self,
        code: u64,
        total: &mut ReceiveCredit,
    ) -> Result<bool, ClosedStream> {
        if self.stop != Stop::Wanted {
            return Err(ClosedStream);
        }
        match self.state {
            // The peer has already ended it, and the rest of its data is unwanted.
            RecvState::SizeKnown if self.reliable.is_some() => self.state = RecvState::ResetRead,
            RecvState::Recv | RecvState::SizeKnown => self.stop = Stop::Asked(code),
            RecvState::DataRecvd => self.state = RecvState::DataRead,
            RecvState::ResetRecvd => self.state = RecvState::ResetRead,
            RecvState::DataRead | RecvState::ResetRead => return Err(ClosedStream),
        }
        self.discard(total);
        self.marks.clear(Mark::Waiting);
        Ok(self.stop != Stop::Wanted)
    }

    /// Returns true, once, if a blocked reader should try again.
    #[inline]
    pub(super) fn wakes_reader(&mut self) -> bool {
        let ended = self.end() != RecvEnd::Open && self.marks.clear(Mark::Watching);
        ended | self.wakes_blocked_reader()
    }

    fn wakes_blocked_reader(&mut self) -> bool {
        self.marks.has(Mark::Waiting)
            && (self.data.readable() > 0 || !self.state.is_receiving())
            && self.marks.clear(Mark::Waiting)
    }

    /// Returns true if this half is done: the application knows the end, or it wants no data and
    /// both ends know the final size and the stop.
    pub(super) fn is_spent(&self) -> bool {
        match self.state {
            RecvState::DataRead | RecvState::ResetRead => true,
            RecvState::ResetRecvd => self.stop != Stop::Wanted,
            RecvState::SizeKnown => self.stop == Stop::Acked,
            RecvState::Recv | RecvState::DataRecvd => false,
        }
    }

    /// Returns the `STOP_SENDING` to send, if it is still needed.
    pub(super) fn stop_frame(&self, id: StreamId) -> Option<frame::StopSending> {
        match self.stop {
            Stop::Asked(code) if self.state.is_receiving() => Some(frame::StopSending { id, code }),
            _ => None,
        }
    }

    pub(super) fn on_stop_acked(&mut self) {
        if self.stop != Stop::Wanted {
            self.stop = Stop::Acked;
        }
    }

    /// Returns true if the peer should be told a new limit. This is not needed once the final size
    /// is known (RFC 9000 §13.3).
    #[inline]
    pub(super) fn is_credit_due(&self) -> bool {
        self.credit.is_due() && self.state == RecvState::Recv && self.stop == Stop::Wanted
    }

    /// Grows the window before a limit is sent, if the application needs that, to at least
    /// `widest`, the window that another stream of this connection needed. Returns its new size if
    /// it grew.
    pub(super) fn tune(&mut self, timing: Timing, widest: u64) -> Option<u64> {
        if !self.credit.tune(timing) {
            return None;
        }
        self.credit.raise_window(widest);
        let window = self.credit.window();
        self.data.allow_pieces(pieces(window));
        Some(window)
    }

    /// Returns the `MAX_STREAM_DATA` to send, if it is still needed.
    pub(super) fn credit_frame(&self, id: StreamId) -> Option<frame::MaxStreamData> {
        let max = self.credit.target();
        self.is_credit_due()
            .then_some(frame::MaxStreamData { id, max })
    }

    pub(super) const fn on_credit_sent(&mut self) {
        self.credit.advertise();
    }

    pub(super) const fn on_credit_lost(&mut self, max: u64) {
        self.credit.on_lost(max);
    }

    /// Notes that the peer is blocked at this limit.
    pub(super) const fn on_blocked(&mut self, limit: u64) {
        self.credit.on_blocked(limit);
    }
}

/// Returns the number of separate pieces allowed for a window.
fn pieces(window: u64) -> usize {
    let pieces = usize::try_from(window / BYTES_PER_PIECE).unwrap_or(usize::MAX);
    pieces.max(limits::STREAM_PIECES)
}

/// Returns the number of separate pieces allowed for all streams: a peer whose packets contain
/// frames of many streams produces more pieces than one that fills its packets.
pub(super) fn pieces_of_all(window: u64) -> usize {
    let pieces = usize::try_from(window / SHARED_BYTES_PER_PIECE).unwrap_or(usize::MAX);
    pieces.max(limits::ALL_STREAM_PIECES)
}
