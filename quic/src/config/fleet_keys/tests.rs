//! One secret gives the same keys everywhere, and a different one for each purpose.

use hybriq_proto::{
    remembered::token::{Binding, Keys as _, Token},
    wire::packet::Cid,
};

use super::{FleetKeys, FleetKeysError, Purpose, Root};
use crate::config::TokenKeys;

const FIRST: [u8; 32] = [1; 32];
const NEXT: [u8; 40] = [2; 40];
/// First bytes of the keys of `FIRST`, computed with another HKDF.
const TOKENS: [u8; 4] = [0x58, 0xbf, 0x75, 0x12];
const RESETS: [u8; 4] = [0xec, 0x56, 0x4c, 0x9a];

fn keys(secret: &[u8]) -> FleetKeys {
    FleetKeys::from_secret(secret).expect("a secret that is long enough")
}

fn seal(keys: &FleetKeys) -> Token {
    let ring = keys.tokens.ring();
    ring.seal(&binding(), [7; 16], 0, &Cid::EMPTY)
        .expect("a token")
}

fn binding() -> Binding {
    Binding::new_token([192, 0, 2, 1].into(), 1)
}

fn opens(keys: &TokenKeys, token: &[u8]) -> bool {
    keys.ring().open(&binding(), token).is_some()
}

#[test]
fn a_secret_gives_the_same_keys_on_every_machine() {
    let token = seal(&keys(&FIRST));
    assert!(opens(&keys(&FIRST).tokens, &token));
    assert!(!opens(&keys(&NEXT).tokens, &token));
}

#[test]
fn every_purpose_has_a_key_of_its_own() {
    let root = Root::new(&FIRST).expect("long enough");
    let tokens = root.key(Purpose::Tokens);
    assert_ne!(tokens, root.key(Purpose::Resets));
    assert_ne!(*tokens, FIRST);
    assert!(!opens(&TokenKeys::from_secret(FIRST), &seal(&keys(&FIRST))));
}

/// If these bytes changed, machines with different releases would disagree.
#[test]
fn the_derivation_is_fixed() {
    let root = Root::new(&FIRST).expect("long enough");
    let start = |purpose| root.key(purpose)[..4].to_vec();
    assert_eq!(start(Purpose::Tokens), TOKENS);
    assert_eq!(start(Purpose::Resets), RESETS);
}

#[test]
fn a_fleet_rotates_without_losing_tokens() {
    let (here, there) = (keys(&FIRST), keys(&FIRST));
    for machine in [&here, &there] {
        machine.also_accept(&NEXT).expect("long enough");
    }
    let old = seal(&there);
    here.rotate_to(&NEXT).expect("long enough");
    let new = seal(&here);
    for machine in [&here, &there] {
        assert!(opens(&machine.tokens, &old) && opens(&machine.tokens, &new));
    }
    assert!(opens(&keys(&NEXT).tokens, &new));
}

#[test]
fn a_short_secret_is_refused_and_changes_nothing() {
    let keys = keys(&FIRST);
    let before = seal(&keys);
    for result in [
        keys.rotate_to(&[3; 31]),
        keys.also_accept(&[]),
        FleetKeys::from_secret(&[3; 31]).map(drop),
        keys.clone().keep_resets_of(&[3; 31]).map(drop),
    ] {
        assert!(matches!(result, Err(FleetKeysError::TooShort(0 | 31))));
    }
    assert_eq!(before, seal(&keys));
    let missing = FleetKeys::from_file("/nowhere/at/all");
    assert!(matches!(missing, Err(FleetKeysError::File(_))));
}

#[test]
fn the_debug_text_shows_no_key() {
    assert_eq!(format!("{:?}", keys(&FIRST)), "FleetKeys { .. }");
}
