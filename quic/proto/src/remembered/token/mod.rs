//! Address validation tokens (RFC 9000 §8.1): sealed proofs that a client receives at an address.
//!
//! ```text
//! kind (1) ‖ key id (4) ‖ seed (16) ‖ sealed { issued (8) ‖ length (1) ‖ original id } ‖ tag (16)
//! ```
//! Each token has its own AES-256-GCM key, derived from the ring's key and the seed: a fleet under
//! attack seals more tokens than the random nonces of one key would allow. The data that a token is
//! bound to is authenticated with it, but not contained in it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use arrayvec::ArrayVec;
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    hmac,
};

use crate::wire::{Reader, limits, packet::Cid};

#[cfg(test)]
mod tests;

const KEY_ID_LEN: usize = 4;
/// Bytes of the seed that makes every token unique.
pub const SEED_LEN: usize = 16;
const TAG_LEN: usize = 16;
const HEADER_LEN: usize = 1 + KEY_ID_LEN + SEED_LEN;
const MAX_CLAIM: usize = 8 + 1 + limits::MAX_CID_LEN;
/// Largest binding in bytes: kind, address, port, version, connection id.
const MAX_BINDING: usize = 1 + 16 + 2 + 4 + 1 + limits::MAX_CID_LEN;

/// Largest length of a token in bytes.
pub const MAX_LEN: usize = HEADER_LEN + MAX_CLAIM + TAG_LEN;

const MIN_LEN: usize = HEADER_LEN + 8 + 1 + TAG_LEN;

/// A token to be sent.
pub type Token = ArrayVec<u8, MAX_LEN>;

/// Kind of a token by its source, as given by its first byte (RFC 9000 §8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// From a Retry packet: must be returned at once.
    Retry,
    /// From a NEW_TOKEN frame: for a later connection.
    New,
}

impl Kind {
    /// Returns the kind that a token claims to be, or `None` if it is not ours: a client may
    /// present a token from another server.
    pub fn of(token: &[u8]) -> Option<Self> {
        if !(MIN_LEN..=MAX_LEN).contains(&token.len()) {
            return None;
        }
        let first = *token.first()?;
        [Self::Retry, Self::New]
            .into_iter()
            .find(|kind| kind.byte() == first)
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Retry => 0x52,
            Self::New => 0x4e,
        }
    }
}

/// What a token is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    kind: Kind,
    ip: IpAddr,
    port: u16,
    version: u32,
    scid: Cid,
}

impl Binding {
    /// Binds a token to the answer to a Retry: from this address and port, to the connection id of
    /// the Retry.
    pub const fn retry(peer: SocketAddr, scid: Cid, version: u32) -> Self {
        Self {
            kind: Kind::Retry,
            ip: peer.ip(),
            port: peer.port(),
            version,
            scid,
        }
    }

    /// Binds a token to a later connection from the same IP address, from any port, because NATs
    /// and clients change ports (RFC 9000 §8.1.3). A token is valid for the version of its
    /// connection (RFC 9369 §5).
    pub const fn new_token(ip: IpAddr, version: u32) -> Self {
        Self {
            kind: Kind::New,
            ip,
            port: 0,
            version,
            scid: Cid::EMPTY,
        }
    }

    fn bytes(&self) -> ArrayVec<u8, MAX_BINDING> {
        let ip = match self.ip.to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut bytes = ArrayVec::new();
        bytes.push(self.kind.byte());
        bytes.extend(ip.octets());
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(self.version.to_be_bytes());
        bytes.push(self.scid.len() as u8);
        bytes.extend(self.scid.as_bytes().iter().copied());
        bytes
    }
}

/// Contents of an authentic token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// Time at which it was sealed, in seconds since 1970.
    pub issued: u64,
    /// Connection id of the client's first packet, in a Retry token.
    pub original_dcid: Cid,
    /// Random bytes that identify the token.
    pub seed: [u8; SEED_LEN],
}

/// A key that seals and opens tokens.
#[derive(Clone)]
struct Key {
    id: [u8; KEY_ID_LEN],
    derive: hmac::Key,
}

impl Key {
    fn new(secret: &[u8; 32]) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let id = hmac::sign(&root, b"hybriq token key id");
        let derive = hmac::sign(&root, b"hybriq token key");
        Self {
            id: id.as_ref().first_chunk().copied().unwrap_or_default(),
            derive: hmac::Key::new(hmac::HMAC_SHA256, derive.as_ref()),
        }
    }

    fn of_token(&self, seed: &[u8; SEED_LEN]) -> Option<LessSafeKey> {
        let key = hmac::sign(&self.derive, seed);
        Some(LessSafeKey::new(
            UnboundKey::new(&AES_256_GCM, key.as_ref()).ok()?,
        ))
    }
}

