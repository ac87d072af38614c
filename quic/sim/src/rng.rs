//! Random generator for all simulations: small and seeded, not for secrets.

use std::time::Duration;

use hybriq_proto::random::{Random, SplitMix};

/// Small seeded generator, only for simulations.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix);

impl Rng {
    /// Creates a generator from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// Creates one of many independent generators from the same seed, so that adding a consumer
    /// does not change what the others draw.
    #[must_use]
    pub fn nth(seed: u64, index: u64) -> Self {
        let mut parent = Self::new(seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self::new(parent.draw())
    }

    /// Returns the next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a duration of at most `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(most.as_nanos() as u64 + 1))
    }

    /// Returns true with this probability.
    pub fn happens(&mut self, chance: Chance) -> bool {
        chance.times != 0 && self.below(chance.of.into()) < chance.times.into()
    }

    /// Fills the buffer with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, drawn) in chunk.iter_mut().zip(drawn) {
                *byte = drawn;
            }
        }
    }
}

/// Probability of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    times: u32,
    of: u32,
}

/// Returns the probability of once in `count` times on average; never if the count is 0.
pub const fn one_in(count: u32) -> Chance {
    Chance {
        times: if count == 0 { 0 } else { 1 },
        of: count,
    }
}

/// Returns the probability of this many times in a thousand on average.
pub const fn per_mille(times: u32) -> Chance {
    Chance { times, of: 1000 }
}

impl Chance {
    /// Returns the probability of a share, clamped to between 0 and 1.
    pub fn share(share: f64) -> Self {
        Self {
            times: (share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32,
            of: u32::MAX,
        }
    }
}

/// Randomness for the core, drawn from a seed.
#[derive(Clone, Debug)]
pub struct SeededRandom(Rng);

impl SeededRandom {
    /// Creates randomness from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }
}

impl Random for SeededRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}
