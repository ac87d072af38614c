//! Keys of 1-RTT packets and their updates (RFC 9001 §6).

use std::time::Instant;

use hybriq_tls::Secret;

use crate::wire::{
    error::Violation,
    packet::{
        DirectionKeys, HeaderKey, KeyPhase, PacketKey, PacketNumber, Version,
        confidentiality_limit, integrity_limit, next_packet_key,
    },
};

/// Packets below the confidentiality limit reserved for CONNECTION_CLOSE and its repetitions.
pub(in crate::owners::handshake) const RESERVED_FOR_CLOSING: u64 = 1 << 10;

#[cfg(test)]
mod tests;

/// 1-RTT keys with their updates (RFC 9001 §6).
///
/// ```text
///            our update, or a packet of the other phase opens with the next key
///   phase p ──────────────────────────────────────────────────────────────────► phase !p
///            the old opening key stays for packets that were overtaken
/// ```
pub(crate) struct OneRtt {
    version: Version,
    /// Secret of the keys that we seal with.
    local_secret: Secret,
    /// Secret of `next_peer`.
    next_peer_secret: Secret,
    local: DirectionKeys,
    peer: DirectionKeys,
    next_peer: PacketKey,
    previous_peer: Option<PacketKey>,
    previous_expires: Option<Instant>,
    phase: KeyPhase,
    /// Smallest and largest number opened in this phase.
    phase_opened: Option<(PacketNumber, PacketNumber)>,
    /// Largest number opened with the previous keys.
    previous_opened: Option<PacketNumber>,
    last_opened: Opening,
    /// First number sealed in this phase.
    phase_sealed_from: Option<PacketNumber>,
    /// True if, in this phase, we have acknowledged a packet of this phase to the peer.
    phase_acknowledged: bool,
    wanted: bool,
    sealed: u64,
    failed: u64,
    updates: u64,
}

/// Key that opens a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Key of the current phase.
    Current,
    /// Key before the last update.
    Previous,
    /// Key of an update by the peer.
    Next,
}

impl OneRtt {
    /// Creates the keys of a connection in which `failed` packets already failed to open.
    pub(in crate::owners::handshake) fn new(
        version: Version,
        local_secret: Secret,
        peer_secret: &Secret,
        failed: u64,
    ) -> Self {
        let mut next_peer_secret = peer_secret.clone();
        Self {
            version,
            local: DirectionKeys::from_secret(version, &local_secret),
            peer: DirectionKeys::from_secret(version, peer_secret),
            next_peer: next_packet_key(version, &mut next_peer_secret),
            local_secret,
            next_peer_secret,
            previous_peer: None,
            previous_expires: None,
            phase: KeyPhase::Zero,
            phase_opened: None,
            previous_opened: None,
            last_opened: Opening::Current,
            phase_sealed_from: None,
            phase_acknowledged: false,
            wanted: false,
            sealed: 0,
            failed,
            updates: 0,
        }
    }

    /// Returns the keys that we seal with.
    pub(crate) fn local(&self) -> &DirectionKeys {
        &self.local
    }

    /// Returns the peer's header protection, which no update changes.
    pub(crate) fn peer_header(&self) -> &HeaderKey {
        &self.peer.header
    }

    /// Returns the key phase bit of packets we send.
    pub(crate) fn phase(&self) -> KeyPhase {
        self.phase
    }

    /// Returns the number of key updates.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the key for a packet, by its phase bit and its number (RFC 9001 §6.5). Only one key
    /// is tried, so that timing does not reveal the header (RFC 9001 §9.5).
    pub(crate) fn choose(&self, phase: KeyPhase, pn: PacketNumber) -> Opening {
        if phase == self.phase {
            return Opening::Current;
        }
        // A packet after the largest number of this phase may belong to the next phase; an earlier
        // packet may not.
        let is_older = self.phase_opened.is_none_or(|(_, largest)| pn < largest);
        if self.previous_peer.is_some() && is_older {
            Opening::Previous
        } else {
            Opening::Next
        }
    }

    /// Returns the chosen key.
    pub(crate) fn opening(&self, which: Opening) -> &PacketKey {
        match which {
            Opening::Current => &self.peer.packet,
            Opening::Previous => self.previous_peer.as_ref().unwrap_or(&self.peer.packet),
            Opening::Next => &self.next_peer,
        }
    }

