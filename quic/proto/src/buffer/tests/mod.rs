mod range_set;
mod reassembler;
mod send_buffer;
mod unordered;

use bytes::BytesMut;

use super::{Reassembler, SendBuffer, run::Run};

impl Run {
    fn capacity(&self) -> usize {
        let full = self
            .full
            .iter()
            .map(|chunk| chunk.capacity() + size_of::<BytesMut>());
        full.sum::<usize>() + self.tail.capacity()
    }
}

impl Reassembler {
    /// Returns the memory taken by data and its chunks in bytes.
    fn capacity(&self) -> usize {
        self.ready.capacity() + self.ahead.values().map(Run::capacity).sum::<usize>()
    }

    /// Returns the numbers of runs and of received ranges in unordered reads.
    fn unordered_pieces(&self) -> (usize, usize) {
        let unordered = self.unordered.as_ref();
        unordered.map_or((0, 0), |unordered| {
            (unordered.held.len(), unordered.received.len())
        })
    }
}

impl SendBuffer {
    fn chunks(&self) -> usize {
        self.chunks.len()
    }
}
