//! Packet keys.

use arrayvec::ArrayVec;
use aws_lc_rs::{hkdf, hmac};
use hybriq_tls::{Level, Secret, Side, Suite};
use zeroize::Zeroizing;

use crate::wire::packet::{
    Cid, HeaderKey, PacketKey,
    version::{Constants, Version},
};

#[cfg(test)]
mod tests;

/// Suite of Initial packets (RFC 9001 §5.2).
const INITIAL_SUITE: Suite = Suite::Aes128GcmSha256;

/// Bytes of the longest `HkdfLabel` of QUIC, with the counter of HKDF-Expand: `tls13 quicv2 key`.
const MAX_INFO: usize = 2 + 1 + 16 + 1 + 1;

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
        local: initial_direction_from(version, &secret, side),
        peer: initial_direction_from(version, &secret, side.peer()),
    }
}

/// Returns the half of [`initial_keys`] that `writer` encrypts with, enough to authenticate an
/// Initial.
pub fn initial_direction(version: Version, dcid: &Cid, writer: Side) -> DirectionKeys {
    initial_direction_from(version, &initial_secret(version, dcid), writer)
}

/// Computes HKDF-Extract, which is HMAC under the salt (RFC 5869 §2.2).
fn initial_secret(version: Version, dcid: &Cid) -> Expander {
    let salt = hmac::Key::new(hmac::HMAC_SHA256, &version.constants().initial_salt);
    let secret = hmac::sign(&salt, dcid.as_bytes());
    Expander::new(INITIAL_SUITE, secret.as_ref())
}

fn initial_direction_from(
    version: Version,
    initial_secret: &Expander,
    writer: Side,
) -> DirectionKeys {
    let label: &[u8] = if writer.is_client() {
        b"client in"
    } else {
        b"server in"
    };
    let secret = initial_secret.secret(label);
    DirectionKeys::derive(
        version.constants(),
        INITIAL_SUITE,
        secret.split_at(secret_len(INITIAL_SUITE)).0,
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
    secret: Expand,
    suite: Suite,
}

/// How HKDF-Expand (RFC 5869 §2.3) is computed.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and on the stack"
)]
enum Expand {
    /// By HMAC under the secret. AWS-LC's HKDF sets up the key of HMAC for each output, which takes as
    /// long as the output itself; here it is set up once.
    Hmac(hmac::Key),
    /// By AWS-LC's HKDF: a FIPS module must compute it.
    Hkdf(hkdf::Prk),
}

impl Expand {
    fn of_module(suite: Suite, secret: &[u8]) -> Self {
        let algorithm = match suite {
            Suite::Aes256GcmSha384 => hkdf::HKDF_SHA384,
            Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => hkdf::HKDF_SHA256,
        };
        Self::Hkdf(hkdf::Prk::new_less_safe(algorithm, secret))
    }

    fn of_hmac(suite: Suite, secret: &[u8]) -> Self {
        let algorithm = match suite {
            Suite::Aes256GcmSha384 => hmac::HMAC_SHA384,
            Suite::Aes128GcmSha256 | Suite::ChaCha20Poly1305Sha256 => hmac::HMAC_SHA256,
        };
        Self::Hmac(hmac::Key::new(algorithm, secret))
    }

    /// Computes HKDF-Expand. No output is longer than the hash, so the first block has all of it.
    fn fill(&self, mut info: ArrayVec<u8, MAX_INFO>, out: &mut [u8]) {
        const COUNTER: u8 = 1;
        match self {
            Self::Hmac(key) => {
                info.push(COUNTER);
                let mut block = Zeroizing::new([0; 48]);
                let block = hmac::sign_to_buffer(key, &info, &mut *block)
                    .expect("the hash fits into the buffer");
                out.copy_from_slice(block.split_at(out.len()).0);
            }
            Self::Hkdf(secret) => secret
                .expand(&[&info], Len(out.len()))
                .and_then(|output| output.fill(out))
                .expect("HKDF gives 255 hashes, more than a key takes"),
        }
    }
}

/// Bytes of an output.
struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

impl Expander {
    fn new(suite: Suite, secret: &[u8]) -> Self {
        let secret = if hybriq_tls::is_fips() {
            Expand::of_module(suite, secret)
        } else {
            Expand::of_hmac(suite, secret)
        };
        Self { secret, suite }
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

    /// Computes HKDF-Expand-Label.
    fn fill(&self, label: &[u8], out: &mut [u8]) {
        const PREFIX: &[u8] = b"tls13 ";
        const CONTEXT_LEN: u8 = 0;
        let mut info = ArrayVec::<u8, MAX_INFO>::new();
        info.extend((out.len() as u16).to_be_bytes());
        info.push((PREFIX.len() + label.len()) as u8);
        info.extend(PREFIX.iter().chain(label).copied());
        info.push(CONTEXT_LEN);
        self.secret.fill(info, out);
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
