//! A buffer of data to send.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;

use super::range_set::RangeSet;

/// Largest chunk in which copied data is collected.
const MAX_CHUNK: usize = 64 * 1024;
/// Smallest size of the first chunk.
const MIN_CHUNK: usize = 64;
/// Size below which chunks are copied, because keeping them would cost more.
const SMALL: usize = 512;

/// Largest list of chunks that is used again.
const MOST_KEPT: usize = 8;

/// Bytes to send in order, held until they are acknowledged.
///
/// Two cursors divide the offsets: bytes below `acked` are dropped, bytes from `next` on were never
/// sent. Between them are bytes in flight, acknowledged out of order, or lost. In a bulk transfer
/// every operation works at a cursor; a search is needed only after loss or reordering.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    pub(super) chunks: VecDeque<Chunk>,
    /// Index of the chunk that was last read.
    cursor: usize,
    acked: u64,
    next: u64,
    end: u64,
    /// Ranges in flight that were not settled in order, from the first one on.
    gaps: Option<Box<Gaps>>,
    /// Offset from which on the data was given up.
    needed: u64,
}

/// Ranges between the two cursors whose fate is known.
#[derive(Debug, Default)]
struct Gaps {
    acked_ahead: RangeSet,
    lost: RangeSet,
}

/// Memory of an empty buffer.
#[derive(Debug)]
pub(crate) struct Memory(VecDeque<Chunk>);

#[derive(Debug)]
pub(super) struct Chunk {
    start: u64,
    data: Data,
}

#[derive(Debug)]
enum Data {
    /// Data copied by us, whose capacity has room to grow.
    Copied(Vec<u8>),
    Shared(Bytes),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Copied(bytes) => bytes,
            Data::Shared(bytes) => bytes,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// Drops the data, but keeps the memory for more. Returns false for memory that is shared or large.
    fn empty(&mut self) -> bool {
        match &mut self.data {
            Data::Copied(bytes) if bytes.capacity() <= SMALL => {
                self.start += bytes.len() as u64;
                bytes.clear();
                true
            }
            Data::Copied(_) | Data::Shared(_) => false,
        }
    }
}

impl SendBuffer {
    /// Bytes that it holds apart, besides its data, once something was lost.
    pub(crate) const APART: usize = size_of::<Gaps>();

