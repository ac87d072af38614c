//! Packet keys by encryption level.

pub(super) mod key_update;
pub(super) mod packets;

use hybriq_tls::{Level, Secret, Side, Suite};

use self::key_update::RESERVED_FOR_CLOSING;
use super::OneRtt;
use crate::{
    stats::census::Census,
    wire::packet::{DirectionKeys, KeyPair, Version, confidentiality_limit, integrity_limit},
};

/// Keys of every level in use.
pub(crate) struct Keys {
    /// Version in use, for which keys are derived.
    version: Version,
    initial: Option<Box<KeyPair>>,
    /// Keys that open Initial packets of the client's original version, if another one was
    /// negotiated since (RFC 9369 §4.1).
    original: Option<Box<DirectionKeys>>,
    handshake: Half,
    one_rtt: Half,
    one_rtt_ready: Option<Box<OneRtt>>,
    handshake_ready: Option<Box<KeyPair>>,
    discarded_handshake: bool,
    pub(super) zero_rtt: Option<Box<ZeroRtt>>,
    early_version: Version,
    /// Packets that failed to open before there were 1-RTT keys.
    failed: u64,
}

/// 0-RTT keys, which are never updated.
pub(super) struct ZeroRtt {
    keys: DirectionKeys,
    /// Number of packets that may still be sealed (RFC 9001 §6.6).
    pub(super) left: u64,
}

/// Secret of a level whose other direction has not arrived yet.
#[derive(Default)]
struct Half(Option<Secret>);

impl Half {
    /// Adds a secret. Returns ours and the peer's once both are available.
    fn insert(&mut self, side: Side, secret: &Secret) -> Option<(Secret, Secret)> {
        match self.0.take() {
            Some(other) if other.writer() != secret.writer() => {
                if secret.writer() == side {
                    Some((secret.clone(), other))
                } else {
                    Some((other, secret.clone()))
                }
            }
            _ => {
                self.0 = Some(secret.clone());
                None
            }
        }
    }
}

impl Keys {
    /// Counts the keys that are held. A new field does not compile until somebody decides what it
    /// holds.
    pub(super) fn census(&self, census: &mut Census) {
        let Self {
            version: _,
            initial,
            original,
            handshake,
            one_rtt,
            one_rtt_ready,
            handshake_ready,
            discarded_handshake: _,
            zero_rtt,
            early_version: _,
            failed: _,
        } = self;
        let waiting = usize::from(handshake.0.is_some()) + usize::from(one_rtt.0.is_some());
        census.add("secrets that wait for the other half", waiting, 0);
        let of_handshake = usize::from(initial.is_some()) + usize::from(handshake_ready.is_some());
        census.add_of::<KeyPair>("keys of the handshake", of_handshake);
        census
            .add_of::<DirectionKeys>("keys of the first version", usize::from(original.is_some()));
        census.add_of::<OneRtt>(
            "keys of 1-RTT packets",
            usize::from(one_rtt_ready.is_some()),
        );
        census.add_of::<ZeroRtt>("keys of 0-RTT packets", usize::from(zero_rtt.is_some()));
    }

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
            failed: 0,
        }
    }

    /// Sets the version of the client's first flight, which 0-RTT packets keep (RFC 9369 §4.1), and
    /// the keys of its Initials at a server that chose another.
    pub(crate) fn set_original(&mut self, version: Version, peer: Option<Box<DirectionKeys>>) {
        self.early_version = version;
        self.original = peer;
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
                    self.one_rtt_ready = Some(Box::new(OneRtt::new(
                        self.version,
                        local,
                        &peer,
                        self.failed,
                    )));
                }
            }
            // Only clients send 0-RTT packets.
            Level::ZeroRtt if secret.writer().is_client() => {
                let keys = DirectionKeys::from_secret(self.early_version, secret);
                let left = confidentiality_limit(secret.suite()) - RESERVED_FOR_CLOSING;
                self.zero_rtt = Some(Box::new(ZeroRtt { keys, left }));
            }
            Level::Initial | Level::ZeroRtt => {}
        }
    }

    /// Replaces the Initial keys after a Retry changed the connection id they derive from.
    pub(crate) fn replace_initial(&mut self, keys: KeyPair) {
        self.initial = Some(Box::new(keys));
    }

    /// Returns true if there are keys of Initial or Handshake packets.
    #[inline]
    pub(crate) fn has_early_spaces(&self) -> bool {
        self.initial.is_some() || self.handshake_ready.is_some()
    }

    /// Returns the version in use.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Switches a client to another version; packets in the original one can still be opened.
    pub(crate) fn switch(&mut self, version: Version, initial: KeyPair) {
        let before = self.initial.replace(Box::new(initial));
        self.original = before.map(|before| Box::new(before.peer));
        self.version = version;
    }

    /// Returns the keys that open Initial packets of the original version, if it is not the one in
    /// use.
    pub(crate) fn original(&self) -> Option<&DirectionKeys> {
        self.original.as_deref()
    }

    /// Returns the Initial keys, until they are discarded.
    pub(crate) fn initial(&self) -> Option<&KeyPair> {
        self.initial.as_deref()
    }

    /// Returns the Handshake keys, while they are in use.
    pub(crate) fn handshake(&self) -> Option<&KeyPair> {
        self.handshake_ready.as_deref()
    }

    /// Returns true if the Handshake keys were discarded.
    pub(crate) fn handshake_discarded(&self) -> bool {
        self.discarded_handshake
    }

    /// Returns the 0-RTT keys, while they are in use: a client seals with them, a server opens.
    pub(crate) fn zero_rtt(&self) -> Option<&DirectionKeys> {
        self.zero_rtt.as_ref().map(|zero_rtt| &zero_rtt.keys)
    }

    /// Counts a sealed 0-RTT packet. At the limit of its keys a client waits for 1-RTT keys (RFC
    /// 9001 §6.6).
    pub(crate) fn on_zero_rtt_sealed(&mut self) {
        if let Some(zero_rtt) = &mut self.zero_rtt {
            zero_rtt.left = zero_rtt.left.saturating_sub(1);
            if zero_rtt.left == 0 {
                self.zero_rtt = None;
            }
        }
    }

    /// Counts a packet with a long header that failed to open. Returns true if the connection must
    /// end: failures of all keys count together (RFC 9001 §6.6).
    pub(crate) fn on_failed(&mut self) -> bool {
        if let Some(keys) = &mut self.one_rtt_ready {
            return keys.on_failed();
        }
        self.failed += 1;
        // The smallest limit of all suites.
        self.failed >= integrity_limit(Suite::ChaCha20Poly1305Sha256)
    }

    /// Returns the 1-RTT keys, once both secrets are known.
    pub(crate) fn one_rtt(&self) -> Option<&OneRtt> {
        self.one_rtt_ready.as_deref()
    }

    /// Returns the 1-RTT keys, for updates.
    pub(crate) fn one_rtt_mut(&mut self) -> Option<&mut OneRtt> {
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
