//! Sizes of the tables of a connection, and their bounds.

use crate::{
    connection::{Connection, Recovery, transmit::owners::Carried},
    stats::{MemoryHeld, Tables},
    wire::limits,
};

impl Connection {
    /// Returns the current numbers of entries that the peer has influence on.
    ///
    /// For tests of bounds and for diagnosis; some of it is counted at every call.
    pub fn tables(&self) -> Tables {
        let ranges = self.acks.received.iter();
        let ranges = ranges.map(|received| received.ranges().count());
        Tables {
            paths: 1 + self.paths.others().count(),
            local_cids: self.cids.local.active().count(),
            ack_ranges: ranges.max().unwrap_or(0),
            sent_packets: self.recovery.recorded_packets(),
            lost_packets: self.recovery.remembered_losses(),
            streams: self.streams.halves(),
            stream_pieces: self.streams.pieces(),
        }
    }

    /// Returns the memory that the connection holds. It takes a step for each stream that is not
    /// over.
    pub fn memory_held(&self) -> MemoryHeld {
        MemoryHeld {
            connection: size_of::<Self>() as u64,
            streams: self.streams.memory_of_tables(),
            received: self.streams.unread(),
            sent: self.streams.unacknowledged(),
            datagrams: self.datagrams.held(),
            packets: self.recovery.memory() as u64,
        }
    }

    /// Returns the bytes of memory that records of packets take at most, once the handshake is over.
    pub(crate) const fn most_memory_of_packets() -> u64 {
        Recovery::<Carried>::most_memory() as u64
    }

    /// Returns the bounds of [`Connection::tables`], which are those of [`limits`] and of the
    /// configuration. The bound of stream pieces grows with the receive window.
    pub fn table_bounds(&self) -> Tables {
        Tables {
            paths: 1 + limits::OTHER_PATHS,
            local_cids: 2 * limits::LOCAL_CIDS,
            ack_ranges: limits::ACK_RANGES,
            // Probes leave although the table is full: two per space.
            sent_packets: 3 * (limits::SENT_PACKETS + limits::ACK_ONLY_PACKETS + 2),
            lost_packets: 3 * limits::LOST_PACKETS,
            streams: self.streams.most_halves(),
            stream_pieces: self.streams.most_pieces(),
        }
    }
}
