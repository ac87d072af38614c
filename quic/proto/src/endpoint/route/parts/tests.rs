use hashbrown::HashTable;

use super::{LARGE, PARTS, Parts};
use crate::{
    random::{
        SplitMix,
        prf::{KeyedHash, PlainHash},
    },
    wire::packet::Cid,
};

fn parts() -> Parts<u64, u64, KeyedHash> {
    Parts::new(KeyedHash([7; 16]))
}

#[test]
fn what_was_added_is_found_until_it_is_removed() {
    let mut parts = parts();
    assert!(parts.is_empty());
    for key in 0..10_000 {
        parts.insert(key, key);
    }
    parts.insert(3, 4);
    assert_eq!((parts.get(&3), parts.get(&4)), (Some(&4), Some(&4)));
    assert_eq!((parts.len, parts.get(&10_000)), (10_000, None));
    assert_eq!((parts.remove(&3), parts.remove(&3)), (Some(4), None));
    for key in 0..10_000 {
        parts.remove(&key);
        assert_eq!(parts.get(&key), None);
    }
    assert!(parts.is_empty());
    let held: usize = parts.tables.iter().map(HashTable::capacity).sum();
    assert_eq!(held, 0, "memory is given back");
}

#[test]
fn memory_is_given_back_as_entries_go() {
    let mut parts = parts();
    for key in 0..100_000 {
        parts.insert(key, key);
    }
    for key in 100..100_000 {
        parts.remove(&key);
    }
    for key in 0..100 {
        assert_eq!(parts.get(&key), Some(&key));
    }
    let held: usize = parts.tables.iter().map(HashTable::capacity).sum();
    assert!(held <= PARTS * LARGE * 2, "{held}");
}

#[test]
fn random_ids_spread_over_all_parts() {
    let mut random = SplitMix::new(1);
    let mut parts = Parts::new(PlainHash);
    for _ in 0..6400 {
        parts.insert(Cid::from(random.draw().to_be_bytes()), ());
    }
    for part in parts.tables.iter() {
        assert!((50..200).contains(&part.len()), "{}", part.len());
    }
}
