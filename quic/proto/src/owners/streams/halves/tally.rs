//! Counts of the bytes of streams, for protocols that limit several streams together.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::owners::streams::StreamId;

/// Counts the bytes of a stream, for protocols that limit several streams together, such as sessions of WebTransport.
///
/// Its methods are called while the connection is locked: they must not use the connection. It is dropped when both
/// halves of the stream are over.
pub trait Tally: fmt::Debug + Send + Sync {
    /// Number of further bytes that the peer has sent, gaps included, and of those that were read or dropped.
    fn on_received(&self, received: u64, consumed: u64);

    /// The sending half is over. This is its final size, as the peer knows it (RFC 9000 §4.5).
    fn on_sent(&self, final_size: u64);
}

/// Bytes of a receiving half when it begins to be counted. Later ones are told to the [`Tally`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tallied {
    /// Bytes that the peer has sent, gaps included.
    pub received: u64,
    /// Bytes that were read or dropped.
    pub consumed: u64,
}

/// The halves that are counted. Most connections count nothing, which takes no memory.
#[derive(Debug, Default)]
pub(in crate::owners::streams) struct Tallies(Option<Box<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    recvs: HashMap<StreamId, (Tallied, Arc<dyn Tally>)>,
    sends: HashMap<StreamId, Arc<dyn Tally>>,
}

impl Tallies {
    /// Returns the number of halves.
    pub(in crate::owners::streams) fn len(&self) -> usize {
        let counted = self.0.as_ref();
        counted.map_or(0, |it| it.recvs.len() + it.sends.len())
    }

    pub(in crate::owners::streams) fn add_recv(
        &mut self,
        id: StreamId,
        before: Tallied,
        tally: Arc<dyn Tally>,
    ) {
        let counted = self.0.get_or_insert_default();
        counted.recvs.insert(id, (before, tally));
    }

    pub(in crate::owners::streams) fn add_send(&mut self, id: StreamId, tally: Arc<dyn Tally>) {
        self.0.get_or_insert_default().sends.insert(id, tally);
    }

    /// Counts what changed.
    #[inline]
    pub(in crate::owners::streams) fn on_recv(
        &mut self,
        id: StreamId,
        now: impl FnOnce() -> Tallied,
    ) {
        let Some(counted) = &mut self.0 else { return };
        if let Some((before, tally)) = counted.recvs.get_mut(&id) {
            let now = now();
            let received = now.received.saturating_sub(before.received);
            let consumed = now.consumed.saturating_sub(before.consumed);
            *before = now;
            if received > 0 || consumed > 0 {
                tally.on_received(received, consumed);
            }
        }
    }

    pub(in crate::owners::streams) fn on_recv_over(&mut self, id: StreamId) {
        if let Some(counted) = &mut self.0 {
            counted.recvs.remove(&id);
            self.release();
        }
    }

    pub(in crate::owners::streams) fn on_send_over(&mut self, id: StreamId, final_size: u64) {
        let Some(counted) = &mut self.0 else { return };
        if let Some(tally) = counted.sends.remove(&id) {
            tally.on_sent(final_size);
        }
        self.release();
    }

    fn release(&mut self) {
        if self.len() == 0 {
            self.0 = None;
        }
    }
}
