//! Received stream frames.

use crate::{
    owners::streams::{StreamEvent, StreamId, Streams, flow::opening::Standing, halves::Mark},
    wire::{error::Violation, frame},
};

/// Handlers of received frames.
///
/// Frames for closed streams are ignored; frames that break a rule close the connection, and the
/// caller adds the frame type to the error.
impl Streams {
    /// Notes that data of the stream was received in a 0-RTT packet (RFC 9001 §4.6).
    pub fn on_early_data(&mut self, id: StreamId) {
        if let Some(recv) = self.recvs.get_mut(id) {
            recv.marks.set(Mark::Early);
            self.any_early = true;
        }
    }

    /// Handles STREAM.
    #[inline]
    pub fn on_stream(&mut self, frame: &frame::Stream<'_>) -> Result<(), Violation> {
        self.check_receiving(frame.id)?;
        let Some(recv) = self.recvs.get_mut(frame.id) else {
            return Ok(());
        };
        recv.on_stream(frame, &mut self.receive_credit)?;
        self.after_receiving(frame.id);
        Ok(())
    }

    /// Handles `RESET_STREAM`.
    pub fn on_reset_stream(&mut self, frame: &frame::ResetStream) -> Result<(), Violation> {
        self.check_receiving(frame.id)?;
        let Some(recv) = self.recvs.get_mut(frame.id) else {
            return Ok(());
        };
        recv.on_reset_stream(frame, &mut self.receive_credit)?;
        self.after_receiving(frame.id);
        Ok(())
    }

    /// Handles `RESET_STREAM_AT`.
    pub fn on_reset_stream_at(&mut self, frame: &frame::ResetStreamAt) -> Result<(), Violation> {
        self.check_receiving(frame.id)?;
        let Some(recv) = self.recvs.get_mut(frame.id) else {
            return Ok(());
        };
        recv.on_reset_stream_at(frame, &mut self.receive_credit)?;
        self.after_receiving(frame.id);
        Ok(())
    }

    #[inline]
    fn after_receiving(&mut self, id: StreamId) {
        let Some(recv) = self.recvs.get_mut(id) else {
            return;
        };
        self.tallies.on_recv(id, || recv.tallied());
        if recv.wakes_reader() {
            self.events.push_back(StreamEvent::Readable(id));
        }
        if recv.is_spent() {
            self.on_recv_changed(id);
        }
    }

    /// Handles `STOP_SENDING`. The stream is reset with the same code.
    pub fn on_stop_sending(&mut self, frame: &frame::StopSending) -> Result<(), Violation> {
        self.check_sending(frame.id)?;
        let Some(send) = self.sends.get_mut(frame.id) else {
            return Ok(());
        };
        if send.on_stop_sending(frame.code) {
            if send.tells_end() {
                let (id, code) = (frame.id, frame.code);
                self.events.push_back(StreamEvent::Stopped { id, code });
            }
            self.on_aborted(frame.id);
        }
        Ok(())
    }

    /// Handles `MAX_DATA`.
    pub fn on_max_data(&mut self, frame: &frame::MaxData) -> Result<(), Violation> {
        self.send_credit.raise(frame.max);
        Ok(())
    }

    /// Handles `MAX_STREAM_DATA`.
    pub fn on_max_stream_data(&mut self, frame: &frame::MaxStreamData) -> Result<(), Violation> {
        self.check_sending(frame.id)?;
        let Some(send) = self.sends.get_mut(frame.id) else {
            return Ok(());
        };
        if send.raise_limit(frame.max) {
            self.schedule.update_send(frame.id, send);
        }
        Ok(())
    }

    /// Handles `MAX_STREAMS`.
    pub fn on_max_streams(&mut self, frame: &frame::MaxStreams) -> Result<(), Violation> {
        self.raise_streams(frame.direction, frame.max);
        Ok(())
    }

    /// Handles `DATA_BLOCKED`.
    pub fn on_data_blocked(&mut self, frame: &frame::DataBlocked) -> Result<(), Violation> {
        self.receive_credit.on_blocked(frame.limit);
        Ok(())
    }

    /// Handles `STREAM_DATA_BLOCKED`.
    pub fn on_stream_data_blocked(
        &mut self,
        frame: &frame::StreamDataBlocked,
    ) -> Result<(), Violation> {
        self.check_receiving(frame.id)?;
        if let Some(recv) = self.recvs.get_mut(frame.id) {
            recv.on_blocked(frame.limit);
            self.schedule.update_recv(frame.id, recv);
        }
        Ok(())
    }

    /// Handles `STREAMS_BLOCKED`.
    pub fn on_streams_blocked(&mut self, frame: &frame::StreamsBlocked) -> Result<(), Violation> {
        self.peer
            .of_mut(frame.direction)
            .credit
            .on_blocked(frame.limit);
        Ok(())
    }

    /// Checks that the peer may send on the stream, and opens it if it is new.
    #[inline]
    fn check_receiving(&mut self, id: StreamId) -> Result<(), Violation> {
        if self.recvs.get_mut(id).is_some() {
            return Ok(());
        }
        if !self.may_receive(id) {
            return Err(Violation::StreamOnlySends);
        }
        self.check_open(id)
    }

    /// Checks that the peer may control our sending on the stream, and opens it if it is new.
    fn check_sending(&mut self, id: StreamId) -> Result<(), Violation> {
        if self.sends.get_mut(id).is_some() {
            return Ok(());
        }
        if !self.may_send(id) {
            return Err(Violation::StreamOnlyReceives);
        }
        self.check_open(id)
    }

    /// Opens a stream of the peer, or refuses one of ours that we did not open. Does nothing if the
    /// stream is closed.
    #[cold]
    fn check_open(&mut self, id: StreamId) -> Result<(), Violation> {
        let direction = id.direction();
        if id.initiator() == self.side {
            return if self.local.of(direction).has_opened(id.index()) {
                Ok(())
            } else {
                Err(Violation::StreamNotOpened)
            };
        }
        let peer = self.peer.of_mut(direction);
        let Some(standing) = peer.on_frame(id.index()) else {
            return Err(Violation::StreamLimit);
        };
        if peer.announce_once() {
            self.events.push_back(StreamEvent::Opened(direction));
        }
        if standing == Standing::Waiting {
            self.create(id);
        }
        Ok(())
    }
}
