//! Connection ids that a load balancer can read (QUIC-LB).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrayvec::ArrayVec;
use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};

use super::{CidGenerator, ResetKey};
use crate::{
    random::{Random, prf::Prf},
    wire::limits,
};

#[cfg(test)]
mod tests;

/// Bytes of an AES block.
const BLOCK: usize = 16;

/// Largest total length of server id and nonce, besides the first octet.
const MOST_BYTES: usize = limits::MAX_CID_LEN - 1;

/// Half of that, rounded up.
const HALF: usize = MOST_BYTES.div_ceil(2);

const LEAST_NONCE: usize = 4;

/// Config rotation codepoint of ids that do not follow a configuration.
const UNROUTABLE: u8 = 0b111;

/// Connection ids from which a load balancer reads the server they belong to
/// (draft-ietf-quic-load-balancers-21): packets reach their server even after the client's address
/// changes, although the balancer keeps no state.
///
/// An id consists of a first octet, the server's id and a nonce, 8 to 20 bytes in total. With a key
/// both are encrypted, and only the balancer can tell that two ids lead to the same server. The
/// configuration is that of the balancer: the same on every server except for the server's id.
///
/// # Security
/// Without a key everybody can see the server of a connection, and can link what a client sends
/// from different addresses.
///
/// # Examples
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, fleet::QuicLb, transport::SystemRandom};
///
/// # fn run(key: [u8; 16]) -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// // Configuration 0 of the balancer, in which this is server 0x31441a; nonces of 6 bytes.
/// let cids = QuicLb::encrypted(0, &[0x31, 0x44, 0x1a], 6, key, &mut SystemRandom::new())?;
/// let server = Endpoint::builder()
///     .server(ServerConfig::new(identity).alpn(["echo"]))
///     .cid_generator(cids)
///     .bind("[::]:4433")?;
/// # Ok(())
/// # }
/// ```
pub struct QuicLb {
    rotation: u8,
    server_id: ArrayVec<u8, MOST_BYTES>,
    nonce_len: usize,
    first_octet: FirstOctet,
    cipher: Option<Cipher>,
    /// Counter of nonces, from a random start.
    count: AtomicU64,
    /// Key of the mask that hides the worker in unencrypted ids.
    mask: [u8; 16],
}

/// Use of the five bits after the config rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstOctet {
    Length,
    Random,
}

/// Reason why a [`QuicLb`] configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidQuicLb {
    /// The config rotation codepoint has three bits, and 7 is reserved for ids without a
    /// configuration.
    #[error("config rotation codepoint {0}; use one from 0 to 6")]
    Rotation(u8),
    /// The server id is empty, or leaves no room for a nonce.
    #[error("a server id of {0} bytes; use 1 to 15")]
    ServerId(usize),
    /// The nonce is too short to be unique, or the id is longer than QUIC allows.
    #[error("a nonce of {0} bytes; use 4 or more, and 19 at most together with the server id")]
    Nonce(usize),
    /// The key is invalid.
    #[error("the cryptographic library refuses the key")]
    Key,
}

impl QuicLb {
    /// Creates a generator of unencrypted ids. `rotation` is the configuration's codepoint, 0 to 6;
    /// `server_id` has 1 to 15 bytes, the nonce 4 or more, and both together 7 to 19.
    ///
    /// # Errors
    /// [`InvalidQuicLb`] says what to use instead.
    pub fn plaintext(
        rotation: u8,
        server_id: &[u8],
        nonce_len: usize,
        random: &mut dyn Random,
    ) -> Result<Self, InvalidQuicLb> {
        let (mut mask, mut start) = ([0; 16], [0; 8]);
        random.fill(&mut mask);
        random.fill(&mut start);
        Self::new(
            rotation,
            server_id,
            nonce_len,
            mask,
            u64::from_le_bytes(start),
        )
    }

    /// Creates a generator of encrypted ids: with AES-128-ECB in one pass if server id and nonce
    /// fill a block of 16 bytes, otherwise in four.
    ///
    /// # Errors
    /// [`InvalidQuicLb`] says what to use instead.
    pub fn encrypted(
        rotation: u8,
        server_id: &[u8],
        nonce_len: usize,
        key: [u8; 16],
        random: &mut dyn Random,
    ) -> Result<Self, InvalidQuicLb> {
        Self::plaintext(rotation, server_id, nonce_len, random)?.with_key(key)
    }

