//! Tokens that were spent, so that each counts once.

use crate::{limits, token::SEED_LEN};

/// Bits of one filter.
const BITS: usize = limits::SPENT_TOKENS_BYTES * 8;

/// Record of the tokens that were spent already, in bounded memory.
///
/// Two Bloom filters, each for the tokens that were issued in one period as long as a token's life:
/// whatever is still good was issued in the last two. A token that was spent is always found. One
/// that was not may be taken for spent, the more often the more there are: at a hundred thousand in
/// a period one in a hundred. Its client is then treated as if it had none.
#[derive(Debug)]
pub(super) struct Spent {
    /// Seconds.
    period: u64,
    /// The later of the two periods.
    latest: u64,
    /// Filters of the latest period and of the one before.
    filters: [Filter; 2],
}

impl Spent {
    /// Makes an empty record of tokens that are good for so many seconds.
    pub(super) fn new(lifetime: u64) -> Self {
        Self {
            period: lifetime.max(1),
            latest: 0,
            filters: Default::default(),
        }
    }

    /// Spends a token; says whether it had not been spent before.
    pub(super) fn spend(&mut self, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        let period = issued / self.period;
        self.advance(period);
        match self.filters.get_mut((self.latest - period) as usize) {
            Some(filter) => filter.insert(seed),
            None => false,
        }
    }

    /// Returns true if a token was spent, or may have been.
    pub(super) fn contains(&mut self, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        let period = issued / self.period;
        self.advance(period);
        let filter = self.filters.get((self.latest - period) as usize);
        filter.is_none_or(|filter| filter.contains(seed))
    }

    fn advance(&mut self, period: u64) {
        if period <= self.latest {
            return;
        }
        let [latest, before] = &mut self.filters;
        *before = std::mem::take(latest);
        if period > self.latest + 1 {
            *before = Filter::default();
        }
        self.latest = period;
    }
}

/// A Bloom filter that takes no memory before something is in it.
#[derive(Debug, Default)]
struct Filter(Vec<u64>);

impl Filter {
    /// Says whether it was not there before.
    fn insert(&mut self, seed: &[u8; SEED_LEN]) -> bool {
        self.0.resize(BITS / 64, 0);
        let mut new = false;
        for (word, bit) in places(seed) {
            if let Some(word) = self.0.get_mut(word) {
                new |= *word & bit == 0;
                *word |= bit;
            }
        }
        new
    }

    fn contains(&self, seed: &[u8; SEED_LEN]) -> bool {
        let set = |(word, bit): (usize, u64)| self.0.get(word).is_some_and(|word| word & bit != 0);
        places(seed).all(set)
    }
}

/// The seed is random, ours, and authentic: it is its own hash.
fn places(seed: &[u8; SEED_LEN]) -> impl Iterator<Item = (usize, u64)> {
    seed.chunks_exact(4).map(|chunk| {
        let word = chunk
            .iter()
            .fold(0, |word, byte| word << 8 | usize::from(*byte));
        let place = word % BITS;
        (place / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests;
