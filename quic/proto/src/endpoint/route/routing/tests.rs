use std::hash::BuildHasher;

use crate::{random::prf::KeyedHash, wire::packet::Cid};

/// Proves: security 3 cid-hash-is-keyed
#[test]
fn ids_that_collide_under_one_key_do_not_under_another() {
    let (known, secret) = (KeyedHash([1; 16]), KeyedHash([2; 16]));
    let bucket = |keyed: &KeyedHash, cid: &Cid| keyed.hash_one(cid) % 1024;
    let ids = (0_u64..200_000).map(|number| Cid::from(number.to_be_bytes()));
    let chosen: Vec<_> = ids.filter(|cid| bucket(&known, cid) == 0).collect();
    assert!(chosen.len() > 100, "{}", chosen.len());
    let same = chosen.iter().filter(|cid| bucket(&secret, cid) == 0);
    assert!(same.count() < 10);
}
