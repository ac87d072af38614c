//! Reassembly of received data.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    run::{Exceeded, Run},
    unordered::Unordered,
};

/// Reassembles a byte stream from pieces that may arrive in any order, overlap and repeat.
///
/// Data that continues the last chunk is appended to it: one copy in, one copy (or none, by chunk)
/// out. Data behind a gap forms separate runs, which are joined when they meet. Bytes that arrive
/// twice are not compared; the first copy is kept.
#[derive(Debug)]
pub(crate) struct Reassembler {
    /// Bytes read so far, which is where `ready` starts.
    consumed: u64,
    pub(super) ready: Run,
    /// Runs behind gaps, by offset. They neither touch nor overlap.
    pub(super) ahead: BTreeMap<u64, Run>,
    /// Holds all data once unordered reads began.
    pub(super) unordered: Option<Box<Unordered>>,
    max_bytes: u64,
    max_pieces: usize,
}

impl Reassembler {
    /// Creates an empty reassembler. Data may reach at most `max_bytes` beyond what was read and be
    /// in at most `max_pieces` separate pieces.
    pub(crate) fn new(max_bytes: u64, max_pieces: usize) -> Self {
        let ready = Run::default();
        Self {
            consumed: 0,
            ready,
            ahead: BTreeMap::new(),
            unordered: None,
            max_bytes,
            max_pieces,
        }
    }

    /// Creates an empty reassembler for data from this offset on, without its own limit on bytes.
    pub(crate) fn beginning_at(offset: u64, max_pieces: usize) -> Self {
        Self {
            consumed: offset,
            ..Self::new(u64::MAX, max_pieces)
        }
    }

    /// Raises the limit on separate pieces, if `pieces` is larger.
    pub(crate) fn allow_pieces(&mut self, pieces: usize) {
        self.max_pieces = self.max_pieces.max(pieces);
    }

    /// Returns the bytes read so far.
    pub(crate) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns the bytes that can be read now.
    pub(crate) fn readable(&self) -> usize {
        let unordered = self.unordered.as_ref();
        unordered.map_or(self.ready.len(), |unordered| unordered.len())
    }

    /// Returns true once unordered reads began.
    pub(crate) const fn is_unordered(&self) -> bool {
        self.unordered.is_some()
    }

    /// Returns true if everything below the offset was read.
    pub(crate) fn is_read_until(&self, end: u64) -> bool {
        let unordered = self.unordered.as_ref();
        unordered.map_or(self.consumed, |unordered| unordered.read_until()) >= end
    }

    /// Returns the offset behind the bytes received without a gap.
    pub(crate) fn contiguous_end(&self) -> u64 {
        match &self.unordered {
            None => self.consumed + self.ready.len() as u64,
            Some(unordered) => unordered.contiguous_end(),
        }
    }

    /// Returns the number of pieces behind gaps; in unordered reads gaps count too.
    #[inline]
    pub(crate) fn pieces(&self) -> usize {
        let unordered = self.unordered.as_ref();
        unordered.map_or(self.ahead.len(), |unordered| unordered.behind_gaps())
    }

    /// Returns the bytes held behind gaps, in ordered reads.
    pub(crate) fn bytes_behind_gaps(&self) -> usize {
        self.ahead.values().map(Run::len).sum()
    }

    /// Inserts data. After an error none of it is held.
    #[inline]
    pub(crate) fn insert(&mut self, offset: u64, data: &[u8]) -> Result<(), Exceeded> {
        let end = offset.saturating_add(data.len() as u64);
        if end.saturating_sub(self.consumed) > self.max_bytes {
            return Err(Exceeded::Bytes);
        }
        if let Some(unordered) = &mut self.unordered {
            return unordered.insert(offset, data, self.max_pieces);
        }
        if offset == self.contiguous_end() && self.ahead.is_empty() {
            self.ready.append(data);
            return Ok(());
        }
        self.insert_slow(offset, data)
    }

