//! Packets: which may be sent with the available keys, and the keys that open received ones.

use std::time::Instant;

use crate::{
    owners::handshake::{Handshake, OneRtt},
    wire::{
        error::Violation,
        packet::{DirectionKeys, Kind, OpenError, PacketNumber, Protected, Space, Version},
    },
};

/// A packet whose protection was removed.
pub(crate) struct Opened<'p> {
    pub(crate) pn: PacketNumber,
    /// Its frames.
    pub(crate) payload: &'p mut [u8],
}

impl Handshake {
    /// Returns true if keys for such packets are still to come. 1-RTT packets wait for the end of
    /// the handshake (RFC 9001 §5.7).
    pub(crate) fn waits_for_keys(&self, kind: Kind) -> bool {
        let keys = &self.keys;
        match kind {
            // A server has 0-RTT keys from the ClientHello on, or never.
            Kind::Initial | Kind::ZeroRtt => false,
            Kind::Handshake => keys.handshake().is_none() && !keys.handshake_discarded(),
            Kind::OneRtt => keys.one_rtt().is_none() || !self.complete,
        }
    }

    /// Opens a packet with a long header; `None` drops it.
    pub(crate) fn open_long<'p>(
        &mut self,
        packet: Protected<'p>,
        largest: Option<PacketNumber>,
    ) -> Option<Result<Opened<'p>, Violation>> {
        let keys = &self.keys;
        let keys = match packet.kind {
            Kind::Initial => self.initial_opening_keys(packet.version?),
            Kind::Handshake => keys.handshake().map(|keys| &keys.peer),
            Kind::ZeroRtt => keys.zero_rtt(),
            Kind::OneRtt => None,
        }?;
        let packet = packet.unprotect(&keys.header, largest).ok()?;
        let pn = packet.pn;
        let opened = packet
            .open(&keys.packet)
            .map(|payload| Opened { pn, payload });
        let failed = matches!(opened, Err(OpenError::Undecryptable));
        if failed && self.keys.on_failed() {
            return Some(Err(Violation::TooManyForgeries));
        }
        opened_long(Some(opened))
    }

    /// Opens a 1-RTT packet and follows the peer's key updates (RFC 9001 §6). The keys before
    /// an update are kept until `keep_until`.
    pub(crate) fn open_one_rtt<'p>(
        &mut self,
        now: Instant,
        keep_until: impl FnOnce() -> Instant,
        packet: Protected<'p>,
        largest: Option<PacketNumber>,
    ) -> Option<Result<Opened<'p>, Violation>> {
        let keys = self.keys.one_rtt_mut()?;
        keys.expire(now);
        let packet = packet.unprotect(keys.peer_header(), largest).ok()?;
        let pn = packet.pn;
        let which = keys.choose(packet.key_phase, pn);
        match packet.open(keys.opening(which)) {
            Ok(payload) => {
                let followed = keys.on_opened(which, pn, keep_until);
                Some(followed.map(|()| Opened { pn, payload }))
            }
            Err(OpenError::ReservedBits) => Some(Err(Violation::ReservedBits)),
            Err(OpenError::Undecryptable) => {
                keys.on_failed().then_some(Err(Violation::TooManyForgeries))
            }
        }
    }

    /// Returns the keys that open an Initial packet of this version.
    fn initial_opening_keys(&self, version: Version) -> Option<&DirectionKeys> {
        let keys = &self.keys;
        if version == keys.version() {
            keys.initial().map(|keys| &keys.peer)
        } else {
            keys.original()
        }
    }

    /// Checks that a peer that acknowledges a packet under new keys uses these keys itself (RFC
    /// 9001 §6.2).
    pub(crate) fn check_ack_keys(
        &self,
        space: Space,
        largest: PacketNumber,
    ) -> Result<(), Violation> {
        let keys = self.keys.one_rtt();
        if space != Space::Data || keys.is_none_or(|keys| keys.may_acknowledge(largest)) {
            return Ok(());
        }
        Err(Violation::AckUnderOldKeys)
    }
}

/// Drops a packet that is not authentic; reserved bits that are set are an error of the peer.
pub(crate) fn opened_long<T>(opened: Option<Result<T, OpenError>>) -> Option<Result<T, Violation>> {
    match opened? {
        Ok(opened) => Some(Ok(opened)),
        Err(OpenError::Undecryptable) => None,
        Err(OpenError::ReservedBits) => Some(Err(Violation::ReservedBits)),
    }
}

impl Handshake {
    /// Returns true if a client currently sends 0-RTT packets.
    #[inline]
    pub(crate) fn sends_zero_rtt(&self) -> bool {
        self.side.is_client() && !self.complete && self.keys.zero_rtt().is_some()
    }

    /// Returns the kind of packet sent in a space.
    #[inline]
    pub(crate) fn kind_of(&self, space: Space) -> Kind {
        match space {
            Space::Initial => Kind::Initial,
            Space::Handshake => Kind::Handshake,
            Space::Data if self.sends_zero_rtt() => Kind::ZeroRtt,
            Space::Data => Kind::OneRtt,
        }
    }

    /// Returns true if packets of a space may be sent. A server may send 1-RTT packets right after
    /// its Finished, a client once TLS is complete.
    pub(crate) fn may_send(&self, space: Space) -> bool {
        match space {
            Space::Initial => self.keys.initial().is_some(),
            Space::Handshake => self.keys.handshake().is_some(),
            Space::Data => {
                let allowed = self.side.is_server() || self.complete;
                (self.keys.one_rtt().is_some() && allowed) || self.sends_zero_rtt()
            }
        }
    }

    /// Returns the keys that seal packets of a space.
    #[inline]
    pub(crate) fn sealing_keys(&self, space: Space) -> Option<&DirectionKeys> {
        match space {
            Space::Initial => self.keys.initial().map(|keys| &keys.local),
            Space::Handshake => self.keys.handshake().map(|keys| &keys.local),
            Space::Data if self.sends_zero_rtt() => self.keys.zero_rtt(),
            Space::Data => self.keys.one_rtt().map(OneRtt::local),
        }
    }
}
