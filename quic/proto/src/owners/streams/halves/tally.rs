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

/// The halves that are counted.
#[derive(Debug, Default)]
pub(in crate::owners::streams) struct Tallies {
    recvs: HashMap<StreamId, (Tallied, Arc<dyn Tally>)>,
    sends: HashMap<StreamId, Arc<dyn Tally>>,
}

impl Tallies {
    /// Returns the number of halves.
    pub(in crate::owners::streams) fn len(&self) -> usize {
        self.recvs.len() + self.sends.len()
    }

    pub(in crate::owners::streams) fn add_recv(
        &mut self,
        id: StreamId,
        before: Tallied,
        tally: Arc<dyn Tally>,
    ) {
        self.recvs.insert(id, (before, tally));
    }

    pub(in crate::owners::streams) fn add_send(&mut self, id: StreamId, tally: Arc<dyn Tally>) {
        self.sends.insert(id, tally);
    }

    /// Counts what changed.
    #[inline]
    pub(in crate::owners::streams) fn on_recv(
        &mut self,
        id: StreamId,
        now: impl FnOnce() -> Tallied,
    ) {
        if self.recvs.is_empty() {
            return;
        }
        if let Some((before, tally)) = self.recvs.get_mut(&id) {
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
        // Most connections count nothing, and the hash of an id costs more than the rest.
        if !self.recvs.is_empty() {
            self.recvs.remove(&id);
        }
    }

    pub(in crate::owners::streams) fn on_send_over(&mut self, id: StreamId, final_size: u64) {
        if self.sends.is_empty() {
            return;
        }
        if let Some(tally) = self.sends.remove(&id) {
            tally.on_sent(final_size);
        }
    }
}
