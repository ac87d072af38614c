//! The generator of every simulation: small, seeded, for nothing that must be secret.

use std::time::Duration;

use hybriq_proto::random::Random;

/// SplitMix64: small and seeded, for simulations only.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of many independent generators of the same seed, so that adding a consumer leaves what
    /// the others draw as it was.
    #[must_use]
    pub fn nth(seed: u64, index: u64) -> Self {
        let mut parent = Self(seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(parent.draw())
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// A span of at most `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(most.as_nanos() as u64 + 1))
    }

    /// Returns true if it happens this time.
    pub fn happens(&mut self, chance: Chance) -> bool {
        chance.times != 0 && self.below(chance.of.into()) < chance.times.into()
    }

    /// Fills the buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            for (byte, drawn) in chunk.iter_mut().zip(drawn) {
                *byte = drawn;
            }
        }
    }
}

/// Chance that something happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    times: u32,
    of: u32,
}

/// Once in `count` times on average; never where the count is 0.
pub const fn one_in(count: u32) -> Chance {
    Chance {
        times: if count == 0 { 0 } else { 1 },
        of: count,
    }
}

/// So many times in a thousand on average.
pub const fn per_mille(times: u32) -> Chance {
    Chance { times, of: 1000 }
}

impl Chance {
    /// Returns the chance of a share between 0 and 1; what is beyond counts as the nearer of both.
    pub fn share(share: f64) -> Self {
        Self {
            times: (share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32,
            of: u32::MAX,
        }
    }
}

/// The core's randomness, drawn from a seed.
#[derive(Clone, Debug)]
pub struct SeededRandom(Rng);

impl SeededRandom {
    /// Starts from a seed.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }
}

impl Random for SeededRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}
