//! Randomness as an argument.

pub mod prf;

/// Source of unpredictable bytes, from which the core draws connection ids, tokens and challenges.
///
/// The core has no random number generator: `hybriq::transport::SystemRandom` draws from the system;
/// simulations and tests draw from a seed.
///
/// # Security
/// The bytes must come from a cryptographic generator unless all peers are trusted.
pub trait Random: Send {
    /// Fills the buffer with random bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Small seeded generator for choices that need not be secret (SplitMix64: Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
///
/// # Security
/// One output reveals all others.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Starts the sequence for a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
