use super::*;
use crate::providers::rustls::crypto::suites;

fn shares(group: Group, size: usize) -> (CryptoProvider, Shares) {
    let mut crypto = suites::crypto(None, &[group, Group::SECP384R1]).expect("crypto");
    let shares = Shares::over(&mut crypto, size).expect("a pool");
    (crypto, shares)
}

fn now() -> Instant {
    Instant::now()
}

fn publics(shares: &Shares) -> Vec<Vec<u8>> {
    let ready = shares.ready();
    ready.iter().map(|it| it.pair.pub_key().to_vec()).collect()
}

fn start(crypto: &CryptoProvider, shares: &Shares, at: Instant) -> Vec<u8> {
    let pair = shares.lend(at, || crypto.kx_groups[0].start());
    pair.expect("a pair").pub_key().to_vec()
}

#[test]
fn the_pool_fills_up_to_its_size_and_no_further() {
    let (_, shares) = shares(Group::X25519MLKEM768, 3);
    for made in 0..5 {
        assert_eq!(shares.is_short(now()), made < 3);
        shares.make_one(now());
    }
    assert_eq!(publics(&shares).len(), 3);
    let mut crypto = suites::crypto(None, &[Group::X25519]).expect("crypto");
    assert!(Shares::over(&mut crypto, 0).is_none());
    let largest = Shares::over(&mut crypto, usize::MAX).expect("a pool");
    assert_eq!(largest.size, MAX_SHARES);
}

#[test]
fn each_pair_is_used_once_and_then_new_ones_are_made() {
    for group in Group::ALL {
        let (crypto, shares) = shares(group, 2);
        shares.make_one(now());
        shares.make_one(now());
        let mut expected = publics(&shares);
        let used = [0; 4].map(|_| start(&crypto, &shares, now()));
        assert_eq!(used[..2], expected, "{group}");
        expected.extend_from_slice(&used[2..]);
        let mut different = expected.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 4, "{group}: a pair was used twice");
        assert!(shares.is_short(now()));
    }
}

#[test]
fn old_pairs_and_those_of_another_process_are_dropped() {
    let (crypto, shares) = shares(Group::X25519MLKEM768, 2);
    shares.make_one(now());
    let old = publics(&shares);
    let later = now() + MAX_AGE;
    assert_ne!(start(&crypto, &shares, later), old[0]);
    assert_eq!(publics(&shares).len(), 0);

    shares.make_one(now());
    let later = now() + MAX_AGE;
    assert!(shares.is_short(later));
    assert_eq!(publics(&shares).len(), 0, "too old");

    shares.make_one(now());
    shares.ready()[0].process ^= 1;
    let foreign = publics(&shares);
    assert_ne!(start(&crypto, &shares, now()), foreign[0]);
    assert_eq!(publics(&shares).len(), 0);
}

/// A second ClientHello, or one with a group that the server is known to want, does not use the
/// pair.
#[test]
fn a_pair_that_is_not_used_goes_back() {
    let (crypto, shares) = shares(Group::X25519MLKEM768, 1);
    shares.make_one(now());
    let kept = publics(&shares);
    let other = shares.lend(now(), || crypto.kx_groups[1].start());
    assert_eq!(other.expect("a pair").group(), NamedGroup::secp384r1);
    assert_eq!(publics(&shares), kept);
    // A start that is lent nothing gets none of the stored pairs.
    let pair = crypto.kx_groups[0].start().expect("a pair");
    assert_ne!(pair.pub_key(), kept[0]);
}

#[test]
fn the_classical_half_of_a_pair_can_be_used_alone() {
    for group in [Group::X25519MLKEM768, Group::SECP384R1MLKEM1024] {
        let (crypto, shares) = shares(group, 1);
        shares.make_one(now());
        let pair = shares.lend(now(), || crypto.kx_groups[0].start());
        let pair = pair.expect("a pair");
        let (curve, share) = pair.hybrid_component().expect("a classical half");
        let curve = groups::implementation(Group(curve.into())).expect("implemented");
        let server = curve.start_and_complete(share).expect("an answer");
        let secret = pair.complete_hybrid_component(&server.pub_key);
        let secret = secret.expect("a secret");
        assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
    }
}
