//! What a connection holds, table by table.

use crate::{
    connection::{
        Acks, Agreed, Agreement, Cids, Connection, Event, KeptPacket, Memory, Params, Recovery,
        Remembered, transmit::owners::Carried,
    },
    owners::recovery::Settled,
    stats::{MemoryHeld, Tables, census::Census},
    wire::limits,
};

impl Connection {
    /// Returns what the connection holds, table by table.
    ///
    /// For tests and diagnosis: its cost is proportional to the streams and packets in flight. Once
    /// all streams are over and everything was acknowledged, the census must have [not
    /// grown](Census::grown_since) since the handshake was confirmed.
    pub fn census(&self) -> Census {
        // A new field does not compile until somebody decides what it holds.
        let Self {
            side: _,
            config: _,
            state: _,
            paths,
            acks,
            recovery,
            handshake,
            agreed,
            cids,
            opening,
            memory,
            streams,
            datagrams,
            close,
            timers: _,
            header_bits: _,
            events,
            observer: _,
        } = self;
        let mut census = Census::default().with("connections", 1, size_of::<Self>());
        streams.census(&mut census);
        datagrams.census(&mut census);
        recovery.census(&mut census);
        acks.census(&mut census);
        paths.census(&mut census);
        cids.census(&mut census);
        handshake.census(&mut census);
        agreed.census(&mut census);
        memory.census(&mut census);
        let kept = opening.0.as_ref();
        census.add("openings", usize::from(kept.is_some()), 0);
        let kept = kept.map_or(0, |parts| parts.kept.len());
        census.add_of::<KeptPacket>("packets without keys", kept);
        let close = usize::from(close.error().is_some());
        census.add("reasons of the end", close, 0);
        census.add_of::<Event>("events of the connection", events.len());
        census
    }
}

impl Acks {
    fn census(&self, census: &mut Census) {
        let Self {
            received,
            frequency: _,
            settled,
        } = self;
        let ranges = received.iter().map(|space| space.ranges().count());
        census.add("ranges of received packets", ranges.sum(), 0);
        let pending = received.iter().filter(|space| space.is_ack_pending());
        census.add("acknowledgements to send", pending.count(), 0);
        let settled = settled.acked.len() + settled.lost.len();
        census.add_of::<Settled<Carried>>("packets whose fate is known", settled);
    }
}

impl Cids {
    fn census(&self, census: &mut Census) {
        let Self {
            local,
            peer,
            initial: _,
            original: _,
        } = self;
        local.census(census);
        peer.census(census);
    }
}

impl Agreed {
    fn census(&self, census: &mut Census) {
        let Self {
            original_version: _,
            early_data_refused: _,
            params,
            ack_delay_exponent: _,
            disable_active_migration: _,
            outcome,
        } = self;
        census.add_of::<Params>("parameters of the peer", usize::from(params.is_some()));
        census.add_of::<Agreement>("outcomes of the handshake", usize::from(outcome.is_some()));
    }
}

impl Memory {
    fn census(&self, census: &mut Census) {
        let Self {
            tokens,
            path_keys: _,
            server,
        } = self;
        tokens.census(census);
        let bytes = server.as_ref().map_or(0, Remembered::name_len);
        census.add(
            "records of the server",
            usize::from(server.is_some()),
            bytes,
        );
    }
}

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

/// Returns the largest number of bytes that packet records take once the handshake is over.
pub(crate) const fn most_memory_of_packets() -> u64 {
    Recovery::<Carried>::most_memory() as u64
}