    /// Creates an empty buffer.
    pub(crate) const fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            cursor: 0,
            acked: 0,
            next: 0,
            end: 0,
            gaps: None,
            needed: u64::MAX,
        }
    }

    /// Appends a copy of the data.
    pub(crate) fn write(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = self.tail_room();
            if room == 0 {
                self.grow(data.len());
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            if let Some(Chunk {
                data: Data::Copied(tail),
                ..
            }) = self.chunks.back_mut()
            {
                tail.extend_from_slice(now);
            }
            self.end += now.len() as u64;
            data = later;
        }
    }

    /// Appends the data without copying, unless it is so small that copying costs less.
    pub(crate) fn push(&mut self, data: Bytes) {
        if data.len() < SMALL {
            return self.write(&data);
        }
        let start = self.end;
        self.end += data.len() as u64;
        self.chunks.push_back(Chunk {
            start,
            data: Data::Shared(data),
        });
    }

    /// Uses the memory of another buffer.
    pub(crate) fn reuse(&mut self, memory: Memory) {
        self.chunks = memory.0;
        if let Some(chunk) = self.chunks.front_mut() {
            chunk.start = 0;
        }
    }

    /// Takes the memory of a buffer that is not used any more, without its data.
    pub(crate) fn take_memory(&mut self) -> Option<Memory> {
        let mut chunks = std::mem::take(&mut self.chunks);
        if !chunks.front_mut().is_some_and(Chunk::empty) {
            chunks.clear();
        }
        chunks.truncate(1);
        let is_small = (1..=MOST_KEPT).contains(&chunks.capacity());
        is_small.then_some(Memory(chunks))
    }

    /// Releases memory that is not used now.
    pub(crate) fn release_memory(&mut self) {
        if self.acked == self.end {
            self.chunks.clear();
        }
        self.chunks.shrink_to_fit();
        self.gaps
            .take_if(|gaps| gaps.acked_ahead.is_empty() && gaps.lost.is_empty());
    }

    fn tail_room(&self) -> usize {
        match self.chunks.back() {
            Some(Chunk {
                data: Data::Copied(tail),
                ..
            }) => tail.capacity() - tail.len(),
            _ => 0,
        }
    }

    /// Adds an empty chunk with room for `wanted` bytes, or for as many as are already held, so
    /// that many small writes need few chunks and a short stream only a small one.
    fn grow(&mut self, wanted: usize) {
        let held = (self.end - self.acked).min(MAX_CHUNK as u64) as usize;
        let size = wanted.max(held).clamp(MIN_CHUNK, MAX_CHUNK);
        let data = Data::Copied(Vec::with_capacity(size));
        self.chunks.push_back(Chunk {
            start: self.end,
            data,
        });
    }

    /// Returns the bytes not yet acknowledged, sent or not.
    pub(crate) const fn held(&self) -> u64 {
        self.end - self.acked
    }

    /// Returns the bytes never sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// Returns the offset behind everything ever sent.
    pub(crate) const fn next_offset(&self) -> u64 {
        self.next
    }

    /// Returns the offset behind everything written.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns true if everything that is still needed was acknowledged.
    pub(crate) const fn is_acked(&self) -> bool {
        self.acked == self.end || self.acked >= self.needed
    }

    /// Gives up the data from `offset` on: it is neither sent nor resent. Nothing may be written
    /// afterwards.
    pub(crate) fn give_up(&mut self, offset: u64) {
        self.needed = self.needed.min(offset);
        let needed = self.needed;
        if let Some(lost) = self.lost_mut() {
            lost.remove(needed..u64::MAX);
        }
        self.end = self.end.min(self.next.max(self.needed));
        while self
            .chunks
            .back()
            .is_some_and(|back| back.start >= self.needed)
        {
            self.chunks.pop_back();
        }
        self.cursor = 0;
    }

    /// Returns the lowest range that was lost and not yet resent.
    pub(crate) fn lost(&self) -> Option<Range<u64>> {
        self.gaps.as_ref()?.lost.first()
    }

    /// Returns the lost ranges, if there are any.
    #[inline]
    fn lost_mut(&mut self) -> Option<&mut RangeSet> {
        let lost = &mut self.gaps.as_mut()?.lost;
        (!lost.is_empty()).then_some(lost)
    }

    /// Returns the range to send next: lost data first, then new data.
    pub(crate) fn pending(&self) -> Option<Range<u64>> {
        self.lost()
            .or_else(|| (self.next < self.end).then_some(self.next..self.end))
    }

    /// Copies the bytes from `offset` on, which must still be held.
    pub(crate) fn fill(&mut self, mut offset: u64, mut target: &mut [u8]) {
        let mut index = self.find(offset);
        while let Some(chunk) = self.chunks.get(index).filter(|_| !target.is_empty()) {
            let skip = offset.saturating_sub(chunk.start) as usize;
            let source = chunk.bytes().get(skip..).unwrap_or_default();
            let len = source.len().min(target.len());
            let (now, later) = target.split_at_mut(len);
            now.copy_from_slice(source.split_at(len).0);
            target = later;
            offset += len as u64;
            self.cursor = index;
            index += 1;
        }
        debug_assert!(target.is_empty(), "asked for bytes that are not held");
    }

    /// Returns the index of the chunk with this offset: usually the last one read or the next.
    fn find(&self, offset: u64) -> usize {
        for index in [self.cursor, self.cursor + 1] {
            if self
                .chunks
                .get(index)
                .is_some_and(|it| it.start <= offset && offset < it.end())
            {
                return index;
            }
        }
        self.chunks.partition_point(|chunk| chunk.end() <= offset)
    }

    /// Notes that the range was sent, for the first time or again. It must start where
    /// [`Self::pending`] or [`Self::lost`] said.
    pub(crate) fn on_sent(&mut self, range: Range<u64>) {
        debug_assert!(range.end <= self.end, "sent what was not written");
        self.next = self.next.max(range.end);
        if let Some(lost) = self.lost_mut() {
            lost.remove(range);
        }
    }

    /// Notes that the range was acknowledged.
    pub(crate) fn on_acked(&mut self, range: Range<u64>) {
        debug_assert!(range.end <= self.next, "acknowledged what was not sent");
        if let Some(lost) = self.lost_mut() {
            lost.remove(range.clone());
        }
        if range.start > self.acked {
            return self.gaps.get_or_insert_default().acked_ahead.insert(range);
        }
        if range.end <= self.acked {
            return;
        }
        self.acked = range.end;
        if let Some(gaps) = &mut self.gaps {
            let ahead = &mut gaps.acked_ahead;
            while let Some(next) = ahead.first().filter(|it| it.start <= self.acked) {
                self.acked = self.acked.max(next.end);
                ahead.remove(next);
            }
        }
        self.release();
    }

    /// Drops the chunks that were acknowledged entirely.
    fn release(&mut self) {
        while self
            .chunks
            .front()
            .is_some_and(|front| front.end() <= self.acked)
        {
            if self.chunks.len() == 1 && self.chunks.front_mut().is_some_and(Chunk::empty) {
                return;
            }
            self.chunks.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
    }

    /// Notes that the range was lost: the part that has not been acknowledged otherwise must be
    /// resent.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        debug_assert!(range.end <= self.next, "lost what was not sent");
        let start = range.start.max(self.acked);
        let end = range.end.min(self.needed);
        if start >= end {
            return;
        }
        let gaps = self.gaps.get_or_insert_default();
        gaps.lost.insert(start..end);
        for acked in gaps.acked_ahead.overlapping(start..end) {
            gaps.lost.remove(acked);
        }
    }

    /// Resends everything that was sent and not acknowledged, as a probe does for a handshake
    /// flight.
    pub(crate) fn retransmit_all(&mut self) {
        self.on_lost(self.acked..self.next);
    }
}
