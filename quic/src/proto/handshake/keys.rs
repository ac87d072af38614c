use std::time::Instant;

use hybriq_tls::{Level, Secret, Side};

use crate::proto::packet::{
    DirectionKeys, HeaderKey, KeyPair, KeyPhase, PacketKey, Version, confidentiality_limit,
    integrity_limit, next_packet_key,
};

/// Packets of the confidentiality limit kept for CONNECTION_CLOSE and its repetitions.
const RESERVED_FOR_CLOSING: u64 = 1 << 10;

/// The keys of every level that is in use.
pub struct Keys {
    /// The version in use, which secrets are turned into keys for.
    version: Version,
    initial: Option<Box<KeyPair>>,
    /// What opens Initial packets of the version that the client began with, where another one
    /// was negotiated since (RFC 9369 §4.1).
    original: Option<Box<DirectionKeys>>,
    handshake: Half,
    one_rtt: Half,
    one_rtt_ready: Option<Box<OneRtt>>,
    handshake_ready: Option<Box<KeyPair>>,
    discarded_handshake: bool,
    zero_rtt: Option<Box<DirectionKeys>>,
    early_version: Version,
}

/// Secrets of a level come one direction at a time.
#[derive(Default)]
struct Half {
    local: Option<Secret>,
    peer: Option<Secret>,
}

impl Half {
    fn insert(&mut self, side: Side, secret: &Secret) -> Option<(Secret, Secret)> {
        if secret.writer() == side {
            self.local = Some(secret.clone());
        } else {
            self.peer = Some(secret.clone());
        }
        match (self.local.take(), self.peer.take()) {
            (Some(local), Some(peer)) => Some((local, peer)),
            (local, peer) => {
                *self = Self { local, peer };
                None
            }
        }
    }
}

impl Keys {
    pub(super) fn new(version: Version, initial: KeyPair) -> Self {
        Self {
            version,
            initial: Some(Box::new(initial)),
            original: None,
            handshake: Half::default(),
            one_rtt: Half::default(),
            one_rtt_ready: None,
            handshake_ready: None,
            discarded_handshake: false,
            zero_rtt: None,
            early_version: version,
        }
    }

    /// The version of the client's first flight, which 0-RTT packets stay in (RFC 9369 §4.1).
    pub fn set_original_version(&mut self, version: Version) {
        self.early_version = version;
    }

    pub(super) fn install(&mut self, side: Side, secret: &Secret) {
        match secret.level() {
            Level::Handshake => {
                if let Some((local, peer)) = self.handshake.insert(side, secret) {
                    self.handshake_ready = Some(Box::new(KeyPair {
                        local: DirectionKeys::from_secret(self.version, &local),
                        peer: DirectionKeys::from_secret(self.version, &peer),
                    }));
                }
            }
            Level::OneRtt => {
                if let Some((local, peer)) = self.one_rtt.insert(side, secret) {
                    self.one_rtt_ready = Some(Box::new(OneRtt::new(self.version, local, &peer)));
                }
            }
            // Only clients write 0-RTT packets.
            Level::ZeroRtt if secret.writer().is_client() => {
                let keys = DirectionKeys::from_secret(self.early_version, secret);
                self.zero_rtt = Some(Box::new(keys));
            }
            Level::Initial | Level::ZeroRtt => {}
        }
    }

    /// Replaces the Initial keys: a Retry changes the connection id they come from.
    pub fn replace_initial(&mut self, keys: KeyPair) {
        self.initial = Some(Box::new(keys));
    }

    /// The version in use.
    pub fn version(&self) -> Version {
        self.version
    }

    /// A client learned that another version is used from now on; what comes in the original one
    /// is still opened.
    pub fn switch(&mut self, version: Version, initial: KeyPair) {
        let before = self.initial.replace(Box::new(initial));
        self.original = before.map(|before| Box::new(before.peer));
        self.version = version;
    }

    /// A server chose another version than the client began with.
    pub fn keep_original(&mut self, peer: DirectionKeys) {
        self.original = Some(Box::new(peer));
    }

    /// What opens Initial packets of the original version, where it is not the one in use.
    pub fn original(&self) -> Option<&DirectionKeys> {
        self.original.as_deref()
    }

    /// The Initial keys, until they are discarded.
    pub fn initial(&self) -> Option<&KeyPair> {
        self.initial.as_deref()
    }

    /// The Handshake keys, while they are in use.
    pub fn handshake(&self) -> Option<&KeyPair> {
        self.handshake_ready.as_deref()
    }

    /// Whether the Handshake keys came and went.
    pub fn handshake_discarded(&self) -> bool {
        self.discarded_handshake
    }

    /// The 0-RTT keys, while they are in use: a client seals with them, a server opens.
    pub fn zero_rtt(&self) -> Option<&DirectionKeys> {
        self.zero_rtt.as_deref()
    }

    /// The 1-RTT keys, once both secrets are known.
    pub fn one_rtt(&self) -> Option<&OneRtt> {
        self.one_rtt_ready.as_deref()
    }

    /// The 1-RTT keys, to update.
    pub fn one_rtt_mut(&mut self) -> Option<&mut OneRtt> {
        self.one_rtt_ready.as_deref_mut()
    }

    pub(super) fn discard(&mut self, level: Level) {
        match level {
            Level::Initial => {
                self.initial = None;
                self.original = None;
            }
            Level::Handshake => {
                self.handshake = Half::default();
                self.handshake_ready = None;
                self.discarded_handshake = true;
            }
            Level::ZeroRtt => self.zero_rtt = None,
            Level::OneRtt => {}
        }
    }
}