/// Keys that seal and open tokens.
#[derive(Clone)]
pub struct Ring {
    /// All keys open tokens; the first one seals them.
    keys: ArrayVec<Key, { limits::TOKEN_KEYS }>,
}

impl Ring {
    /// Creates a ring of one key.
    pub fn new(secret: &[u8; 32]) -> Self {
        let mut keys = ArrayVec::new();
        keys.push(Key::new(secret));
        Self { keys }
    }

    /// Adds a key that seals tokens from now on. If there are too many, the oldest is dropped.
    pub fn rotate(&mut self, secret: &[u8; 32]) {
        self.insert(0, secret);
    }

    /// Adds a key that only opens tokens.
    pub fn accept(&mut self, secret: &[u8; 32]) {
        self.insert(1, secret);
    }

    fn insert(&mut self, place: usize, secret: &[u8; 32]) {
        let key = Key::new(secret);
        if place > 0 && self.keys.first().is_some_and(|first| first.id == key.id) {
            return;
        }
        self.keys.retain(|known| known.id != key.id);
        if self.keys.is_full() {
            self.keys.pop();
        }
        self.keys.insert(place.min(self.keys.len()), key);
    }

    /// Returns the public name of the key that seals, by which two processes check that they have
    /// the same key.
    pub fn sealing_key(&self) -> [u8; 8] {
        let mut name = [0; 8];
        let id = self.keys.first().map(|key| key.id).unwrap_or_default();
        for (to, from) in name.iter_mut().zip(id) {
            *to = from;
        }
        name
    }

    /// Creates a token. `seed` must be random and used only once.
    pub fn seal(
        &self,
        binding: &Binding,
        seed: [u8; SEED_LEN],
        issued: u64,
        original_dcid: &Cid,
    ) -> Option<Token> {
        let key = self.keys.first()?;
        let mut token = Token::new();
        token.push(binding.kind.byte());
        token.extend(key.id);
        token.extend(seed);
        token.extend(issued.to_be_bytes());
        token.push(original_dcid.len() as u8);
        token.extend(original_dcid.as_bytes().iter().copied());
        let claim = token.get_mut(HEADER_LEN..)?;
        let tag = key
            .of_token(&seed)?
            .seal_in_place_separate_tag(nonce(), Aad::from(&*binding.bytes()), claim)
            .ok()?;
        token.extend(tag.as_ref().iter().copied());
        Some(token)
    }

    /// Opens a token. Returns `None` if it is forged, was sealed with an unknown key, or is bound
    /// to something else.
    pub fn open(&self, binding: &Binding, token: &[u8]) -> Option<Opened> {
        if Kind::of(token)? != binding.kind {
            return None;
        }
        let mut reader = Reader::new(token.get(1..)?);
        let id = reader.bytes(KEY_ID_LEN).ok()?;
        let seed = *reader.bytes(SEED_LEN).ok()?.first_chunk()?;
        let mut sealed: Token = reader.rest().iter().copied().collect();
        let key = self.keys.iter().find(|key| key.id == id)?;
        let claim = key
            .of_token(&seed)?
            .open_in_place(nonce(), Aad::from(&*binding.bytes()), &mut sealed)
            .ok()?;
        let mut claim = Reader::new(claim);
        let issued = claim.bytes(8).ok()?.first_chunk()?;
        let len = claim.u8().ok()?;
        let original_dcid = Cid::new(claim.bytes(len.into()).ok()?)?;
        claim.is_empty().then_some(Opened {
            issued: u64::from_be_bytes(*issued),
            original_dcid,
            seed,
        })
    }
}

/// Source of the keys that seal and open tokens, which may be rotated while a server runs:
/// `hybriq::fleet::TokenKeys`, or an [`Arc`] of a [`Ring`] that stays the same.
pub trait Keys: std::fmt::Debug + Send + Sync {
    /// Returns the current keys.
    fn ring(&self) -> Arc<Ring>;
}

impl Keys for Arc<Ring> {
    fn ring(&self) -> Arc<Ring> {
        self.clone()
    }
}

/// Returns a constant nonce, because each key seals only one token.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}
