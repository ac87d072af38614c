use bytes::Bytes;

use super::{ClosedStream, Direction, ReadError, StreamEvent, StreamId, Streams, WriteError};

/// The application's side.
impl Streams {
    /// Opens the next stream.
    ///
    /// `None` at the peer's limit: it is told (STREAMS_BLOCKED), and
    /// [`StreamEvent::Available`] follows when the limit rises.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        todo!("{direction:?}")
    }

    /// The next stream the peer opened, in the order of their numbers.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        todo!("{direction:?}")
    }

    /// Copies a prefix of the data, as much as the send buffer takes.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        todo!("{id} {data:?}")
    }

    /// Takes a prefix of the chunk without copying, as much as the send buffer takes.
    pub fn write_chunk(&mut self, id: StreamId, chunk: &mut Bytes) -> Result<usize, WriteError> {
        todo!("{id} {chunk:?}")
    }

    /// Ends the sending part behind what was written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), ClosedStream> {
        todo!("{id}")
    }

    /// Gives the sending part up (RESET_STREAM); what was not delivered is dropped.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        todo!("{id} {code}")
    }

    /// Reads in order. `Ok(0)` for a buffer with room is the end of the stream, told once.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Result<usize, ReadError> {
        todo!("{id} {buffer:?}")
    }

    /// Takes up to `max` bytes without copying. `None` is the end of the stream, told once.
    pub fn read_chunk(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        todo!("{id} {max}")
    }

    /// Asks the peer to stop sending (STOP_SENDING); what arrives from now on is dropped.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        todo!("{id} {code}")
    }

    /// The application has let go of the sending part. Unfinished, it is reset with code 0.
    pub fn forget_send(&mut self, id: StreamId) {
        todo!("{id}")
    }

    /// The application has let go of the receiving part. Unread, it is stopped with code 0.
    pub fn forget_recv(&mut self, id: StreamId) {
        todo!("{id}")
    }

    /// Whether the peer has all data and the end, or the reset.
    pub fn is_send_acknowledged(&self, id: StreamId) -> bool {
        todo!("{id}")
    }

    /// The code with which the peer stopped the sending part, while the stream is held.
    pub fn stop_code(&self, id: StreamId) -> Option<u64> {
        todo!("{id}")
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        todo!()
    }
}
