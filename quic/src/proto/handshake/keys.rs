use hybriq_tls::{Level, Secret, Side};

use super::OneRtt;
use crate::proto::packet::{DirectionKeys, KeyPair, Version};

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
