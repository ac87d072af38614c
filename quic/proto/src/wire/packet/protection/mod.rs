//! Packet protection.

pub(super) mod keys;
pub(super) mod protected;

use std::fmt;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
    quic,
};
use hybriq_tls::Suite;
use zeroize::Zeroize;

use super::PacketNumber;

/// Bytes of an authentication tag, the same for all suites (RFC 9001 §5.3).
pub const TAG_LEN: usize = 16;

/// Bytes of ciphertext that header protection samples (RFC 9001 §5.4.2).
pub const SAMPLE_LEN: usize = 16;

/// Returns the number of packets that one key may encrypt (RFC 9001 §6.6).
pub const fn confidentiality_limit(suite: Suite) -> u64 {
    match suite {
        Suite::Aes128GcmSha256 | Suite::Aes256GcmSha384 => 1 << 23,
        // Larger than any packet number.
        Suite::ChaCha20Poly1305Sha256 => 1 << 62,
    }
}

/// Returns the number of packets that may fail to decrypt in one connection, counting all keys
/// together (RFC 9001 §6.6).
pub const fn integrity_limit(suite: Suite) -> u64 {
    match suite {
        Suite::Aes128GcmSha256 | Suite::Aes256GcmSha384 => 1 << 52,
        Suite::ChaCha20Poly1305Sha256 => 1 << 36,
    }
}

/// The packet is not what the owner of the key sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet failed to decrypt")]
#[non_exhaustive]
pub struct Undecryptable;

/// The AEAD refused to encrypt; the packet must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet could not be encrypted")]
#[non_exhaustive]
pub struct SealError;

/// Encrypts or decrypts the payloads of one direction until the next key update
/// (RFC 9001 §5.3).
pub struct PacketKey {
    key: LessSafeKey,
    iv: [u8; 12],
    suite: Suite,
}

impl PacketKey {
    /// Creates a key, or returns `None` if its length is not that of the suite.
    pub(super) fn new(suite: Suite, key: &[u8], iv: [u8; 12]) -> Option<Self> {
        let key = LessSafeKey::new(UnboundKey::new(algorithm(suite), key).ok()?);
        Some(Self { key, iv, suite })
    }

    /// Returns the suite of the key.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Encrypts `payload` in place, and authenticates it together with the header as it is before
    /// header protection.
    ///
    /// # Security
    /// Each packet number must be used only once per key.
    #[inline]
    pub fn seal(
        &self,
        pn: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
        tag: &mut [u8; TAG_LEN],
    ) -> Result<(), SealError> {
        self.key
            .seal_in_place_scatter(self.nonce(pn), Aad::from(header), payload, &[], tag)
            .map_err(|_| SealError)
    }

    /// Decrypts in place a payload that ends with its tag, and returns the number of plain bytes at
    /// its front. After a failure the bytes are worthless.
    #[inline]
    pub fn open(
        &self,
        pn: PacketNumber,
        header: &[u8],
        payload_with_tag: &mut [u8],
    ) -> Result<usize, Undecryptable> {
        let (payload, tag) = payload_with_tag
            .split_last_chunk_mut::<TAG_LEN>()
            .ok_or(Undecryptable)?;
        self.key
            .open_in_place_separate_tag(self.nonce(pn), Aad::from(header), tag, payload)
            .map(|plain| plain.len())
            .map_err(|_| Undecryptable)
    }

    /// Returns the IV combined with the packet number (RFC 9001 §5.3).
    #[inline]
    fn nonce(&self, pn: PacketNumber) -> Nonce {
        let [i0, i1, i2, i3, tail @ ..] = self.iv;
        let [t0, t1, t2, t3, t4, t5, t6, t7] = (u64::from_be_bytes(tail) ^ pn.get()).to_be_bytes();
        Nonce::assume_unique_for_key([i0, i1, i2, i3, t0, t1, t2, t3, t4, t5, t6, t7])
    }
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        // The key itself lives in AWS-LC, which wipes it.
        self.iv.zeroize();
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// Protects the packet number and the low bits of the first byte, for one direction of a
/// connection; key updates do not change it (RFC 9001 §5.4).
pub struct HeaderKey(quic::HeaderProtectionKey);

impl HeaderKey {
    /// Creates a key, or returns `None` if its length is not that of the suite.
    pub(super) fn new(suite: Suite, key: &[u8]) -> Option<Self> {
        let algorithm = match suite {
            Suite::Aes128GcmSha256 => &quic::AES_128,
            Suite::Aes256GcmSha384 => &quic::AES_256,
            Suite::ChaCha20Poly1305Sha256 => &quic::CHACHA20,
        };
        quic::HeaderProtectionKey::new(algorithm, key)
            .ok()
            .map(Self)
    }

    /// Returns the mask for the first byte and the packet number.
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> [u8; 5] {
        // Fails only for a sample of another length.
        self.0.new_mask(sample).unwrap_or_default()
    }

    /// Protects the low bits of the first byte and the packet number (RFC 9001 §5.4.1).
    #[inline]
    pub fn protect(&self, first: &mut u8, pn: &mut [u8], sample: &[u8; SAMPLE_LEN]) {
        let [first_mask, pn_mask @ ..] = self.mask(sample);
        *first ^= first_mask & protected_bits(*first);
        xor(pn, &pn_mask);
    }

    /// Unprotects the first byte and the packet number. Returns the truncated number and its
    /// length.
    #[inline]
    pub fn unprotect(
        &self,
        first: &mut u8,
        pn: &mut [u8; 4],
        sample: &[u8; SAMPLE_LEN],
    ) -> (u32, usize) {
        let [first_mask, pn_mask @ ..] = self.mask(sample);
        *first ^= first_mask & protected_bits(*first);
        let len = usize::from(*first & PN_LEN_MASK) + 1;
        xor(pn.split_at_mut(len).0, &pn_mask);
        (u32::from_be_bytes(*pn) >> (32 - 8 * len), len)
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey").finish_non_exhaustive()
    }
}

/// Bits of the first byte that contain the length of the packet number, less one.
pub(super) const PN_LEN_MASK: u8 = 0x03;

/// Returns the protected bits of the first byte: four in a long header, five in a short one (RFC
/// 9001 §5.4.1).
const fn protected_bits(first: u8) -> u8 {
    if first & super::header_bits::LONG == 0 {
        0x1f
    } else {
        0x0f
    }
}

fn xor(bytes: &mut [u8], mask: &[u8]) {
    for (byte, mask) in bytes.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

fn algorithm(suite: Suite) -> &'static Algorithm {
    match suite {
        Suite::Aes128GcmSha256 => &AES_128_GCM,
        Suite::Aes256GcmSha384 => &AES_256_GCM,
        Suite::ChaCha20Poly1305Sha256 => &CHACHA20_POLY1305,
    }
}
