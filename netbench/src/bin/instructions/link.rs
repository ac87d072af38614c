//! A link in memory.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::Transmit;

/// One-way delay of the link.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(5);

/// Nanoseconds that the link needs for a byte: 1 Gbit/s.
const NANOSECONDS_PER_BYTE: u64 = 8;

/// Datagrams that were sent together.
pub(crate) struct Train {
    pub(crate) at: Instant,
    pub(crate) source: SocketAddr,
    pub(crate) transmit: Transmit,
    pub(crate) bytes: Vec<u8>,
}

/// One direction of a link that loses nothing and keeps the order.
#[derive(Default)]
pub(crate) struct OneWay {
    pub(crate) trains: VecDeque<Train>,
    /// Time at which the last byte has left.
    pub(crate) free_at: Option<Instant>,
    /// Emptied buffers, kept for their memory.
    pub(crate) spare: Vec<Vec<u8>>,
}

impl OneWay {
    pub(crate) fn send(
        &mut self,
        now: Instant,
        source: SocketAddr,
        buffer: &[u8],
        transmit: Transmit,
    ) {
        let (sent, _) = buffer.split_at(transmit.size);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(sent);
        let begin = self.free_at.map_or(now, |at| at.max(now));
        let end = begin + Duration::from_nanos(NANOSECONDS_PER_BYTE * transmit.size as u64);
        self.free_at = Some(end);
        self.trains.push_back(Train {
            at: end + ONE_WAY,
            source,
            transmit,
            bytes,
        });
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Train> {
        let due = self.trains.front().is_some_and(|train| train.at <= now);
        if due { self.trains.pop_front() } else { None }
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.trains.front().map(|train| train.at)
    }
}
