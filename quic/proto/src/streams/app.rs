//! The application's calls.

use bytes::Bytes;

use super::{
    Chunk, ClosedStream, Direction, Priority, ReadError, RecvEnd, ResetAtError, StreamEvent,
    StreamId, Streams, WriteError, marks::Mark, recv::Recv, send::Send,
};

/// The application's side.
impl Streams {
    /// Opens the next stream.
    ///
    /// `None` at the peer's limit: it is told (`STREAMS_BLOCKED`), and
    /// [`StreamEvent::Available`] follows when the limit rises.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.local.of_mut(direction).open()?;
        let id = StreamId::new(self.side, direction, index);
        self.create(id);
        Some(id)
    }

    /// Returns the next stream the peer opened, in the order of their numbers.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.peer.of_mut(direction).accept()?;
        let id = StreamId::new(self.side.peer(), direction, index);
        if !self.recvs.contains(id) {
            self.create(id);
        }
        Some(id)
    }

    /// Copies a prefix of the data, as much as the send buffer takes.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let send = self.sends.get_mut(id).ok_or(WriteError::Closed)?;
        let written = send.write(data, self.limits.send_room())?;
        self.schedule.update_send(id, send);
        Ok(written)
    }

    /// Takes a prefix of the chunk without copying, as much as the send buffer takes.
    pub fn write_chunk(&mut self, id: StreamId, chunk: &mut Bytes) -> Result<usize, WriteError> {
        let send = self.sends.get_mut(id).ok_or(WriteError::Closed)?;
        let written = send.write_chunk(chunk, self.limits.send_room())?;
        self.schedule.update_send(id, send);
        Ok(written)
    }

    /// Decides when the stream's data goes, compared with the other streams'. What waits already is
    /// moved at once.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), ClosedStream> {
        let send = self.sends.get_mut(id).ok_or(ClosedStream)?;
        if send.priority != priority {
            send.priority = priority;
            self.schedule.on_priority(id, send);
        }
        Ok(())
    }

    /// Returns the stream's priority; `None` if its sending part is gone or never was.
    pub fn priority(&self, id: StreamId) -> Option<Priority> {
        self.sends.get(id).map(|send| send.priority)
    }

    /// Ends the sending part behind what was written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        let result = self.sends.get_mut(id).ok_or(ClosedStream)?.finish();
        self.settle_send(id);
        result
    }

    /// Gives the sending part up (`RESET_STREAM`); what was not delivered is dropped.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let result = self.sends.get_mut(id).ok_or(ClosedStream)?.reset(code);
        if result.is_ok() {
            self.on_aborted(id);
        }
        self.settle_send(id);
        result
    }

    /// Gives the sending part up behind its first `reliable_size` bytes, which still arrive
    /// (`RESET_STREAM_AT`), or behind what was written if that is less. May be called again to let
    /// fewer arrive; the first code stays.
    pub fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        if !self.peer_limits.reset_at {
            return Err(ResetAtError::Unsupported);
        }
        let send = self.sends.get_mut(id).ok_or(ResetAtError::Closed)?;
        send.reset_at(code, reliable_size)
            .map_err(|ClosedStream| ResetAtError::Closed)?;
        self.schedule.leave(id, &mut send.places);
        self.schedule.update_send(id, send);
        Ok(())
    }

    /// Returns how the receiving part ended, as far as the peer said; `None` if it is gone or never
    /// was.
    pub fn recv_end(&self, id: StreamId) -> Option<RecvEnd> {
        self.recvs.get(id).map(Recv::end)
    }

    /// Asks for [`StreamEvent::Readable`] once [`Streams::recv_end`] is no longer open.
    pub fn watch_recv(&mut self, id: StreamId) {
        if let Some(recv) = self.recvs.get_mut(id) {
            recv.marks.set(Mark::Watching);
        }
    }

    /// Lets the peer have so many streams of a direction open at once, from now on. What it was
    /// allowed before stays allowed.
    pub fn set_max_streams(&mut self, direction: Direction, count: u64) {
        self.peer.of_mut(direction).set_limit(count);
    }

    /// Lets the peer have so many bytes under way or unread on all streams together, from now on.
    /// A limit that the peer was told stays allowed.
    pub fn set_receive_window(&mut self, bytes: u64) {
        self.receive_credit.set_window(bytes);
    }

    /// Reads in order. `Ok(0)` for a buffer with room is the end of the stream, told once.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read(buffer, &mut self.receive_credit);
        self.settle_recv(id);
        result
    }

    /// Takes up to `max` bytes without copying. `None` is the end of the stream, told once.
    pub fn read_chunk(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read_chunk(max, &mut self.receive_credit);
        self.settle_recv(id);
        result
    }

    /// Takes up to `max` bytes, at least one, from wherever they arrived; every byte once. `None` is
    /// the end of the stream, told once when everything was read.
    ///
    /// Data that was not read in order before is among it. Afterwards [`Streams::read`] and
    /// [`Streams::read_chunk`] return [`ReadError::Unordered`].
    pub fn read_unordered(&mut self, id: StreamId, max: usize) -> Result<Option<Chunk>, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read_unordered(max, &mut self.receive_credit);
        self.settle_recv(id);
        result
    }

    /// Returns the number of bytes that can be read now.
    pub fn readable(&self, id: StreamId) -> usize {
        self.recvs.get(id).map_or(0, Recv::readable)
    }

    /// Asks the peer to stop sending (`STOP_SENDING`); what arrives from now on is dropped.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let recv = self.recvs.get_mut(id).ok_or(ClosedStream)?;
        if recv.stop(code, &mut self.receive_credit)? {
            self.schedule.stop(id, recv);
        }
        self.settle_recv(id);
        Ok(())
    }

    /// The application has let go of the sending part. Unfinished, it is reset with code 0.
    pub fn forget_send(&mut self, id: StreamId) {
        if let Some(send) = self.sends.get_mut(id) {
            if send.release() {
                self.on_aborted(id);
            }
            self.settle_send(id);
        }
    }

    /// The application has let go of the receiving part. Unread, it is stopped with code 0.
    pub fn forget_recv(&mut self, id: StreamId) {
        // Closed is fine: there is nothing left to stop then.
        let _ = self.stop(id, 0);
    }

    /// Returns true if the peer has all data and the end, or the reset.
    pub fn is_send_acknowledged(&self, id: StreamId) -> bool {
        self.sends.get(id).is_none_or(Send::is_terminal)
    }

    /// The code with which the peer stopped the sending part, while the stream is held.
    pub fn stop_code(&self, id: StreamId) -> Option<u64> {
        self.sends.get(id)?.stop_code()
    }

    /// The connection is over: nothing is sent any more. What came can still be read.
    pub fn on_closed(&mut self) {
        for (_, send) in self.sends.iter_mut() {
            send.on_closed();
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns true if data of the stream came in a 0-RTT packet, while the stream is held.
    pub fn is_early(&self, id: StreamId) -> bool {
        self.recvs
            .get(id)
            .is_some_and(|recv| recv.marks.has(Mark::Early))
    }
}
