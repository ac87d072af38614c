//! Sizes of a connection's tables, and their limits.

use crate::{
    connection::{Connection, Recovery, transmit::owners::Carried},
    stats::{MemoryHeld, Tables},
    wire::limits,
};

impl Connection {
    /// Returns the current numbers of entries that the peer can influence.
    ///
    /// For tests of limits and for diagnosis; some numbers are counted at every call.
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

    /// Returns the memory that the connection holds. Its cost is linear in the number of open
    /// streams.
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

    /// Returns the largest number of bytes that packet records take once the handshake is over.
    pub(crate) const fn most_memory_of_packets() -> u64 {
        Recovery::<Carried>::most_memory() as u64
    }

    /// Returns the limits of [`Connection::tables`], which follow from [`limits`] and the
    /// configuration. The limit on stream pieces grows with the receive window.
    pub fn table_bounds(&self) -> Tables {
        Tables {
            paths: 1 + limits::OTHER_PATHS,
            local_cids: 2 * limits::LOCAL_CIDS,
            ack_ranges: limits::ACK_RANGES,
            // Probes are sent even if the table is full: two per space.
            sent_packets: 3 * (limits::SENT_PACKETS + limits::ACK_ONLY_PACKETS + 2),
            lost_packets: 3 * limits::LOST_PACKETS,
            streams: self.streams.most_halves(),
            stream_pieces: self.streams.most_pieces(),
        }
    }
}
