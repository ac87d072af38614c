//! A set of ranges of offsets.

use std::ops::Range;

/// A set of offsets, as sorted ranges with gaps between them.
///
/// Built for a few ranges that grow at their ends: the last range is tried first, and an empty set
/// takes no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// Returns true if the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the lowest range.
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// Returns the ranges that overlap this one, lowest first.
    pub(crate) fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let from = self.ranges.partition_point(|held| held.end <= range.start);
        let held = self.ranges.iter().skip(from).cloned();
        held.take_while(move |held| held.start < range.end)
    }

    /// Adds a range, which may overlap others.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if range.start > last.end => self.ranges.push(range),
            Some(last) if range.start >= last.start => last.end = last.end.max(range.end),
            None => self.ranges.push(range),
            Some(_) => self.merge(range),
        }
    }

    /// Replaces all ranges that touch this one by one range.
    fn merge(&mut self, range: Range<u64>) {
        let from = self.ranges.partition_point(|held| held.end < range.start);
        let to = self.ranges.partition_point(|held| held.start <= range.end);
        let start = self
            .ranges
            .get(from)
            .map_or(range.start, |first| first.start.min(range.start));
        let last = to.checked_sub(1).filter(|&last| last >= from);
        let end = last
            .and_then(|last| self.ranges.get(last))
            .map_or(0, |last| last.end);
        let merged = start.min(range.start)..end.max(range.end);
        if last.is_none() {
            self.ranges.insert(from, range);
            return;
        }
        if let Some(first) = self.ranges.get_mut(from) {
            *first = merged;
        }
        self.ranges.drain(from + 1..to);
    }

    /// Removes a range, which may be only partly in the set.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        let from = self.ranges.partition_point(|held| held.end <= range.start);
        let to = self.ranges.partition_point(|held| held.start < range.end);
        if range.is_empty() || from >= to {
            return;
        }
        let left = self.ranges.get(from).map_or(0, |first| first.start)..range.start;
        let right = range.end..self.ranges.get(to - 1).map_or(0, |last| last.end);
        let rest = [left, right].into_iter().filter(|piece| !piece.is_empty());
        self.ranges.splice(from..to, rest);
    }
}
