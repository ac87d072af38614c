//! State that is needed only until the handshake is confirmed.

use crate::{
    connection::{
        receive::{KeptPacket, Seen, retry::Retried},
        start::versions::Negotiation,
    },
    owners::handshake::Handshake,
    wire::{limits, packet::Protected, params::Params},
};

/// State that is needed only until the handshake is confirmed; it is dropped then.
pub(in crate::connection) struct Opening(pub(in crate::connection) Option<Box<Parts>>);

pub(in crate::connection) struct Parts {
    negotiation: Negotiation,
    /// Contents of the server's Retry, if there was one.
    retried: Option<Retried>,
    /// Packets kept until their keys are available (RFC 9001 §4.1.4).
    pub(in crate::connection) kept: Vec<KeptPacket>,
    /// Parameters that limit a client's 0-RTT data until the server accepts or refuses it.
    pub(in crate::connection) remembered: Option<Box<Params>>,
}

impl Opening {
    pub(in crate::connection) fn new(negotiation: Negotiation) -> Self {
        Self(Some(Box::new(Parts {
            negotiation,
            retried: None,
            kept: Vec::new(),
            remembered: None,
        })))
    }

    /// Drops the state.
    pub(in crate::connection) fn end(&mut self) {
        self.0 = None;
    }

    /// Returns the state of version negotiation.
    pub(in crate::connection) fn negotiation(&self) -> Option<&Negotiation> {
        self.0.as_ref().map(|parts| &parts.negotiation)
    }

    /// Returns the state of version negotiation.
    pub(in crate::connection) fn negotiation_mut(&mut self) -> Option<&mut Negotiation> {
        self.0.as_mut().map(|parts| &mut parts.negotiation)
    }

    /// Returns true if a client must start again in another version.
    pub(in crate::connection) fn wants_restart(&self) -> bool {
        self.negotiation().is_some_and(Negotiation::wants_restart)
    }

    /// Returns true if a client waits for the packet that decides the version.
    pub(in crate::connection) fn awaits_version(&self) -> bool {
        self.negotiation().is_some_and(Negotiation::is_open)
    }

    /// Settles the version at the first CRYPTO data from the server (RFC 9369 §4.1).
    pub(in crate::connection) fn fix_version(&mut self) {
        if let Some(negotiation) = self.negotiation_mut() {
            negotiation.decide();
        }
    }

    /// Returns the contents of the Retry that was followed.
    pub(in crate::connection) fn retried(&self) -> Option<&Retried> {
        self.0.as_ref()?.retried.as_ref()
    }

    /// Sets the contents of the Retry that was followed or sent.
    pub(in crate::connection) fn set_retried(&mut self, retried: Retried) {
        if let Some(parts) = &mut self.0 {
            parts.retried = Some(retried);
        }
    }

    /// Returns the parameters that limit 0-RTT data, until the server has accepted or refused it.
    pub(in crate::connection) fn remembered(&self) -> Option<&Params> {
        self.0.as_ref()?.remembered.as_deref()
    }

    /// Sets the parameters that limit 0-RTT data.
    pub(in crate::connection) fn set_remembered(&mut self, params: Option<Params>) {
        if let Some(parts) = &mut self.0 {
            parts.remembered = params.map(Box::new);
        }
    }

    /// Keeps a packet whose keys are not available yet; returns false if there are too many.
    pub(in crate::connection) fn keep(&mut self, packet: Protected<'_>, seen: Seen) -> bool {
        let Some(parts) = &mut self.0 else {
            return false;
        };
        let room = parts.kept.len() < limits::UNDECRYPTABLE_PACKETS;
        if room {
            let packet = packet.into();
            parts.kept.push(KeptPacket { packet, seen });
        }
        room
    }

    /// Takes a kept packet whose keys are available.
    pub(in crate::connection) fn next_kept(&mut self, handshake: &Handshake) -> Option<KeptPacket> {
        let kept = &mut self.0.as_mut()?.kept;
        let is_ready = |kept: &KeptPacket| !handshake.waits_for_keys(kept.packet.kind());
        let place = kept.iter().position(is_ready)?;
        Some(kept.remove(place))
    }

    /// Drops the packets that wait for keys.
    pub(in crate::connection) fn drop_kept(&mut self) {
        if let Some(parts) = &mut self.0 {
            parts.kept = Vec::new();
        }
    }
}