    /// Creates a generator of unencrypted ids. `mask` and `start` are random and private to this
    /// process.
    pub(crate) fn new(
        rotation: u8,
        server_id: &[u8],
        nonce_len: usize,
        mask: [u8; 16],
        start: u64,
    ) -> Result<Self, InvalidQuicLb> {
        if rotation >= UNROUTABLE {
            return Err(InvalidQuicLb::Rotation(rotation));
        }
        if server_id.is_empty() || server_id.len() > MOST_BYTES - LEAST_NONCE {
            return Err(InvalidQuicLb::ServerId(server_id.len()));
        }
        if !(LEAST_NONCE..=MOST_BYTES - server_id.len()).contains(&nonce_len) {
            return Err(InvalidQuicLb::Nonce(nonce_len));
        }
        Ok(Self {
            rotation,
            server_id: server_id.iter().copied().collect(),
            nonce_len,
            first_octet: FirstOctet::Length,
            cipher: None,
            count: AtomicU64::new(start),
            mask,
        })
    }

    /// Encrypts the ids.
    pub(crate) fn with_key(mut self, key: [u8; 16]) -> Result<Self, InvalidQuicLb> {
        self.cipher = Some(Cipher::new(key).ok_or(InvalidQuicLb::Key)?);
        Ok(self)
    }

    /// Fills the low bits of the first octet with random bits instead of the length of ids, which
    /// some hardware reads there.
    #[must_use]
    pub const fn without_length(mut self) -> Self {
        self.first_octet = FirstOctet::Random;
        self
    }

    /// Returns the length of server id and nonce together.
    fn plain_len(&self) -> usize {
        self.server_id.len() + self.nonce_len
    }

    /// Writes the id for a nonce. The front of `cid` already contains random bytes.
    fn encode(&self, nonce: &[u8], cid: &mut [u8]) {
        let len = cid.len() as u8;
        let Some((first, behind)) = cid.split_first_mut() else {
            return;
        };
        let low = match self.first_octet {
            FirstOctet::Length => len.saturating_sub(1),
            FirstOctet::Random => *first,
        };
        *first = self.rotation << 5 | low & 0x1f;
        let plain = self.server_id.iter().chain(nonce);
        for (byte, plain) in behind.iter_mut().zip(plain) {
            *byte = *plain;
        }
        if let Some(cipher) = &self.cipher {
            cipher.encrypt(behind);
        }
    }

    /// Returns the nonce of one of our ids.
    fn decode(&self, cid: &[u8]) -> Option<ArrayVec<u8, MOST_BYTES>> {
        let (first, behind) = cid.split_first()?;
        if first >> 5 != self.rotation || behind.len() != self.plain_len() {
            return None;
        }
        let mut plain: ArrayVec<u8, MOST_BYTES> = behind.iter().copied().collect();
        if let Some(cipher) = &self.cipher {
            cipher.decrypt(&mut plain);
        }
        let (server_id, nonce) = plain.split_at(self.server_id.len());
        (*server_id == *self.server_id).then(|| nonce.iter().copied().collect())
    }

    /// Returns the mask of the worker in an unencrypted id, derived from the rest of its nonce.
    fn mask(&self, rest: &[u8]) -> u8 {
        if self.cipher.is_some() {
            return 0;
        }
        Prf::new(self.mask).of(rest) as u8
    }
}

impl CidGenerator for QuicLb {
    fn len(&self) -> usize {
        1 + self.plain_len()
    }

    /// Generates a nonce from the worker and, with a key, a counter, so that no nonce repeats
    /// before the counter does. All other bytes are random.
    fn generate(&self, worker: u8, cid: &mut [u8]) {
        let start = cid.len().saturating_sub(self.nonce_len);
        let mut nonce: ArrayVec<u8, MOST_BYTES> =
            cid.iter().skip(start).copied().take(MOST_BYTES).collect();
        let Some((first, rest)) = nonce.split_first_mut() else {
            return;
        };
        if self.cipher.is_some() {
            let count = self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            for (byte, count) in rest.iter_mut().zip(count) {
                *byte = count;
            }
        }
        *first = worker ^ self.mask(rest);
        self.encode(&nonce, cid);
    }

    fn worker(&self, cid: &[u8]) -> Option<u8> {
        let nonce = self.decode(cid)?;
        let (first, rest) = nonce.split_first()?;
        Some(first ^ self.mask(rest))
    }

