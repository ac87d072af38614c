//! What a packet carried, and who is told whether it arrived.

use super::{Connection, new_token, spaces::level};
use crate::{ack_frequency, cids, datagrams, handshake, packet::Space, recovery::Outcome, streams};

/// What one packet carried. Most carry only stream data; the rest is boxed, so that a record stays
/// small.
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

/// The frames that are rare once the handshake is over.
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

impl Connection {
    /// Tells the owners the fate of their frames, field by field, and empties the outcome.
    /// `space` is the one of the ACK frame that settled them.
    pub(super) fn settle(&mut self, space: Space, outcome: &mut Outcome<Carried>) {
        for settled in outcome.acked.drain(..) {
            self.on_size_acked(&settled);
            let carried = settled.packet.record;
            self.streams.on_acked(&carried.streams);
            self.datagrams.on_acked(carried.datagrams);
            if let Some(control) = carried.control {
                self.handshake
                    .on_acked(level(control.space), &control.crypto);
                self.local_cids.on_acked(&control.local_cids);
                self.peer_cids.on_acked(&control.peer_cids);
                self.ack_frequency.on_acked(control.ack_frequency);
                self.new_tokens.on_acked(control.new_token);
            }
        }
        for settled in outcome.lost.drain(..) {
            self.observe_loss(&settled);
            self.on_size_lost(&settled);
            let carried = settled.packet.record;
            self.streams.on_lost(&carried.streams);
            self.datagrams.on_lost(carried.datagrams);
            if let Some(control) = carried.control {
                self.handshake
                    .on_lost(level(control.space), &control.crypto);
                self.local_cids.on_lost(&control.local_cids);
                self.peer_cids.on_lost(&control.peer_cids);
                self.ack_frequency.on_lost(control.ack_frequency);
                self.new_tokens.on_lost(control.new_token);
                if control.handshake_done {
                    self.handshake.owe_done();
                }
            }
        }
        if let Some(largest) = outcome.largest_acked_ack {
            self.spaces[space].on_ack_of_ack(largest);
        }
        self.follow_mtu();
        outcome.clear();
    }
}
