//! Keyed functions, whose values are unpredictable without the key.
//!
//! Both are SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), which is
//! fully specified and costs less than 100 instructions per draw: SipHash-2-4 for values that peers
//! see, SipHash-1-3 for tables whose keys a peer chooses.

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
};

use siphasher::sip::{SipHasher13, SipHasher24};

#[cfg(test)]
mod tests;

/// A secret function from bytes to 64 bits: SipHash-2-4 under a key of 128 bits.
#[derive(Clone, Copy)]
pub struct Prf {
    key: [u8; 16],
}

impl Prf {
    /// Creates the function from a secret key.
    pub const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// Creates the function from a secret of 64 bits, the low half of the key; the high half is
    /// zero.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self::new(u128::from(seed).to_le_bytes())
    }

    /// Returns the value of the function for an input.
    pub fn of(&self, input: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.key).hash(input)
    }
}

impl fmt::Debug for Prf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prf")
    }
}

/// A sequence of unpredictable numbers: the values of a [`Prf`] for 0, 1, 2, …, each as eight
/// bytes, least significant first.
#[derive(Debug)]
pub(crate) struct Sequence {
    prf: Prf,
    drawn: u64,
}

impl Sequence {
    /// Starts the sequence for a secret seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            prf: Prf::from_seed(seed),
            drawn: 0,
        }
    }

    /// Returns the next number.
    pub(crate) fn draw(&mut self) -> u64 {
        let value = self.prf.of(&self.drawn.to_le_bytes());
        self.drawn = self.drawn.wrapping_add(1);
        value
    }
}

/// Hashes table keys that a peer chooses: without the secret nobody can find colliding keys
/// (CVE-2025-24947 and others).
#[derive(Clone)]
pub(crate) struct KeyedHash(pub(crate) [u8; 16]);

impl BuildHasher for KeyedHash {
    type Hasher = SipHasher13;

    #[inline]
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHash")
    }
}

/// Hashes table keys that we chose at random: one multiplication per eight bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainHash;

impl BuildHasher for PlainHash {
    type Hasher = Multiply;

    #[inline]
    fn build_hasher(&self) -> Multiply {
        Multiply(0)
    }
}

/// Multiplies and folds each word; unsuitable for keys that a peer chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref().filter_map(<[u8]>::first_chunk) {
            self.write_u64(u64::from_le_bytes(*word));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        // The golden ratio; the high half of the product preserves what the low half lost.
        let product = u128::from(self.0 ^ word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
