//! Resets with reliable data (draft-ietf-quic-reliable-stream-reset).

use crate::{
    owners::streams::{
        ClosedStream, RecvEnd, StreamId,
        flow::ReceiveCredit,
        halves::Mark,
        recv::{Recv, RecvState},
        send::{Fin, ResetAt, Send, SendState, Told},
    },
    wire::{error::Violation, frame},
};

impl Send {
    /// Resets the stream for the application after its first `reliable_size` bytes. A smaller size
    /// replaces an earlier one; the code stays.
    pub(in crate::owners::streams) fn reset_at(
        &mut self,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ClosedStream> {
        if !self.state.is_sending() {
            return Err(ClosedStream);
        }
        let earlier = self.reset_at_state();
        let before = earlier.map_or(u64::MAX, |reset| reset.reliable_size);
        let reliable_size = reliable_size.min(self.buffer.end()).min(before);
        self.marks.set(Mark::Ended);
        self.marks.clear(Mark::Waiting);
        if reliable_size < before {
            self.early_end.get_or_insert_default().reset_at = Some(ResetAt {
                code: earlier.map_or(code, |reset| reset.code),
                reliable_size,
                told: Told::Pending,
            });
            self.fin = Fin::Replaced;
            self.buffer.give_up(reliable_size);
        }
        Ok(())
    }

    /// Returns true if `RESET_STREAM_AT` should be sent: like a FIN, it follows the data, so that
    /// its final size is within the peer's limits.
    pub(in crate::owners::streams) fn is_reset_at_due(&self) -> bool {
        let reset = self.reset_at_state();
        let pending = reset.is_some_and(|it| it.told == Told::Pending);
        pending && self.state.is_sending() && self.buffer.unsent() == 0
    }

    pub(in crate::owners::streams) fn reset_at_frame(
        &self,
        id: StreamId,
    ) -> Option<frame::ResetStreamAt> {
        let reset = self.reset_at_state().filter(|_| self.is_reset_at_due())?;
        Some(frame::ResetStreamAt {
            id,
            code: reset.code,
            final_size: self.buffer.next_offset(),
            reliable_size: reset.reliable_size,
        })
    }

    fn reset_at_mut(&mut self) -> Option<&mut ResetAt> {
        self.early_end.as_mut()?.reset_at.as_mut()
    }

    pub(in crate::owners::streams) fn on_reset_at_sent(&mut self) {
        self.state = SendState::DataSent;
        if let Some(reset) = self.reset_at_mut() {
            reset.told = Told::Sent;
        }
    }

    /// Notes that the frame with this reliable size was acknowledged. Returns true if everything is
    /// acknowledged now. Only the smallest size counts.
    pub(in crate::owners::streams) fn on_reset_at_acked(&mut self, reliable_size: u64) -> bool {
        let is_sending = self.state.is_sending();
        match self.reset_at_mut() {
            Some(reset) if reset.reliable_size == reliable_size && is_sending => {
                reset.told = Told::Acked;
                self.finish_if_acked()
            }
            _ => false,
        }
    }

    pub(in crate::owners::streams) fn on_reset_at_lost(&mut self, reliable_size: u64) {
        match self.reset_at_mut() {
            Some(reset) if reset.reliable_size == reliable_size && reset.told == Told::Sent => {
                reset.told = Told::Pending;
            }
            _ => {}
        }
    }
}

impl Recv {
    /// Handles `RESET_STREAM_AT`, which like a FIN says how much is still to come.
    pub(in crate::owners::streams) fn on_reset_stream_at(
        &mut self,
        frame: &frame::ResetStreamAt,
        total: &mut ReceiveCredit,
    ) -> Result<(), Violation> {
        self.check_final_size(frame.final_size, Some(frame.final_size))?;
        self.receive_up_to(frame.final_size, total)?;
        if self.is_reset() && frame.code != self.reset_code {
            return Err(Violation::ResetCodeChanged);
        }
        if !self.state.is_receiving() {
            return Ok(());
        }
        self.final_size = Some(frame.final_size);
        self.reset_code = frame.code;
        self.state = RecvState::SizeKnown;
        let before = self.reliable.unwrap_or(u64::MAX);
        self.reliable = Some(before.min(frame.reliable_size));
        if self.is_stopped() {
            self.return_credit(total);
            self.be_reset(total);
        } else {
            self.end_reliable(total);
        }
        Ok(())
    }

    /// Checks that the code of a reset does not change after `RESET_STREAM_AT`. Two plain resets
    /// may differ: RFC 9000 does not forbid it.
    pub(in crate::owners::streams) fn check_code(&self, code: u64) -> Result<(), Violation> {
        if self.reliable.is_some() && code != self.reset_code {
            return Err(Violation::ResetCodeChanged);
        }
        Ok(())
    }

    const fn is_reset(&self) -> bool {
        self.reliable.is_some()
            || matches!(self.state, RecvState::ResetRecvd | RecvState::ResetRead)
    }

    /// Ends delivery; the application learns of the reset next.
    pub(in crate::owners::streams) fn be_reset(&mut self, total: &mut ReceiveCredit) {
        self.state = RecvState::ResetRecvd;
        self.discard(total);
    }

    /// Ends the stream with the reset once the last byte to deliver before it was read.
    pub(in crate::owners::streams) fn end_reliable(&mut self, total: &mut ReceiveCredit) {
        let end = self.reliable.unwrap_or(u64::MAX);
        if self.state == RecvState::SizeKnown && self.data.is_read_until(end) {
            self.be_reset(total);
        }
    }

    /// Returns the part of a frame's data that must still be delivered.
    pub(in crate::owners::streams) fn wanted<'a>(&self, frame: &frame::Stream<'a>) -> &'a [u8] {
        let left = self
            .reliable
            .unwrap_or(u64::MAX)
            .saturating_sub(frame.offset);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        frame.data.get(..left).unwrap_or(frame.data)
    }

    /// Returns the number of bytes, at most `most`, that may be read before a reset.
    pub(in crate::owners::streams) fn reliable_left(&self, most: usize) -> usize {
        let end = self.reliable.unwrap_or(u64::MAX);
        let left = end.saturating_sub(self.data.consumed());
        usize::try_from(left).unwrap_or(usize::MAX).min(most)
    }

    pub(in crate::owners::streams) const fn end(&self) -> RecvEnd {
        match self.state {
            RecvState::Recv | RecvState::SizeKnown if self.reliable.is_none() => RecvEnd::Open,
            RecvState::DataRecvd | RecvState::DataRead => RecvEnd::Complete,
            _ => RecvEnd::Reset(self.reset_code),
        }
    }
}
