//! Bytes of a stream that are read as they arrive, in any order.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;

use super::{
    range_set::RangeSet,
    run::{Exceeded, Run},
};

/// Received bytes that are read in any order, each only once.
///
/// Ranges are remembered after they were read, so that data that arrives again is not delivered
/// again. Both the ranges and the pieces held are bounded.
#[derive(Debug, Default)]
pub(super) struct Unordered {
    /// Ranges received, read or not.
    pub(super) received: RangeSet,
    /// Runs not yet read, by offset. They neither touch nor overlap.
    pub(super) held: BTreeMap<u64, Run>,
    /// Bytes held.
    len: usize,
}

impl Unordered {
    /// Creates the state after everything below `consumed` was read; `runs` were received beyond
    /// it.
    pub(super) fn new(consumed: u64, runs: impl IntoIterator<Item = (u64, Run)>) -> Self {
        let mut new = Self::default();
        new.received.insert(0..consumed);
        for (start, run) in runs.into_iter().filter(|(_, run)| run.len() > 0) {
            new.received.insert(start..run.end(start));
            new.len += run.len();
            new.held.insert(start, run);
        }
        new
    }

    /// Returns the bytes held.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the offset of the first byte that was not received.
    pub(super) fn contiguous_end(&self) -> u64 {
        let first = self.received.first().filter(|first| first.start == 0);
        first.map_or(0, |first| first.end)
    }

    /// Returns the offset of the first byte that is not known to be read.
    pub(super) fn read_until(&self) -> u64 {
        let held = self.held.first_key_value().map(|(&start, _)| start);
        let end = self.contiguous_end();
        held.map_or(end, |held| held.min(end))
    }

    /// Inserts data that was not received before. After an error none of it is held.
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        max_pieces: usize,
    ) -> Result<(), Exceeded> {
        let range = offset..offset.saturating_add(data.len() as u64);
        // One more range and run than gaps, as in ordered reads.
        let fresh = self.gaps(range.clone(), |start, end| !self.touches(start, end));
        if self.held.len() + fresh > max_pieces.saturating_add(1) && fresh > 0 {
            return Err(Exceeded::Pieces);
        }
        let stands_alone = self.received.overlapping(widened(&range)).next().is_none();
        if !data.is_empty() && stands_alone && self.received.len() > max_pieces {
            return Err(Exceeded::Pieces);
        }
        let mut at = offset;
        let mut rest = data;
        for known in self.received.overlapping(range.clone()) {
            let (missing, later) = rest.split_at(known.start.saturating_sub(at) as usize);
            hold(&mut self.held, at, missing);
            self.len += missing.len();
            let start = at + missing.len() as u64;
            let again = (known.end.min(range.end) - start) as usize;
            (at, rest) = (start + again as u64, later.split_at(again).1);
        }
        hold(&mut self.held, at, rest);
        self.len += rest.len();
        self.received.insert(range);
        Ok(())
    }

    /// Takes up to `max` bytes below `end`, starting at the lowest offset held.
    pub(super) fn read_chunk(&mut self, max: usize, end: u64) -> Option<(u64, Bytes)> {
        let first = self.held.first_entry().filter(|first| *first.key() < end)?;
        let (start, mut run) = first.remove_entry();
        let max = usize::try_from(end - start).map_or(max, |left| left.min(max));
        let chunk = run.read_chunk(max).unwrap_or_default();
        if run.len() > 0 {
            self.held.insert(start + chunk.len() as u64, run);
        }
        self.len -= chunk.len();
        Some((start, chunk))
    }

    /// Counts the gaps within the range for which `counts` holds.
    fn gaps(&self, range: Range<u64>, counts: impl Fn(u64, u64) -> bool) -> usize {
        let mut at = range.start;
        let mut count = 0;
        for known in self.received.overlapping(range.clone()) {
            count += usize::from(at < known.start && counts(at, known.start));
            at = known.end;
        }
        count + usize::from(at < range.end && counts(at, range.end))
    }

    /// Returns true if a run ends where the gap starts, or starts where it ends.
    fn touches(&self, start: u64, end: u64) -> bool {
        let before = self.held.range(..start).next_back();
        before.is_some_and(|(&at, run)| run.end(at) == start) || self.held.contains_key(&end)
    }

    /// Returns the number of runs and ranges behind a gap.
    pub(super) fn behind_gaps(&self) -> usize {
        (self.held.len() + self.received.len()).saturating_sub(2)
    }
}

/// Returns the range extended to its neighbours.
fn widened(range: &Range<u64>) -> Range<u64> {
    range.start.saturating_sub(1)..range.end.saturating_add(1)
}

/// Inserts data that is not yet held, and joins it with the runs it meets.
fn hold(held: &mut BTreeMap<u64, Run>, offset: u64, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let next = held.remove(&(offset + data.len() as u64));
    let before = held.range(..offset).next_back();
    let touching = before.filter(|&(&start, run)| run.end(start) == offset);
    let start = touching.map_or(offset, |(&start, _)| start);
    let run = held.entry(start).or_default();
    run.append(data);
    if let Some(next) = next {
        run.join(next);
    }
}
