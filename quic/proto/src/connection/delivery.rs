//! The contents of sent packets, and their return to the owners once they are acknowledged or lost.

use super::{
    Connection,
    new_token::{self, NewTokens},
    spaces::level,
};
use crate::{
    ack_frequency::{self, AckFrequency},
    cids, datagrams,
    handshake::{self, Handshake},
    packet::Space,
    recovery::Outcome,
    streams,
};

/// Contents of one packet. Most carry only stream data; the rest is boxed to keep a record small.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) space: Space,
    pub(super) datagrams: datagrams::Sent,
    pub(super) streams: streams::Sent,
    pub(super) control: Option<Box<Control>>,
}

impl Carried {
    pub(super) fn new(space: Space) -> Self {
        Self {
            space,
            datagrams: datagrams::Sent::default(),
            streams: streams::Sent::default(),
            control: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.datagrams.is_empty() && self.control.is_none()
    }
}

/// Frames that are rare once the handshake is over.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) space: Space,
    pub(super) crypto: handshake::Sent,
    pub(super) local_cids: cids::Sent,
    pub(super) peer_cids: cids::Sent,
    pub(super) handshake_done: bool,
    pub(super) new_token: new_token::Sent,
    pub(super) ack_frequency: ack_frequency::Sent,
}

impl Control {
    pub(super) fn new(space: Space) -> Self {
        Self {
            space,
            crypto: handshake::Sent::default(),
            local_cids: cids::Sent::default(),
            peer_cids: cids::Sent::default(),
            handshake_done: false,
            new_token: new_token::Sent::default(),
            ack_frequency: ack_frequency::Sent::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.crypto.is_empty()
            && self.local_cids.is_empty()
            && self.peer_cids.is_empty()
            && !self.handshake_done
            && self.new_token.is_empty()
            && self.ack_frequency.is_empty()
    }
}

/// The owners of the frames in [`Control`].
struct Owners<'a> {
    handshake: &'a mut Handshake,
    local_cids: &'a mut cids::Local,
    peer_cids: &'a mut cids::Peer,
    ack_frequency: &'a mut AckFrequency,
    new_tokens: &'a mut NewTokens,
}

impl Owners<'_> {
    /// Tells every owner that its frames arrived. A new field of [`Control`] does not compile until
    /// it is listed here.
    fn on_acked(&mut self, sent: &Control) {
        let Control {
            space,
            crypto,
            local_cids,
            peer_cids,
            handshake_done: _,
            new_token,
            ack_frequency,
        } = sent;
        self.handshake.on_acked(level(*space), crypto);
        self.local_cids.on_acked(local_cids);
        self.peer_cids.on_acked(peer_cids);
        self.ack_frequency.on_acked(ack_frequency);
        self.new_tokens.on_acked(new_token);
    }

    /// Tells every owner to send its frames again: they were lost, or a probe repeats them.
    fn on_lost(&mut self, sent: &Control) {
        let Control {
            space,
            crypto,
            local_cids,
            peer_cids,
            handshake_done,
            new_token,
            ack_frequency,
        } = sent;
        self.handshake.on_lost(level(*space), crypto);
        self.local_cids.on_lost(local_cids);
        self.peer_cids.on_lost(peer_cids);
        self.ack_frequency.on_lost(ack_frequency);
        self.new_tokens.on_lost(new_token);
        if *handshake_done {
            self.handshake.owe_done();
        }
    }
}

impl Connection {
    fn owners(&mut self) -> Owners<'_> {
        Owners {
            handshake: &mut self.handshake,
            local_cids: &mut self.cids.local,
            peer_cids: &mut self.cids.peer,
            ack_frequency: &mut self.acks.frequency,
            new_tokens: &mut self.memory.tokens,
        }
    }

    /// Tells the owners the fate of their frames and empties the outcome. `space` is that of the
    /// ACK frame behind the outcome.
    pub(super) fn deliver(&mut self, space: Space, outcome: &mut Outcome<Carried>) {
        for settled in outcome.acked.drain(..) {
            self.on_size_acked(&settled);
            let Carried {
                space: _,
                datagrams,
                streams,
                control,
            } = settled.packet.record;
            self.streams.on_acked(&streams);
            self.datagrams.on_acked(&datagrams);
            if let Some(control) = control {
                self.owners().on_acked(&control);
            }
        }
        for settled in outcome.lost.drain(..) {
            self.observe_loss(&settled);
            self.on_size_lost(&settled);
            let Carried {
                space: _,
                datagrams,
                streams,
                control,
            } = settled.packet.record;
            self.streams.on_lost(&streams);
            self.datagrams.on_lost(&datagrams);
            if let Some(control) = control {
                self.owners().on_lost(&control);
            }
        }
        if let Some(largest) = outcome.largest_acked_ack {
            self.acks.received[space].on_ack_of_ack(largest);
        }
        self.follow_mtu();
        outcome.clear();
    }

    /// Queues what probes carry after the handshake: new data, if there is any, and the oldest data
    /// in flight, one packet for each probe so that no two carry the same (RFC 9002 §6.2.4).
    pub(super) fn probe_data(&mut self) {
        let probes = usize::from(self.recovery.probes(Space::Data).max(1));
        let old = if self.streams.has_pending() {
            probes - 1
        } else {
            probes
        };
        let mut owners = Owners {
            handshake: &mut self.handshake,
            local_cids: &mut self.cids.local,
            peer_cids: &mut self.cids.peer,
            ack_frequency: &mut self.acks.frequency,
            new_tokens: &mut self.memory.tokens,
        };
        let oldest = self
            .recovery
            .outstanding(Space::Data)
            .filter(|carried| !carried.is_empty());
        for (place, carried) in oldest.take(probes).enumerate() {
            // DATAGRAM frames are never sent again (RFC 9221 §5.2).
            let Carried {
                space: _,
                datagrams: _,
                streams,
                control,
            } = carried;
            if place < old {
                self.streams.on_lost(streams);
            }
            if let Some(control) = control {
                owners.on_lost(control);
            }
        }
    }
}
