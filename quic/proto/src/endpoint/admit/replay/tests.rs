use super::Spent;
use crate::{random::Random as _, remembered::token::SEED_LEN, rng::SeededRandom, wire::limits};

fn seeds(seed: u64) -> impl FnMut() -> [u8; SEED_LEN] {
    let mut random = SeededRandom::new(seed);
    move || {
        let mut bytes = [0; SEED_LEN];
        random.fill(&mut bytes);
        bytes
    }
}

/// Proves: rfc9000 8.1.4 replay-is-limited
/// Proves: security 6 tokens-are-spent-once
#[test]
fn a_token_is_spent_once_however_many_are() {
    let mut spent = Spent::new(100);
    let (mut next, mut again) = (seeds(1), seeds(1));
    let count = 100_000;
    let taken = (0..count).filter(|_| spent.spend(150, &next())).count();
    assert!(taken > count * 99 / 100, "{taken}");
    let mut twice = 0;
    for _ in 0..count {
        let seed = again();
        assert!(spent.contains(150, &seed));
        twice += usize::from(spent.spend(150, &seed));
    }
    assert_eq!(twice, 0);
    let bytes: usize = spent.filters.iter().map(|it| it.0.len() * 8).sum();
    assert_eq!(bytes, limits::SPENT_TOKENS_BYTES, "one period was used");
}

#[test]
fn tokens_are_remembered_for_as_long_as_they_are_good() {
    let mut spent = Spent::new(100);
    let mut next = seeds(2);
    let [old, new, newer] = [next(), next(), next()];
    assert!(spent.spend(199, &old));
    assert!(spent.spend(200, &new), "of the next period");
    assert!(!spent.spend(199, &old));
    assert!(!spent.contains(100, &new), "tokens are of one period");
    assert!(spent.spend(300, &newer));
    assert!(!spent.spend(200, &new));
    // Too old to be remembered, and to be valid.
    assert!(spent.contains(199, &old));
    assert!(!spent.spend(150, &next()));
    // A long silence.
    assert!(spent.spend(100_000, &old));
    assert!(spent.spend(99_900, &new), "the period before is empty");
}

#[test]
fn nothing_spent_takes_no_memory() {
    let mut spent = Spent::new(100);
    assert!(!spent.contains(150, &[1; SEED_LEN]));
    assert!(spent.filters.iter().all(|filter| filter.0.capacity() == 0));
}
