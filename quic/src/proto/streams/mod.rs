//! Streams (RFC 9000 §2 to §4): both state machines, buffers, credit.
#![allow(unused_variables, reason = "a stand-in until the owner arrives")]

mod id;

use bytes::Bytes;

pub use id::{Direction, StreamId};

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams;

/// What the application may want to know about streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened one.
    Opened(Direction),
    /// There is something to read.
    Readable(StreamId),
    /// There is room to write.
    Writable(StreamId),
    /// The peer reads no more.
    Stopped {
        /// Which.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// Everything was acknowledged.
    Acknowledged(StreamId),
    /// One more may be opened.
    Available(Direction),
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// No room.
    Blocked,
    /// The peer reads no more.
    Stopped(u64),
    /// Finished or reset.
    Closed,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Nothing there.
    Blocked,
    /// The peer reset it.
    Reset(u64),
    /// Stopped.
    Closed,
}

impl Streams {
    /// Opens.
    pub fn open(&mut self, dir: Direction) -> Option<StreamId> {
        todo!()
    }
    /// Accepts.
    pub fn accept(&mut self, dir: Direction) -> Option<StreamId> {
        todo!()
    }
    /// Writes.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        todo!()
    }
    /// Writes.
    pub fn write_chunk(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        todo!()
    }
    /// Finishes.
    pub fn finish(&mut self, id: StreamId) {
        todo!()
    }
    /// Resets.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        todo!()
    }
    /// Reads.
    pub fn read(&mut self, id: StreamId, out: &mut [u8]) -> Result<usize, ReadError> {
        todo!()
    }
    /// Reads.
    pub fn read_chunk(&mut self, id: StreamId, max: usize) -> Result<Option<Bytes>, ReadError> {
        todo!()
    }
    /// Stops.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        todo!()
    }
    /// Drops the send handle.
    pub fn forget_send(&mut self, id: StreamId) {
        todo!()
    }
    /// Drops the receive handle.
    pub fn forget_recv(&mut self, id: StreamId) {
        todo!()
    }
}