    /// Notes a packet that was opened, and follows the peer's update. The previous keys are dropped
    /// at `keep_until`: three times the PTO from now (RFC 9001 §6.5).
    ///
    /// # Errors
    /// Fails if the peer used keys that it must not use.
    pub(crate) fn on_opened(
        &mut self,
        which: Opening,
        pn: PacketNumber,
        keep_until: impl FnOnce() -> Instant,
    ) -> Result<(), Violation> {
        match which {
            Opening::Current => {
                if self.previous_opened.is_some_and(|largest| pn < largest) {
                    return Err(Violation::OldKeys);
                }
                if self.previous_peer.is_some() && self.previous_expires.is_none() {
                    self.previous_expires = Some(keep_until());
                }
            }
            Opening::Previous => {
                if self.phase_opened.is_some_and(|(smallest, _)| pn > smallest) {
                    return Err(Violation::OldKeys);
                }
                self.previous_opened = self.previous_opened.max(Some(pn));
                self.last_opened = which;
                return Ok(());
            }
            Opening::Next => {
                self.check_next(pn)?;
                self.update();
                self.previous_expires = Some(keep_until());
            }
        }
        let (smallest, largest) = self.phase_opened.unwrap_or((pn, pn));
        self.phase_opened = Some((smallest.min(pn), largest.max(pn)));
        self.last_opened = which;
        Ok(())
    }

    /// Checks that the peer may update its keys: only after it knows that we have everything we
    /// need (RFC 9001 §6, §6.2).
    fn check_next(&self, pn: PacketNumber) -> Result<(), Violation> {
        if self.phase_opened.is_some_and(|(_, largest)| pn < largest) {
            return Err(Violation::OldKeys);
        }
        if self.updates > 0 && !self.phase_acknowledged {
            return Err(Violation::SecondKeyUpdate);
        }
        // A client knows this from a packet of the server, a server from the client's Finished.
        let server = self.local_secret.writer().is_server();
        if server && self.updates == 0 && self.phase_sealed_from.is_none() {
            return Err(Violation::EarlyKeyUpdate);
        }
        Ok(())
    }

    /// Returns true if the last opened packet may acknowledge this number: a packet protected with
    /// old keys cannot acknowledge one under new keys (RFC 9001 §6.2).
    pub(crate) fn may_acknowledge(&self, largest: PacketNumber) -> bool {
        self.last_opened != Opening::Previous
            || self.phase_sealed_from.is_none_or(|first| largest < first)
    }

    /// Requests an update as soon as one may start.
    pub(crate) fn want_update(&mut self) {
        self.wanted = true;
    }

    /// Returns true if an update was requested and has not started yet.
    pub(crate) fn wants_update(&self) -> bool {
        self.wanted
    }

    /// Starts an update: both directions move to the next keys.
    pub(crate) fn update(&mut self) {
        self.local.packet = next_packet_key(self.version, &mut self.local_secret);
        let following = next_packet_key(self.version, &mut self.next_peer_secret);
        let current = std::mem::replace(&mut self.next_peer, following);
        self.previous_peer = Some(std::mem::replace(&mut self.peer.packet, current));
        self.previous_expires = None;
        self.phase = self.phase.toggled();
        self.previous_opened = self.phase_opened.take().map(|(_, largest)| largest);
        self.phase_sealed_from = None;
        self.phase_acknowledged = false;
        self.wanted = false;
        self.sealed = 0;
        self.updates += 1;
    }

    /// Returns true if we may start an update: the peer must have followed the last one, which is
    /// known once a packet of this phase was acknowledged (RFC 9001 §6.1).
    pub(crate) fn may_update(&self, largest_acked: Option<PacketNumber>) -> bool {
        let acked = self
            .phase_sealed_from
            .is_some_and(|first| largest_acked.is_some_and(|acked| acked >= first));
        acked && self.phase_opened.is_some() && self.previous_peer.is_none()
    }

    /// Notes an acknowledgement of numbers up to this one, sealed with the current keys.
    pub(crate) fn on_acknowledgement_sent(&mut self, largest: PacketNumber) {
        self.phase_acknowledged |= self
            .phase_opened
            .is_some_and(|(smallest, _)| largest >= smallest);
    }

    /// Counts a sealed packet. Returns true if the keys are due for an update, long before the
    /// limit of the AEAD (RFC 9001 §6.6).
    pub(crate) fn on_sealed(&mut self, pn: PacketNumber, most: u64) -> bool {
        self.phase_sealed_from.get_or_insert(pn);
        self.sealed += 1;
        self.sealed >= most.min(confidentiality_limit(self.local_secret.suite()) / 2)
    }

    /// Returns true if the keys may seal nothing more except the close of the connection (RFC 9001
    /// §6.6): the peer did not follow the update that was due long ago.
    pub(crate) fn is_spent(&self) -> bool {
        let limit = confidentiality_limit(self.local_secret.suite());
        self.sealed >= limit - RESERVED_FOR_CLOSING
    }

    /// Counts a packet that failed to open, with any keys. Returns true if the connection must end
    /// (RFC 9001 §6.6).
    pub(crate) fn on_failed(&mut self) -> bool {
        self.failed += 1;
        self.failed >= integrity_limit(self.local_secret.suite())
    }

    /// Drops the previous keys once they expire.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.previous_expires.is_some_and(|at| at <= now) {
            self.previous_peer = None;
            self.previous_expires = None;
        }
    }
}
