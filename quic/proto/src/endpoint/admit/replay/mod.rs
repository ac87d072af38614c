//! Record of spent tokens, so that each counts once.

use crate::{
    remembered::token::{Kind, SEED_LEN},
    wire::limits,
};

/// Bits of one filter.
const BITS: usize = limits::SPENT_TOKENS_BYTES * 8;

/// Record of the tokens that clients used, so that each proves an address only once. The workers of
/// an endpoint share one record.
pub trait TokenRecord: std::fmt::Debug + Send {
    /// Spends a token that was issued at this time, in seconds since 1970. Returns true if it was
    /// not spent before.
    fn spend(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool;

    /// Returns true if a token was, or may have been, spent.
    fn contains(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool;
}

/// Record of spent tokens in bounded memory, 512 KiB at most.
#[derive(Debug)]
pub struct SpentTokens {
    retry: Spent,
    new: Spent,
}

impl SpentTokens {
    fn of(&mut self, kind: Kind) -> &mut Spent {
        match kind {
            Kind::Retry => &mut self.retry,
            Kind::New => &mut self.new,
        }
    }
}

impl Default for SpentTokens {
    fn default() -> Self {
        Self {
            retry: Spent::new(limits::RETRY_TOKEN_LIFETIME),
            new: Spent::new(limits::NEW_TOKEN_LIFETIME),
        }
    }
}

impl TokenRecord for SpentTokens {
    fn spend(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        self.of(kind).spend(issued, seed)
    }

    fn contains(&mut self, kind: Kind, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        self.of(kind).contains(issued, seed)
    }
}

/// Record of spent tokens of one kind.
///
/// Uses two Bloom filters, one per period of a token's lifetime: all valid tokens were issued in
/// the last two periods. A spent token is always found. An unspent one may be mistaken for a spent
/// one, more often the more there are: one in a hundred at a hundred thousand per period. Its
/// client is then treated as if it had no token.
#[derive(Debug)]
pub(in crate::endpoint) struct Spent {
    /// Length of a period in seconds.
    period: u64,
    /// The later of the two periods.
    latest: u64,
    /// Filters of the latest period and of the previous one.
    filters: [Filter; 2],
}

impl Spent {
    /// Creates an empty record of tokens with this lifetime in seconds.
    pub(in crate::endpoint) fn new(lifetime: u64) -> Self {
        Self {
            period: lifetime.max(1),
            latest: 0,
            filters: Default::default(),
        }
    }

    /// Spends a token. Returns true if it was not spent before.
    pub(in crate::endpoint) fn spend(&mut self, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
        let period = issued / self.period;
        self.advance(period);
        match self.filters.get_mut((self.latest - period) as usize) {
            Some(filter) => filter.insert(seed),
            None => false,
        }
    }

    /// Returns true if a token was, or may have been, spent.
    pub(in crate::endpoint) fn contains(&mut self, issued: u64, seed: &[u8; SEED_LEN]) -> bool {
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

/// A Bloom filter that takes no memory while it is empty.
#[derive(Debug, Default)]
struct Filter(Vec<u64>);

impl Filter {
    /// Inserts a seed. Returns true if it was not there before.
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

/// Returns the positions of a seed. The seed is random, made by us, and authenticated, so it serves
/// as its own hash.
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
