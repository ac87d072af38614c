//! Packet keys.

use aws_lc_rs::{hkdf, hmac};
use hybriq_tls::{Level, Secret, Side, Suite};
use zeroize::Zeroizing;

use crate::wire::packet::{
    Cid, HeaderKey, PacketKey,
    version::{Constants, Version},
};

#[cfg(test)]
mod tests;

/// The keys of one direction at one level.
#[derive(Debug)]
#[non_exhaustive]
pub struct DirectionKeys {
    /// Protects headers.
    pub header: HeaderKey,
    /// Encrypts payloads.
    pub packet: PacketKey,
}

impl DirectionKeys {
    /// Derives the keys from a traffic secret (RFC 9001 §5.1).
    pub fn from_secret(version: Version, secret: &Secret) -> Self {
        Self::derive(version.constants(), secret.suite(), secret.as_bytes())
    }

    fn derive(constants: &Constants, suite: Suite, secret: &[u8]) -> Self {
        let secret = Expander::new(suite, secret);
        let header = secret.key(constants.labels.header);
        let header = HeaderKey::new(suite, secret.of_key_len(&header));
        Self {
            header: header.expect("the key has the length of its suite"),
            packet: secret.packet_key(constants),
        }
    }
}

/// The keys of both directions at one level.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeyPair {
    /// Keys for packets that we send.
    pub local: DirectionKeys,
    /// Keys for packets from the peer.
    pub peer: DirectionKeys,
}

/// Returns the keys of Initial packets for `side` (RFC 9001 §5.2), from the destination connection
/// id of the client's first Initial.
pub fn initial_keys(version: Version, dcid: &Cid, side: Side) -> KeyPair {
    let secret = initial_secret(version, dcid);
    KeyPair {
        local: initial_direction_from(version, secret.as_ref(), side),
        peer: initial_direction_from(version, secret.as_ref(), side.peer()),
    }
}

/// Returns the half of [`initial_keys`] that `writer` encrypts with, enough to authenticate an
/// Initial.
pub fn initial_direction(version: Version, dcid: &Cid, writer: Side) -> DirectionKeys {
    initial_direction_from(version, initial_secret(version, dcid).as_ref(), writer)
}

/// Computes HKDF-Extract, which is HMAC under the salt (RFC 5869 §2.2). Computed here, it runs once
/// instead of once per direction.
fn initial_secret(version: Version, dcid: &Cid) -> hmac::Tag {
    let salt = hmac::Key::new(hmac::HMAC_SHA256, &version.constants().initial_salt);
    hmac::sign(&salt, dcid.as_bytes())
}

fn initial_direction_from(version: Version, initial_secret: &[u8], writer: Side) -> DirectionKeys {
    let label: &[u8] = if writer.is_client() {
        b"client in"
    } else {
        b"server in"
    };
    let suite = Suite::Aes128GcmSha256;
    let secret = Expander::new(suite, initial_secret).secret(label);
    DirectionKeys::derive(
        version.constants(),
        suite,
        secret.split_at(secret_len(suite)).0,
    )
}

/// Replaces a 1-RTT secret with its successor, and returns its packet key (RFC 9001 §6.1). The
/// header key stays.
pub fn next_packet_key(version: Version, secret: &mut Secret) -> PacketKey {
    let constants = version.constants();
    let suite = secret.suite();
    let next = Expander::new(suite, secret.as_bytes()).secret(constants.labels.update);
    let next = next.split_at(secret_len(suite)).0;
    let key = Expander::new(suite, next).packet_key(constants);
    debug_assert_eq!(secret.level(), Level::OneRtt, "only 1-RTT keys are updated");
    if let Some(next) = Secret::new(secret.level(), secret.writer(), suite, next) {
        *secret = next;
    }
    key
}

/// Secret from which others are derived with HKDF-Expand-Label (RFC 8446 §7.1).
struct Expander {
    prk: hkdf::Prk,
    suite: Suite,
}

impl Expander {
    fn new(suite: Suite, secret: &[u8]) -> Self {
        let algorithm = match suite {
            Suite::Aes256GcmSha384 => hkdf::HKDF_SHA384,
            Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => hkdf::HKDF_SHA256,
        };
        Self {
            prk: hkdf::Prk::new_less_safe(algorithm, secret),
            suite,
        }
    }

    fn packet_key(&self, constants: &Constants) -> PacketKey {
        let key = self.key(constants.labels.key);
        let mut iv = [0; 12];
        self.fill(constants.labels.iv, &mut iv);
        PacketKey::new(self.suite, self.of_key_len(&key), iv)
            .expect("the key has the length of its suite")
    }

    /// Returns a key in the first bytes of the array.
    fn key(&self, label: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        self.fill(label, key.split_at_mut(key_len(self.suite)).0);
        key
    }

    fn of_key_len<'k>(&self, key: &'k [u8; 32]) -> &'k [u8] {
        key.split_at(key_len(self.suite)).0
    }

    /// Returns a secret in the first bytes of the array.
    fn secret(&self, label: &[u8]) -> Zeroizing<[u8; 48]> {
        let mut secret = Zeroizing::new([0; 48]);
        self.fill(label, secret.split_at_mut(secret_len(self.suite)).0);
        secret
    }

    fn fill(&self, label: &[u8], out: &mut [u8]) {
        struct Len(usize);
        impl hkdf::KeyType for Len {
            fn len(&self) -> usize {
                self.0
            }
        }
        let len = (out.len() as u16).to_be_bytes();
        let prefix = b"tls13 ";
        let label_len = [(prefix.len() + label.len()) as u8];
        let info: [&[u8]; 5] = [&len, &label_len, prefix, label, &[0]];
        self.prk
            .expand(&info, Len(out.len()))
            .and_then(|okm| okm.fill(out))
            .expect("HKDF gives 255 hashes, more than a key takes");
    }
}

const fn key_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes128GcmSha256 => 16,
        Suite::Aes256GcmSha384 | Suite::ChaCha20Poly1305Sha256 => 32,
    }
}

const fn secret_len(suite: Suite) -> usize {
    match suite {
        Suite::Aes256GcmSha384 => 48,
        Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => 32,
    }
}
