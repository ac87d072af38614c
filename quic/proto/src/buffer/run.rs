//! Runs of received bytes without gaps, used by ordered and unordered reads.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Largest chunk in which received bytes are collected.
const MAX_CHUNK: usize = 32 * 1024;
/// Size below which two neighbouring chunks are merged.
const SMALL: usize = 2048;

/// A limit of the reassembler that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// The data is too far beyond what was read.
    Bytes,
    /// The data has too many gaps.
    Pieces,
}

/// Bytes without a gap.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Bytes held.
    len: usize,
    /// Capacity of the next chunk in bytes.
    next_chunk: usize,
    pub(super) full: VecDeque<BytesMut>,
    pub(super) tail: BytesMut,
}

impl Run {
    /// Returns the bytes held.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the offset behind a run that starts at `start`.
    pub(super) fn end(&self, start: u64) -> u64 {
        start + self.len as u64
    }

    fn room(&self) -> usize {
        self.tail.capacity() - self.tail.len()
    }

    #[inline]
    pub(super) fn append(&mut self, mut data: &[u8]) {
        self.len += data.len();
        loop {
            let room = self.room();
            if data.len() <= room {
                return self.tail.extend_from_slice(data);
            }
            let (now, later) = data.split_at(room);
            self.tail.extend_from_slice(now);
            data = later;
            self.grow(data.len());
        }
    }

    /// Makes room behind a full tail. A tail that was read to its end is reused; otherwise a chunk
    /// of twice the previous size is added, so that a run takes at most twice the memory of its
    /// data.
    #[cold]
    fn grow(&mut self, wanted: usize) {
        if self.tail.is_empty() && self.tail.try_reclaim(wanted) {
            return;
        }
        let size = self.next_chunk.max(wanted).min(MAX_CHUNK);
        self.next_chunk = size * 2;
        self.push_full(BytesMut::with_capacity(size));
    }

    /// Appends another run.
    ///
    /// Its chunks are copied while they fit into the tail, or if they are so small that separate
    /// chunks would cost more. So memory stays in proportion to the bytes held, whatever the pieces
    /// and their order.
    pub(super) fn join(&mut self, mut next: Self) {
        self.len += next.len;
        self.next_chunk = self.next_chunk.max(next.next_chunk);
        next.full.push_back(next.tail);
        while let Some(chunk) = next.full.front() {
            if chunk.len() > self.room() {
                let together = self.tail.len() + chunk.len();
                if together > SMALL {
                    break;
                }
                let mut larger = BytesMut::with_capacity(SMALL.min(together * 2));
                larger.extend_from_slice(&self.tail);
                self.tail = larger;
            }
            self.tail.extend_from_slice(chunk);
            next.full.pop_front();
        }
        let Some(tail) = next.full.pop_back() else {
            return;
        };
        self.push_full(tail);
        self.append_full(next.full);
    }

    /// Stores the tail as a full chunk and starts another.
    fn push_full(&mut self, tail: BytesMut) {
        let full = std::mem::replace(&mut self.tail, tail);
        if !full.is_empty() {
            self.full.push_back(full);
        }
    }

    /// Appends chunks to the full ones by moving the shorter list; otherwise data in reverse order
    /// would take quadratic time.
    fn append_full(&mut self, mut next: VecDeque<BytesMut>) {
        if self.full.len() >= next.len() {
            return self.full.append(&mut next);
        }
        while let Some(chunk) = self.full.pop_back() {
            next.push_front(chunk);
        }
        self.full = next;
    }

    #[inline]
    pub(super) fn read(&mut self, mut target: &mut [u8]) -> usize {
        let mut total = 0;
        loop {
            let chunk = self.front();
            let len = chunk.len().min(target.len());
            if len == 0 {
                break;
            }
            let (now, later) = target.split_at_mut(len);
            chunk.copy_to_slice(now);
            target = later;
            total += len;
        }
        self.len -= total;
        total
    }

    pub(super) fn read_chunk(&mut self, max: usize) -> Option<Bytes> {
        let chunk = self.front();
        let len = chunk.len().min(max);
        if len == 0 {
            return None;
        }
        let is_full = len == chunk.len() && len == chunk.capacity();
        let chunk = if is_full && len <= SMALL {
            // Without room for more it is of no further use, and a part would need a count of references.
            std::mem::take(chunk).freeze()
        } else {
            chunk.split_to(len).freeze()
        };
        self.len -= chunk.len();
        Some(chunk)
    }

    /// Returns the chunk to read from, after dropping empty ones.
    fn front(&mut self) -> &mut BytesMut {
        while self.full.front().is_some_and(BytesMut::is_empty) {
            self.full.pop_front();
        }
        self.full.front_mut().unwrap_or(&mut self.tail)
    }
}