/// 1-RTT keys with their updates (RFC 9001 §6).
///
/// ```text
///            our update, or a packet of the other phase opens with the next key
///   phase p ──────────────────────────────────────────────────────────────────► phase !p
///            the old opening key stays for packets that were overtaken
/// ```
pub struct OneRtt {
    version: Version,
    /// The secret of the keys we seal with.
    local_secret: Secret,
    /// The secret of `next_peer`.
    next_peer_secret: Secret,
    local: DirectionKeys,
    peer: DirectionKeys,
    next_peer: PacketKey,
    previous_peer: Option<PacketKey>,
    previous_expires: Option<Instant>,
    phase: KeyPhase,
    phase_opened_at: Option<u64>,
    /// The first number sealed in this phase.
    phase_sealed_from: Option<u64>,
    sealed: u64,
    failed: u64,
    updates: u64,
}

/// Which key opens a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The key of the current phase.
    Current,
    /// The key before the last update.
    Previous,
    /// The key of an update by the peer.
    Next,
}

impl OneRtt {
    fn new(version: Version, local_secret: Secret, peer_secret: &Secret) -> Self {
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
            phase_opened_at: None,
            phase_sealed_from: None,
            sealed: 0,
            failed: 0,
            updates: 0,
        }
    }

    /// The keys we seal with.
    pub fn local(&self) -> &DirectionKeys {
        &self.local
    }

    /// The peer's header protection, which no update changes.
    pub fn peer_header(&self) -> &HeaderKey {
        &self.peer.header
    }

    /// The key phase bit of packets we send.
    pub fn phase(&self) -> KeyPhase {
        self.phase
    }

    /// How often the keys were updated.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Which key a packet wants, by its phase bit and its number.
    pub fn choose(&self, phase: KeyPhase, pn: u64) -> Opening {
        if phase == self.phase {
            return Opening::Current;
        }
        let overtaken = self.phase_opened_at.is_none_or(|first| pn < first);
        if self.previous_peer.is_some() && overtaken {
            Opening::Previous
        } else {
            Opening::Next
        }
    }

    /// The key chosen.
    pub fn opening(&self, which: Opening) -> &PacketKey {
        match which {
            Opening::Current => &self.peer.packet,
            Opening::Previous => self.previous_peer.as_ref().unwrap_or(&self.peer.packet),
            Opening::Next => &self.next_peer,
        }
    }

    /// Notes a packet that was opened; follows the peer's update. `keep_until` is when the keys
    /// before it are dropped: three times the PTO from now (RFC 9001 §6.5).
    pub fn on_opened(&mut self, which: Opening, pn: u64, keep_until: Instant) {
        match which {
            Opening::Current => {
                if self.phase_opened_at.is_none_or(|first| pn < first) {
                    self.phase_opened_at = Some(pn);
                    if self.previous_peer.is_some() && self.previous_expires.is_none() {
                        self.previous_expires = Some(keep_until);
                    }
                }
            }
            Opening::Previous => {}
            Opening::Next => {
                self.update();
                self.phase_opened_at = Some(pn);
                self.previous_expires = Some(keep_until);
            }
        }
    }

    /// Starts an update: both directions move to the next keys.
    pub fn update(&mut self) {
        self.local.packet = next_packet_key(self.version, &mut self.local_secret);
        let following = next_packet_key(self.version, &mut self.next_peer_secret);
        let current = std::mem::replace(&mut self.next_peer, following);
        self.previous_peer = Some(std::mem::replace(&mut self.peer.packet, current));
        self.previous_expires = None;
        self.phase = self.phase.toggled();
        self.phase_opened_at = None;
        self.phase_sealed_from = None;
        self.sealed = 0;
        self.updates += 1;
    }

    /// Whether an update of ours may start: the last one, by either end, was followed by the other,
    /// which is known once a packet of this phase was acknowledged (RFC 9001 §6.1).
    pub fn may_update(&self, largest_acked: Option<u64>) -> bool {
        let acked = self
            .phase_sealed_from
            .is_some_and(|first| largest_acked.is_some_and(|acked| acked >= first));
        acked && self.phase_opened_at.is_some() && self.previous_peer.is_none()
    }

    /// Counts a packet sealed; says whether the keys are due for an update (RFC 9001 §6.6).
    pub fn on_sealed(&mut self, pn: u64) -> bool {
        self.phase_sealed_from.get_or_insert(pn);
        self.sealed += 1;
        self.sealed >= confidentiality_limit(self.local_secret.suite()) / 2
    }

    /// Whether the keys may seal no more, but for the few packets that close the connection
    /// (RFC 9001 §6.6): the peer did not follow the update that was due long before.
    pub fn is_spent(&self) -> bool {
        let limit = confidentiality_limit(self.local_secret.suite());
        self.sealed >= limit - RESERVED_FOR_CLOSING
    }

    /// Pretends that the keys have so many packets left.
    #[cfg(test)]
    pub fn leave(&mut self, packets: u64) {
        let limit = confidentiality_limit(self.local_secret.suite());
        self.sealed = limit - RESERVED_FOR_CLOSING - packets;
    }

    /// Counts a packet that did not open; says whether the connection must end (RFC 9001 §6.6).
    pub fn on_failed(&mut self) -> bool {
        self.failed += 1;
        self.failed >= integrity_limit(self.local_secret.suite())
    }

    /// Drops the keys before the last update when their time is over.
    pub fn expire(&mut self, now: Instant) {
        if self.previous_expires.is_some_and(|at| at <= now) {
            self.previous_peer = None;
            self.previous_expires = None;
        }
    }
}
