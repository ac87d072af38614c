//! Streams that are reset unless they are delivered by a time.

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use crate::owners::streams::StreamId;

/// The deadlines of sending parts. Takes no memory beyond a pointer while there are none.
#[derive(Debug, Default)]
pub(in crate::owners::streams) struct Deadlines(Option<Box<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// Codes to reset with, in the order of the deadlines.
    codes: BTreeMap<(Instant, StreamId), u64>,
    of_streams: HashMap<StreamId, Instant>,
}

impl Deadlines {
    /// Returns the number of deadlines.
    pub(in crate::owners::streams) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.codes.len())
    }

    pub(in crate::owners::streams) fn set(&mut self, id: StreamId, at: Instant, code: u64) {
        self.remove(id);
        let table = self.0.get_or_insert_default();
        table.codes.insert((at, id), code);
        table.of_streams.insert(id, at);
    }

    /// Forgets the deadline of a stream that is over.
    #[inline]
    pub(in crate::owners::streams) fn remove(&mut self, id: StreamId) {
        if self.0.is_some() {
            self.take(id);
        }
    }

    fn take(&mut self, id: StreamId) {
        let Some(table) = &mut self.0 else { return };
        if let Some(at) = table.of_streams.remove(&id) {
            table.codes.remove(&(at, id));
        }
        if table.codes.is_empty() {
            self.0 = None;
        }
    }

    #[inline]
    pub(in crate::owners::streams) fn first(&self) -> Option<(Instant, StreamId, u64)> {
        let (&(at, id), &code) = self.0.as_ref()?.codes.first_key_value()?;
        Some((at, id, code))
    }
}