    fn insert_slow(&mut self, offset: u64, data: &[u8]) -> Result<(), Exceeded> {
        let (mut offset, mut data) = behind(self.contiguous_end(), offset, data);
        if self.needs_new_run(offset, data) && self.ahead.len() >= self.max_pieces {
            return Err(Exceeded::Pieces);
        }
        loop {
            (offset, data) = behind(self.held_until(offset), offset, data);
            if data.is_empty() {
                return Ok(());
            }
            self.insert_piece(offset, data);
        }
    }

    /// Returns the end of the run that contains the offset, or something lower if none does.
    fn held_until(&self, offset: u64) -> u64 {
        let ahead = self.run_at(offset).map_or(0, |(start, run)| run.end(start));
        ahead.max(self.contiguous_end())
    }

    /// Returns true if the data would touch no run, and thus add a piece.
    fn needs_new_run(&self, offset: u64, data: &[u8]) -> bool {
        let end = offset + data.len() as u64;
        let touches = self
            .run_at(end)
            .is_some_and(|(start, run)| run.end(start) >= offset);
        !data.is_empty() && offset > self.contiguous_end() && !touches
    }

    /// Returns the run that starts at or before the offset.
    fn run_at(&self, offset: u64) -> Option<(u64, &Run)> {
        self.ahead
            .range(..=offset)
            .next_back()
            .map(|(&start, run)| (start, run))
    }

    /// Inserts data up to the next run, and joins the two if they meet. The offset must be in a
    /// gap.
    fn insert_piece(&mut self, offset: u64, data: &[u8]) {
        let next = self.ahead.range(offset..).next().map(|(&start, _)| start);
        let gap = next.map_or(u64::MAX, |next| next - offset);
        let len = gap.min(data.len() as u64);
        let joined = next
            .filter(|_| len == gap)
            .and_then(|next| self.ahead.remove(&next));
        let run = self.run_ending_at(offset);
        run.append(data.split_at(len as usize).0);
        if let Some(joined) = joined {
            run.join(joined);
        }
    }

    /// Returns the run that ends at this offset, or a new one.
    fn run_ending_at(&mut self, offset: u64) -> &mut Run {
        if offset == self.contiguous_end() {
            return &mut self.ready;
        }
        let touching = self
            .run_at(offset)
            .filter(|(start, run)| run.end(*start) == offset);
        let start = touching.map_or(offset, |(start, _)| start);
        self.ahead.entry(start).or_default()
    }

    /// Copies out as much as fits, and returns its length.
    #[inline]
    pub(crate) fn read(&mut self, target: &mut [u8]) -> usize {
        let len = self.ready.read(target);
        self.consumed += len as u64;
        len
    }

    /// Takes up to `max` bytes without copying. Returns `None` if there is nothing to read.
    pub(crate) fn read_chunk(&mut self, max: usize) -> Option<Bytes> {
        let chunk = self.ready.read_chunk(max)?;
        self.consumed += chunk.len() as u64;
        Some(chunk)
    }

    /// Takes up to `max` bytes below `end`, with their offset, and switches to unordered reads.
    pub(crate) fn read_unordered(&mut self, max: usize, end: u64) -> Option<(u64, Bytes)> {
        let (offset, chunk) = self.be_unordered().read_chunk(max, end)?;
        self.consumed += chunk.len() as u64;
        Some((offset, chunk))
    }

    fn be_unordered(&mut self) -> &mut Unordered {
        let (consumed, ready) = (self.consumed, &mut self.ready);
        let ahead = &mut self.ahead;
        self.unordered.get_or_insert_with(|| {
            let runs = [(consumed, std::mem::take(ready))];
            let runs = runs.into_iter().chain(std::mem::take(ahead));
            Box::new(Unordered::new(consumed, runs))
        })
    }
}

/// Returns the part of the data from `end` on.
fn behind(end: u64, offset: u64, data: &[u8]) -> (u64, &[u8]) {
    let skip = end.saturating_sub(offset).min(data.len() as u64);
    (offset + skip, data.split_at(skip as usize).1)
}
