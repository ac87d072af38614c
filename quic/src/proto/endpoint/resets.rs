use aws_lc_rs::hmac;
use hashbrown::HashMap;

use super::Slot;

/// Finds the connection that a stateless reset ends. Its destination connection id is random, only
/// the token in its end leads anywhere (RFC 9000 §10.3.1).
///
/// What is looked up is a keyed hash of the token: how long that takes tells nothing of the tokens
/// that are known.
pub(super) struct Resets {
    key: hmac::Key,
    slots: HashMap<[u8; 16], Slot>,
    /// The token by which each connection is known here.
    tokens: HashMap<Slot, [u8; 16]>,
}

impl Resets {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            slots: HashMap::new(),
            tokens: HashMap::new(),
        }
    }

    fn digest(&self, token: &[u8; 16]) -> [u8; 16] {
        let tag = hmac::sign(&self.key, token);
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// The token of a connection is this one now.
    pub(super) fn set(&mut self, slot: Slot, token: Option<&[u8; 16]>) {
        if self.tokens.get(&slot) == token {
            return;
        }
        if let Some(old) = self.tokens.remove(&slot) {
            let digest = self.digest(&old);
            self.slots.remove(&digest);
        }
        if let Some(token) = token {
            let digest = self.digest(token);
            self.slots.insert(digest, slot);
            self.tokens.insert(slot, *token);
        }
        if self.tokens.is_empty() {
            self.slots.shrink_to_fit();
            self.tokens.shrink_to_fit();
        }
    }

    /// Whose token it is.
    pub(super) fn find(&self, token: &[u8; 16]) -> Option<Slot> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots.get(&self.digest(token)).copied()
    }
}
