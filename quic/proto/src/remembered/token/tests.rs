use std::net::{IpAddr, SocketAddr};

use super::{Binding, Kind, MAX_LEN, Ring, SEED_LEN, Token};
use crate::wire::{limits, packet::Cid};

const VERSION: u32 = 1;
const SEED: [u8; SEED_LEN] = [7; SEED_LEN];

fn peer(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn scid() -> Cid {
    Cid::from(*b"retry id")
}

fn original() -> Cid {
    Cid::from(*b"original")
}

fn retry_binding() -> Binding {
    Binding::retry(peer("192.0.2.1:5000"), scid(), VERSION)
}

fn new_binding() -> Binding {
    Binding::new_token(IpAddr::from([192, 0, 2, 1]), VERSION)
}

fn ring() -> Ring {
    Ring::new(&[1; 32])
}

fn retry_token() -> Token {
    ring()
        .seal(&retry_binding(), SEED, 1234, &original())
        .unwrap()
}

fn new_token() -> Token {
    ring().seal(&new_binding(), SEED, 99, &Cid::EMPTY).unwrap()
}

#[test]
fn a_token_says_what_was_sealed() {
    let opened = ring().open(&retry_binding(), &retry_token()).unwrap();
    assert_eq!(
        (opened.issued, opened.original_dcid, opened.seed),
        (1234, original(), SEED)
    );
    let opened = ring().open(&new_binding(), &new_token()).unwrap();
    assert_eq!((opened.issued, opened.original_dcid), (99, Cid::EMPTY));
    let longest = Cid::new(&[9; limits::MAX_CID_LEN]).unwrap();
    let binding = Binding::retry(peer("[2001:db8::1]:1"), longest, VERSION);
    let token = ring().seal(&binding, SEED, u64::MAX, &longest).unwrap();
    assert_eq!(token.len(), MAX_LEN);
    assert_eq!(
        ring().open(&binding, &token).unwrap().original_dcid,
        longest
    );
}

/// Proves: rfc9000 8.1.4 tokens-cannot-be-forged
/// Proves: security 6 forged-tokens-are-refused
#[test]
fn no_bit_of_a_token_can_be_changed() {
    for (token, binding) in [
        (retry_token(), retry_binding()),
        (new_token(), new_binding()),
    ] {
        for bit in 0..token.len() * 8 {
            let mut forged = token.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ring().open(&binding, &forged), None, "bit {bit}");
        }
        for len in 0..token.len() {
            assert_eq!(ring().open(&binding, &token[..len]), None, "{len} bytes");
        }
        let mut longer = token.to_vec();
        longer.push(0);
        assert_eq!(ring().open(&binding, &longer), None);
    }
}

/// Proves: rfc9000 8.1.2 invalid-retry-token-is-refused
#[test]
fn a_retry_token_is_bound_to_address_port_connection_id_and_version() {
    let open = |binding| ring().open(&binding, &retry_token());
    let other = Cid::from(*b"other id");
    let here = peer("192.0.2.1:5000");
    assert!(open(Binding::retry(here, scid(), VERSION)).is_some());
    let mapped = peer("[::ffff:192.0.2.1]:5000");
    assert!(open(Binding::retry(mapped, scid(), VERSION)).is_some());
    for elsewhere in ["192.0.2.2:5000", "192.0.2.1:5001", "[2001:db8::1]:5000"] {
        let binding = Binding::retry(peer(elsewhere), scid(), VERSION);
        assert_eq!(open(binding), None, "{elsewhere}");
    }
    assert_eq!(open(Binding::retry(here, other, VERSION)), None);
    assert_eq!(open(Binding::retry(here, scid(), 0x6b33_43cf)), None);
}

/// Proves: rfc9000 8.1.4 new-token-knows-the-address
/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_new_token_is_bound_to_the_ip_address_and_the_version() {
    let open = |ip: [u8; 4], version| {
        ring().open(&Binding::new_token(IpAddr::from(ip), version), &new_token())
    };
    assert!(open([192, 0, 2, 1], VERSION).is_some());
    assert_eq!(open([192, 0, 2, 2], VERSION), None);
    assert_eq!(open([192, 0, 2, 1], 0x6b33_43cf), None);
}

/// Proves: rfc9000 8.1.1 tokens-are-told-apart
#[test]
fn neither_kind_of_token_stands_for_the_other() {
    assert_eq!(Kind::of(&retry_token()), Some(Kind::Retry));
    assert_eq!(Kind::of(&new_token()), Some(Kind::New));
    assert_eq!(ring().open(&new_binding(), &retry_token()), None);
    assert_eq!(ring().open(&retry_binding(), &new_token()), None);
    // Nor with the first byte of the other.
    let mut disguised = new_token();
    disguised[0] = retry_token()[0];
    assert_eq!(ring().open(&retry_binding(), &disguised), None);
    for other in [&b""[..], b"R", b"Rather short, but of the first byte"] {
        assert_eq!(Kind::of(other), None);
    }
}

#[test]
fn tokens_of_a_rotated_key_are_good_until_it_is_forgotten() {
    let mut ring = ring();
    let old = retry_token();
    for secret in 2..=limits::TOKEN_KEYS as u8 {
        ring.rotate(&[secret; 32]);
        assert!(ring.open(&retry_binding(), &old).is_some(), "{secret}");
    }
    let new = ring.seal(&retry_binding(), SEED, 1, &original()).unwrap();
    assert_ne!(new[..5], old[..5], "sealed with the new key");
    ring.rotate(&[99; 32]);
    assert!(ring.open(&retry_binding(), &old).is_none());
    assert!(ring.open(&retry_binding(), &new).is_some());
}

#[test]
fn a_key_is_accepted_before_it_seals() {
    let (mut here, mut there) = (ring(), ring());
    here.accept(&[2; 32]);
    there.rotate(&[2; 32]);
    let theirs = there.seal(&retry_binding(), SEED, 1, &original()).unwrap();
    assert!(here.open(&retry_binding(), &theirs).is_some());
    let ours = here.seal(&retry_binding(), SEED, 1, &original()).unwrap();
    assert_eq!(ours, retry_token_at(1), "still sealed with the first");
    // Accepting the key that already seals changes nothing.
    here.accept(&[1; 32]);
    let ours = here.seal(&retry_binding(), SEED, 1, &original()).unwrap();
    assert_eq!(ours, retry_token_at(1));
    here.rotate(&[2; 32]);
    let ours = here.seal(&retry_binding(), SEED, 1, &original()).unwrap();
    assert_eq!(ours, theirs);
}

fn retry_token_at(issued: u64) -> Token {
    ring()
        .seal(&retry_binding(), SEED, issued, &original())
        .unwrap()
}
