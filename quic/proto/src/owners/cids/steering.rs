//! The worker of a connection id, by a function that the operating system can compute.

/// Function that finds the worker of a connection id: the first byte under a mask that depends on
/// the next four bytes and on a secret.
///
/// Linux computes it for each datagram before it chooses a socket (`SO_ATTACH_REUSEPORT_CBPF`). Its
/// instructions are those of a simple processor without cryptography, so the mask is a mix of
/// 32-bit words: it keeps observers from seeing at a glance which ids belong to one worker, and
/// breaking it reveals nothing more than that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Steering {
    key: [u32; 2],
}

impl Steering {
    /// First factor of the mix.
    pub const FACTOR: u32 = 0x9e37_79b1;
    /// Distance of the first shift, in bits.
    pub const FIRST_SHIFT: u32 = 15;
    /// Distance of the second shift, in bits.
    pub const SECOND_SHIFT: u32 = 13;

    /// Creates the function from two secret words.
    pub const fn new(key: [u32; 2]) -> Self {
        Self {
            key: [key[0], key[1] | 1],
        }
    }

    /// Returns the secret words: one that the input is combined with, and the second factor of the
    /// mix.
    pub const fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Returns the mask of the first byte. It is 0 for ids of fewer than 5 bytes, which are never
    /// ours.
    pub fn mask(&self, cid: &[u8]) -> u8 {
        let word = cid.split_first().and_then(|(_, rest)| rest.first_chunk());
        let Some(word) = word else { return 0 };
        let [start, factor] = self.key;
        let mut mix = (u32::from_be_bytes(*word) ^ start).wrapping_mul(Self::FACTOR);
        mix ^= mix >> Self::FIRST_SHIFT;
        mix = mix.wrapping_mul(factor);
        mix ^= mix >> Self::SECOND_SHIFT;
        (mix >> 24) as u8
    }
}

impl std::fmt::Debug for Steering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Steering(..)")
    }
}
