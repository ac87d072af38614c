//! Counts of the bytes of streams, for protocols that limit several streams together.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::owners::streams::{ClosedStream, StreamId, Streams, recv::Recv, send::Send};

/// Counts the bytes of a stream, for protocols that limit several streams together, such as sessions of WebTransport.
///
/// Its methods are called while the connection is locked: they must not use the connection. It is dropped when both
/// halves of the stream are over.
pub trait Tally: fmt::Debug + std::marker::Send + Sync {
    /// The peer has sent so many more bytes, gaps included, and so many more were read or dropped.
    fn on_received(&self, received: u64, consumed: u64);

    /// The sending half is over. This is its final size, as the peer knows it (RFC 9000 §4.5).
    fn on_sent(&self, final_size: u64);
}

/// Bytes of a receiving half when it begins to be counted. Later ones are told to the [`Tally`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Recv {
    const fn tallied(&self) -> Tallied {
        let received = self.credit.received();
        Tallied {
            received,
            consumed: received - self.credit.unread(),
        }
    }
}

impl Streams {
    /// Begins to count the bytes of a stream. Returns those of its receiving half, if it has one, so far.
    ///
    /// # Errors
    /// Both halves are over.
    pub fn tally(&mut self, id: StreamId, tally: &Arc<dyn Tally>) -> Result<Tallied, ClosedStream> {
        let recv = self.recvs.get(id).map(Recv::tallied);
        let send = self.sends.get(id);
        if recv.is_none() && send.is_none() {
            return Err(ClosedStream);
        }
        if send.is_some() {
            self.tallies.sends.insert(id, tally.clone());
        }
        if let Some(before) = recv {
            self.tallies.recvs.insert(id, (before, tally.clone()));
        }
        Ok(recv.unwrap_or_default())
    }
}

impl Tallies {
    /// Returns the number of halves.
    pub(in crate::owners::streams) fn len(&self) -> usize {
        self.recvs.len() + self.sends.len()
    }

    /// Counts what changed.
    #[inline]
    pub(in crate::owners::streams) fn on_recv(&mut self, id: StreamId, recv: &Recv) {
        if self.recvs.is_empty() {
            return;
        }
        if let Some((before, tally)) = self.recvs.get_mut(&id) {
            let now = recv.tallied();
            let received = now.received - before.received;
            let consumed = now.consumed - before.consumed;
            *before = now;
            if received > 0 || consumed > 0 {
                tally.on_received(received, consumed);
            }
        }
    }

    pub(in crate::owners::streams) fn on_recv_over(&mut self, id: StreamId) {
        self.recvs.remove(&id);
    }

    pub(in crate::owners::streams) fn on_send_over(&mut self, id: StreamId, send: &Send) {
        if let Some(tally) = self.sends.remove(&id) {
            tally.on_sent(send.final_size());
        }
    }
}
