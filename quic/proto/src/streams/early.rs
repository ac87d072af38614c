use super::{
    PeerLimits, StreamId, Streams,
    flow::SendCredit,
    marks::Mark,
    opening::{LocalStreams, PerDirection},
    schedule::Schedule,
    table::Table,
};

/// 0-RTT (RFC 9001 §4.6).
impl Streams {
    /// Data of the stream came in a 0-RTT packet.
    pub fn on_early_data(&mut self, id: StreamId) {
        if let Some(recv) = self.recvs.get_mut(id) {
            recv.marks.set(Mark::Early);
        }
    }

    /// Whether data of the stream came in a 0-RTT packet, while the stream is held.
    pub fn is_early(&self, id: StreamId) -> bool {
        self.recvs
            .get(id)
            .is_some_and(|recv| recv.marks.has(Mark::Early))
    }

    /// The server refused what was sent so far: our streams never were, and may be opened again
    /// within the limits that [`Streams::set_peer_limits`] is to tell. The peer has opened none, for
    /// nothing that it says is read before.
    pub fn on_early_data_rejected(&mut self) {
        self.sends = Table::new();
        self.recvs = Table::new();
        self.local = PerDirection::<LocalStreams>::default();
        self.send_credit = SendCredit::default();
        self.peer_limits = PeerLimits::default();
        self.schedule = Schedule::default();
        self.events.clear();
        self.bytes_resent = 0;
    }
}
