use std::{collections::BTreeSet, hash::BuildHasher as _};

use super::*;
use crate::wire::packet::Cid;

/// The key of the test vectors: 00 01 02 … 0f.
fn vector_key() -> [u8; 16] {
    std::array::from_fn(|index| index as u8)
}

#[test]
fn the_function_is_siphash_2_4() {
    // Appendix A of the paper.
    let input: Vec<u8> = (0..15).collect();
    assert_eq!(Prf::new(vector_key()).of(&input), 0xa129_ca61_49be_45e5);
    // The first vectors of the reference implementation.
    assert_eq!(Prf::new(vector_key()).of(&[]), 0x726f_db47_dd0e_0e31);
    assert_eq!(Prf::new(vector_key()).of(&[0]), 0x74f8_39c5_93dc_67fd);
}

#[test]
fn a_sequence_is_the_function_of_a_counter() {
    let mut sequence = Sequence::new(0x0706_0504_0302_0100);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&vector_key()[..8]);
    let prf = Prf::new(key);
    for count in 0..1000_u64 {
        assert_eq!(sequence.draw(), prf.of(&count.to_le_bytes()));
    }
}

#[test]
fn other_seeds_give_other_numbers() {
    let drawn: BTreeSet<u64> = (0..100)
        .flat_map(|seed| {
            let mut sequence = Sequence::new(seed);
            (0..100).map(move |_| sequence.draw())
        })
        .collect();
    assert_eq!(drawn.len(), 10_000);
}

#[test]
fn secrets_are_not_printed() {
    let printed = format!("{:?} {:?}", Sequence::new(4_242), KeyedHash([42; 16]));
    assert!(
        !printed.contains("42,") && !printed.contains("4242"),
        "{printed}"
    );
}

#[test]
fn a_keyed_hash_depends_on_its_key() {
    let cid = Cid::from([7; 8]);
    assert_ne!(
        KeyedHash([0; 16]).hash_one(cid),
        KeyedHash([1; 16]).hash_one(cid)
    );
}

#[test]
fn a_plain_hash_spreads_ids_that_differ_in_one_byte() {
    for place in 0..8 {
        let mut bytes = [0; 8];
        let hashes: Vec<u64> = (0..=255)
            .map(|value| {
                bytes[place] = value;
                PlainHash.hash_one(Cid::from(bytes))
            })
            .collect();
        // A hashbrown table uses the lowest bits for the place and the highest for the tag.
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 0xff).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert!(
            low.len() > 120 && high.len() > 60,
            "{place}: {} {}",
            low.len(),
            high.len()
        );
    }
}
