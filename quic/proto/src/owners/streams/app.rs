//! Calls of the application.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;

use super::{
    Blocked, Chunk, ClosedStream, Delivery, Direction, Priority, ReadError, RecvEnd, ResetAtError,
    StreamEvent, StreamId, Streams, Tallied, Tally, WriteError, halves::Mark, recv::Recv,
    send::Send,
};

/// Calls of the application.
impl Streams {
    /// Opens the next stream.
    ///
    /// Returns `None` at the peer's limit: the peer is informed (`STREAMS_BLOCKED`), and
    /// [`StreamEvent::Available`] follows when the limit rises.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.local.of_mut(direction).open()?;
        let id = StreamId::new(self.side, direction, index);
        self.create(id);
        Some(id)
    }

    /// Returns how many more streams the peer allows now.
    pub const fn openable(&self, direction: Direction) -> u64 {
        self.local.of(direction).credit.available()
    }

    /// Returns how many bytes the peer's limits, of the stream and of the connection, allow beyond
    /// those already written; `None` for a stream without state.
    pub fn credit(&self, id: StreamId) -> Option<u64> {
        let send = self.sends.get(id)?;
        let of_connection = self.send_credit.available();
        Some(
            send.credit()
                .min(of_connection.saturating_sub(send.buffer.unsent())),
        )
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

    /// Copies a prefix of the data into the send buffer, as much as fits.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let send = self.sends.get_mut(id).ok_or(WriteError::Closed)?;
        let written = send.write(data, self.limits.send_room())?;
        self.schedule.update_send(id, send);
        Ok(written)
    }

    /// Takes a prefix of the chunk without copying, as much as fits into the send buffer.
    pub fn write_chunk(&mut self, id: StreamId, chunk: &mut Bytes) -> Result<usize, WriteError> {
        let send = self.sends.get_mut(id).ok_or(WriteError::Closed)?;
        let written = send.write_chunk(chunk, self.limits.send_room())?;
        self.schedule.update_send(id, send);
        Ok(written)
    }

    /// Returns the number of bytes that the next write accepts: at least `least`, or the whole send
    /// buffer if that is smaller. No other stream uses this room.
    pub fn room(&mut self, id: StreamId, least: usize) -> Result<usize, WriteError> {
        let send = self.sends.get_mut(id).ok_or(WriteError::Closed)?;
        send.check_room(self.limits.send_room(), least as u64)
    }

    /// Sets the priority of the stream's data relative to other streams. It applies to waiting data
    /// at once.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), ClosedStream> {
        let send = self.sends.get_mut(id).ok_or(ClosedStream)?;
        if send.priority != priority {
            send.priority = priority;
            self.schedule.on_priority(id, send);
        }
        Ok(())
    }

    /// Returns the stream's priority; `None` if its sending part is closed or never existed.
    pub fn priority(&self, id: StreamId) -> Option<Priority> {
        self.sends.get(id).map(|send| send.priority)
    }

    /// Ends the sending part after the data written so far.
    pub fn finish(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        let result = self.sends.get_mut(id).ok_or(ClosedStream)?.finish();
        self.on_send_changed(id);
        result
    }

    /// Resets the sending part (`RESET_STREAM`); undelivered data is dropped.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let result = self.sends.get_mut(id).ok_or(ClosedStream)?.reset(code);
        if result.is_ok() {
            self.on_aborted(id);
        }
        self.on_send_changed(id);
        result
    }

    /// Returns true if the peer supports `RESET_STREAM_AT`.
    pub const fn supports_reset_at(&self) -> bool {
        self.peer_limits.reset_at
    }

    /// Resets the sending part after its first `reliable_size` bytes, which are still delivered
    /// (`RESET_STREAM_AT`), or after all written data if that is less. May be called again to
    /// deliver fewer bytes; the first code stays.
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

    /// Returns how the receiving part ended, as far as the peer has said; `None` if it is closed or
    /// never existed.
    pub fn recv_end(&self, id: StreamId) -> Option<RecvEnd> {
        self.recvs.get(id).map(Recv::end)
    }

    /// Asks for [`StreamEvent::Readable`] once [`Streams::recv_end`] is no longer
    /// [`RecvEnd::Open`].
    pub fn watch_recv(&mut self, id: StreamId) {
        if let Some(recv) = self.recvs.get_mut(id) {
            recv.marks.set(Mark::Watching);
        }
    }

    /// Asks for [`StreamEvent::Delivered`] with each acknowledgement of the sending part's data, and for the
    /// events of its end also after [`Streams::forget_send`].
    pub fn watch_send(&mut self, id: StreamId) {
        if let Some(send) = self.sends.get_mut(id) {
            send.marks.set(Mark::Watching);
        }
    }

    /// Takes back [`Streams::watch_send`].
    pub fn unwatch_send(&mut self, id: StreamId) {
        if let Some(send) = self.sends.get_mut(id) {
            send.marks.clear(Mark::Watching);
        }
    }

    /// Returns how far the data of a sending half was delivered; `None` if it was reset, has arrived as a whole, or
    /// never existed.
    pub fn delivery(&self, id: StreamId) -> Option<Delivery> {
        self.sends.get(id)?.delivery()
    }

    /// Sets the number of streams of a direction that the peer may have open at once. Earlier
    /// permissions remain.
    pub fn set_max_streams(&mut self, direction: Direction, count: u64) {
        self.peer.of_mut(direction).set_limit(count);
    }

    /// Returns true for a stream that the peer may open, or has opened, by the limit that it was
    /// told (RFC 9000 §4.6).
    pub fn may_peer_open(&self, id: StreamId) -> bool {
        id.initiator() != self.side && self.peer.of(id.direction()).allows(id.index())
    }

    /// Sets the bytes that the peer may have in flight or unread on all streams together. Limits
    /// already announced remain.
    pub fn set_receive_window(&mut self, bytes: u64) {
        self.receive_credit.set_window(bytes);
    }

    /// Reads in order. `Ok(0)` for a non-empty buffer means the end of the stream, returned once.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read(buffer, &mut self.receive_credit);
        self.on_recv_changed(id);
        result
    }

    /// Takes up to `max` bytes without copying. `None` means the end of the stream, returned once.
    pub fn read_chunk(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read_chunk(max, &mut self.receive_credit);
        self.on_recv_changed(id);
        result
    }

    /// Takes the end of the stream if everything before it was read, so that no further read is needed.
    pub fn take_end(&mut self, id: StreamId) -> bool {
        let is_over = self.recvs.get_mut(id).is_some_and(Recv::take_end);
        if is_over {
            self.on_recv_changed(id);
        }
        is_over
    }

    /// Takes up to `max` bytes, at least one, at any offset; each byte is returned once. `None`
    /// means the end of the stream, returned once when everything was read.
    ///
    /// Data not yet read in order is included. Afterwards [`Streams::read`] and
    /// [`Streams::read_chunk`] return [`ReadError::Unordered`].
    pub fn read_unordered(&mut self, id: StreamId, max: usize) -> Result<Option<Chunk>, ReadError> {
        let recv = self.recvs.get_mut(id).ok_or(ReadError::Closed)?;
        let result = recv.read_unordered(max, &mut self.receive_credit);
        self.on_recv_changed(id);
        result
    }

    /// Returns the number of bytes that can be read now.
    pub fn readable(&self, id: StreamId) -> usize {
        self.recvs.get(id).map_or(0, Recv::readable)
    }

    /// Asks the peer to stop sending (`STOP_SENDING`); data received from now on is dropped.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let recv = self.recvs.get_mut(id).ok_or(ClosedStream)?;
        if recv.stop(code, &mut self.receive_credit)? {
            self.schedule.stop(id, recv);
        }
        self.on_recv_changed(id);
        Ok(())
    }

    /// Handles the drop of the application's sending handle. An unfinished stream is reset with
    /// this code.
    pub fn forget_send(&mut self, id: StreamId, code: u64) {
        if let Some(send) = self.sends.get_mut(id) {
            if send.release(code) {
                self.on_aborted(id);
            }
            self.on_send_changed(id);
        }
    }

    /// Handles the drop of the application's receiving handle. An unread stream is stopped with
    /// this code.
    pub fn forget_recv(&mut self, id: StreamId, code: u64) {
        // A closed stream has nothing left to stop.
        let _ = self.stop(id, code);
    }

    /// Returns true if the peer acknowledged all data and the end, or the reset.
    pub fn is_send_acknowledged(&self, id: StreamId) -> bool {
        self.sends.get(id).is_none_or(Send::is_terminal)
    }

    /// Returns true if a stream was finished, but some of its data or its end is not acknowledged.
    pub fn is_delivering(&self) -> bool {
        self.sends.iter().any(Send::is_delivering)
    }

    /// Returns the bytes of streams that have not been acknowledged yet. Its cost is linear in the
    /// number of open streams.
    pub fn undelivered_bytes(&self) -> u64 {
        self.unacknowledged()
    }

    /// Returns the streams whose data waits only for the peer: for an acknowledgement or for more credit. The
    /// cost is proportional to the number of open streams.
    pub fn blocked(&self) -> impl Iterator<Item = Blocked> + '_ {
        let connection = self.send_credit.limit();
        let is_out_of_credit = self.send_credit.available() == 0;
        let blocked = self.sends.iter_with_ids().filter(move |(_, send)| {
            send.buffer.held() > 0 && !send.has_free() && (is_out_of_credit || !send.has_fresh())
        });
        blocked.map(move |(id, send)| Blocked {
            id,
            progress: if send.has_fresh() {
                send.progress().wrapping_add(connection)
            } else {
                send.progress()
            },
        })
    }

    /// Returns the code with which the peer stopped the sending part, while the stream exists.
    pub fn stop_code(&self, id: StreamId) -> Option<u64> {
        self.sends.get(id)?.stop_code()
    }

    /// Drops the data to send when the connection ends. Received data can still be read.
    pub fn on_closed(&mut self) {
        for (_, send) in self.sends.iter_mut() {
            send.on_closed();
        }
    }

    /// Begins to count the bytes of a stream. Returns those of its receiving half, if it has one, so far.
    ///
    /// # Errors
    /// Both halves are over.
    pub fn tally(&mut self, id: StreamId, tally: &Arc<dyn Tally>) -> Result<Tallied, ClosedStream> {
        let recv = self.recvs.get(id).map(Recv::tallied);
        let send = self.sends.get(id);
        if recv.is_none() && send.is_none() {
            return Err(ClosedStream);
        }
        if send.is_some() {
            self.tallies.add_send(id, tally.clone());
        }
        if let Some(before) = recv {
            self.tallies.add_recv(id, before, tally.clone());
        }
        Ok(recv.unwrap_or_default())
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns true if data of the stream was received in a 0-RTT packet, while the stream exists.
    pub fn is_early(&self, id: StreamId) -> bool {
        let is_early = |recv: &Recv| recv.marks.has(Mark::Early);
        self.any_early && self.recvs.get(id).is_some_and(is_early)
    }
}

/// Deadlines of sending parts.
impl Streams {
    /// Resets the sending part with a code at a time, unless the peer has acknowledged all of it by then.
    /// [`StreamEvent::Expired`] follows. A later call replaces an earlier one; `None` takes it back.
    pub fn expire_at(
        &mut self,
        id: StreamId,
        at: Option<Instant>,
        code: u64,
    ) -> Result<(), ClosedStream> {
        let send = self.sends.get(id).ok_or(ClosedStream)?;
        match at.filter(|_| send.state.is_sending()) {
            Some(at) => self.deadlines.set(id, at, code),
            None => self.deadlines.remove(id),
        }
        Ok(())
    }

    /// Returns the time at which [`Streams::on_timeout`] must be called.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, ..)| at)
    }

    /// Resets the streams whose time has come.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some((at, id, code)) = self.deadlines.first() {
            if at > now {
                return;
            }
            self.deadlines.remove(id);
            let is_told = self.sends.get(id).is_some_and(Send::tells_end);
            if self.reset(id, code).is_ok() && is_told {
                self.events.push_back(StreamEvent::Expired(id));
            }
        }
    }
}
