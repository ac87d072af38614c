//! Stateless resets from peers, and the connections that they end.

use arrayvec::ArrayVec;
use aws_lc_rs::hmac;
use hashbrown::DefaultHashBuilder;

use crate::{
    endpoint::{Slot, route::parts::Parts},
    wire::{ResetToken, limits},
};

/// Reset tokens of the peer's ids that one connection uses.
type Tokens = ArrayVec<ResetToken, { limits::PEER_CIDS }>;

/// Finds the connection that a stateless reset ends. Its destination connection id is random; only
/// the token at its end identifies the connection (RFC 9000 §10.3.1).
///
/// The table is keyed by a keyed hash of the token, so that the time of a look-up does not reveal
/// known tokens.
pub(in crate::endpoint) struct Resets {
    pub(in crate::endpoint) key: hmac::Key,
    pub(in crate::endpoint) slots: Parts<[u8; 16], Slot, DefaultHashBuilder>,
    /// Tokens of each connection.
    pub(in crate::endpoint) tokens: Parts<Slot, Tokens, DefaultHashBuilder>,
}

impl Resets {
    pub(in crate::endpoint) fn new(key: [u8; 16]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            slots: Parts::new(DefaultHashBuilder::default()),
            tokens: Parts::new(DefaultHashBuilder::default()),
        }
    }

    fn digest(&self, token: &[u8; 16]) -> [u8; 16] {
        let tag = hmac::sign(&self.key, token);
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Replaces the tokens of a connection.
    pub(in crate::endpoint) fn set<'a>(
        &mut self,
        slot: Slot,
        tokens: impl Iterator<Item = &'a ResetToken>,
    ) {
        let tokens: Tokens = tokens.copied().take(limits::PEER_CIDS).collect();
        // Clients that never moved have told a server none, and the hash of a slot costs more than this.
        if tokens.is_empty() && self.tokens.is_empty() {
            return;
        }
        let known = self.tokens.get(&slot);
        if known.map_or(tokens.is_empty(), |known| *known == tokens) {
            return;
        }
        for old in self.tokens.remove(&slot).into_iter().flatten() {
            let digest = self.digest(old.as_bytes());
            self.slots.remove(&digest);
        }
        for token in &tokens {
            let digest = self.digest(token.as_bytes());
            self.slots.insert(digest, slot);
        }
        if !tokens.is_empty() {
            self.tokens.insert(slot, tokens);
        }
    }

    /// Returns the connection with this token.
    pub(in crate::endpoint) fn find(&self, token: &ResetToken) -> Option<Slot> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots.get(&self.digest(token.as_bytes())).copied()
    }
}