    /// Hides the worker in unencrypted ids with the key, so that a later process can find it.
    fn keyed(&self, key: &ResetKey) -> Option<Arc<dyn CidGenerator>> {
        if self.cipher.is_some() {
            return None;
        }
        let start = self.count.load(Ordering::Relaxed);
        let keyed = Self::new(
            self.rotation,
            &self.server_id,
            self.nonce_len,
            key.mask(),
            start,
        );
        let keyed = Self {
            first_octet: self.first_octet,
            ..keyed.ok()?
        };
        Some(Arc::new(keyed))
    }
}

impl fmt::Debug for QuicLb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLb")
            .field("rotation", &self.rotation)
            .field("server_id", &self.server_id)
            .field("nonce_len", &self.nonce_len)
            .field("encrypted", &self.cipher.is_some())
            .finish_non_exhaustive()
    }
}

/// AES-128-ECB: one pass over exactly one block, or a Feistel network of four passes.
struct Cipher {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

/// Halves of a Feistel network. If the number of bytes is odd they share the middle byte: the left
/// half has its upper four bits, the right half its lower four.
struct Halves {
    left: [u8; HALF],
    right: [u8; HALF],
    /// Length of both halves together.
    len: usize,
}

impl Halves {
    fn split(plain: &[u8]) -> Self {
        let len = plain.len();
        let (mut left, mut right) = ([0; HALF], [0; HALF]);
        let half = len.div_ceil(2);
        for (to, from) in left.iter_mut().zip(plain.iter().take(half)) {
            *to = *from;
        }
        for (to, from) in right.iter_mut().zip(plain.iter().skip(len - half)) {
            *to = *from;
        }
        let mut halves = Self { left, right, len };
        halves.clear();
        halves
    }

    /// Clears the bits of the middle byte that belong to the other half.
    fn clear(&mut self) {
        let half = self.half();
        if self.len % 2 == 1 {
            if let Some(last) = self.left.get_mut(half.saturating_sub(1)) {
                *last &= 0xf0;
            }
            self.right[0] &= 0x0f;
        }
    }

    const fn half(&self) -> usize {
        self.len.div_ceil(2)
    }

    fn join(&self, out: &mut [u8]) {
        out.fill(0);
        let half = self.half();
        for (to, from) in out.iter_mut().zip(self.left.iter().take(half)) {
            *to = *from;
        }
        let right = out.iter_mut().skip(self.len - half);
        for (to, from) in right.zip(self.right.iter().take(half)) {
            *to |= *from;
        }
    }
}

impl Cipher {
    fn new(key: [u8; 16]) -> Option<Self> {
        let unbound = || UnboundCipherKey::new(&AES_128, &key).ok();
        Some(Self {
            encrypting: EncryptingKey::ecb(unbound()?).ok()?,
            decrypting: DecryptingKey::ecb(unbound()?).ok()?,
        })
    }

    fn encrypt(&self, text: &mut [u8]) {
        if let Ok(block) = text.as_mut().try_into() {
            return self.encrypt_block(block);
        }
        let mut halves = Halves::split(text);
        for pass in 1..=4 {
            self.pass(&mut halves, pass);
        }
        halves.join(text);
    }

    fn decrypt(&self, text: &mut [u8]) {
        if text.len() == BLOCK {
            let decrypted = self.decrypting.decrypt(text, DecryptionContext::None);
            debug_assert!(decrypted.is_ok(), "a whole block");
            return;
        }
        let mut halves = Halves::split(text);
        for pass in (1..=4).rev() {
            self.pass(&mut halves, pass);
        }
        halves.join(text);
    }

    /// Runs a pass: odd passes change the right half, even ones the left.
    fn pass(&self, halves: &mut Halves, pass: u8) {
        let half = halves.half();
        let mut block = [0; BLOCK];
        let [.., len, last] = &mut block;
        *len = halves.len as u8;
        *last = pass;
        let (from, to) = if pass % 2 == 1 {
            (&halves.left, &mut halves.right)
        } else {
            (&halves.right, &mut halves.left)
        };
        for (byte, from) in block.iter_mut().zip(from.iter().take(half)) {
            *byte = *from;
        }
        self.encrypt_block(&mut block);
        for (to, byte) in to.iter_mut().zip(block).take(half) {
            *to ^= byte;
        }
        halves.clear();
    }

    fn encrypt_block(&self, block: &mut [u8; BLOCK]) {
        let encrypted = self.encrypting.encrypt(block);
        debug_assert!(encrypted.is_ok(), "a whole block");
    }
}
