//! The randomness of a link: a function of the seed, the direction and the place of a datagram.

use std::num::Wrapping;

/// What chance has to say about one datagram.
///
/// All of it is drawn for every datagram, asked for or not, so that the n-th datagram of a
/// direction meets the same fortune whatever happened before it and whenever it comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dice {
    /// Uniform in `[0, 1)`, as the others that are no integers.
    pub(crate) burst: f64,
    pub(crate) loss: f64,
    pub(crate) corrupt: f64,
    pub(crate) bit: u64,
    pub(crate) duplicate: f64,
    pub(crate) reorder: f64,
    pub(crate) jitter: f64,
}

impl Dice {
    /// Throws for the n-th datagram.
    pub(crate) fn nth(seed: u64, n: u64) -> Self {
        // The seed of each datagram is itself mixed, or neighbours would share most of a sequence.
        let mut state = SplitMix(Wrapping(mix(seed) ^ n.wrapping_mul(SplitMix::STEP)));
        state.0 = Wrapping(state.next());
        Self {
            burst: state.unit(),
            loss: state.unit(),
            corrupt: state.unit(),
            bit: state.next(),
            duplicate: state.unit(),
            reorder: state.unit(),
            jitter: state.unit(),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix(Wrapping<u64>);

impl SplitMix {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    fn next(&mut self) -> u64 {
        self.0 += Self::STEP;
        mix(self.0.0)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn the_same_seed_and_place_throw_the_same() {
        assert_eq!(Dice::nth(7, 3), Dice::nth(7, 3));
        assert_ne!(Dice::nth(7, 3), Dice::nth(7, 4));
        assert_ne!(Dice::nth(7, 3), Dice::nth(8, 3));
    }

    #[test]
    fn throws_are_uniform_and_independent() {
        const COUNT: u64 = 100_000;
        let (mut sum, mut both) = (0.0, 0_u64);
        for n in 0..COUNT {
            let (dice, next) = (Dice::nth(1, n), Dice::nth(1, n + 1));
            sum += dice.loss;
            both += u64::from(dice.loss < 0.1 && dice.burst < 0.1);
            both += u64::from(dice.loss < 0.1 && next.loss < 0.1);
        }
        assert!((0.495..0.505).contains(&(sum / COUNT as f64)), "{sum}");
        assert!((1800..2200).contains(&both), "{both}");
    }
}
