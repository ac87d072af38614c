use std::time::{Duration, Instant};

use hybriq_tls::{Level, Secret, Side, Suite};

use super::{OneRtt, Opening, RESERVED_FOR_CLOSING, confidentiality_limit, integrity_limit};
use crate::{
    testing::pn,
    wire::{
        error::Violation,
        packet::{KeyPhase, Version},
    },
};

impl OneRtt {
    /// Pretends that the keys have this many packets left.
    pub(crate) fn leave(&mut self, packets: u64) {
        let limit = confidentiality_limit(self.local_secret.suite());
        self.sealed = limit - RESERVED_FOR_CLOSING - packets;
    }

    /// Pretends that this many more packets may fail to open.
    pub(crate) fn leave_failures(&mut self, packets: u64) {
        self.failed = integrity_limit(self.local_secret.suite()) - packets;
    }
}

fn keys(side: Side) -> OneRtt {
    let secret = |writer| {
        let suite = Suite::Aes128GcmSha256;
        Secret::new(Level::OneRtt, writer, suite, &[7; 32]).unwrap()
    };
    OneRtt::new(Version::V1, secret(side), &secret(side.peer()), 0)
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    Instant::now()
}

/// Opens packets with a phase bit and a number, and returns the keys that opened them.
fn take(keys: &mut OneRtt, phase: KeyPhase, number: u64) -> Result<Opening, Violation> {
    let which = keys.choose(phase, pn(number));
    keys.on_opened(which, pn(number), || now() + Duration::from_secs(1))
        .map(|()| which)
}

/// Seals a packet that acknowledges a number.
fn acknowledge(keys: &mut OneRtt, number: u64, largest: u64) {
    keys.on_acknowledgement_sent(pn(largest));
    keys.on_sealed(pn(number), u64::MAX);
}

use KeyPhase::{One, Zero};
use Opening::{Current, Next, Previous};

/// Proves: rfc9001 6.2 update-is-followed
/// Proves: rfc9001 6.1 old-keys-stay-for-late-packets
#[test]
fn a_packet_of_the_other_phase_is_of_the_next_keys_or_of_the_last_ones_by_its_number() {
    let mut keys = keys(Side::Client);
    assert_eq!(take(&mut keys, Zero, 5), Ok(Current));
    assert_eq!(take(&mut keys, One, 8), Ok(Next));
    assert_eq!((keys.phase(), keys.updates()), (One, 1));
    assert_eq!(take(&mut keys, Zero, 6), Ok(Previous));
    assert_eq!(take(&mut keys, One, 7), Ok(Current));
    acknowledge(&mut keys, 0, 8);
    assert_eq!(take(&mut keys, Zero, 9), Ok(Next));
    assert_eq!((keys.phase(), keys.updates()), (Zero, 2));
}

/// Proves: rfc9001 6.4 numbers-and-keys-rise-together
#[test]
fn old_keys_with_a_higher_number_are_a_violation_whatever_comes_first() {
    let mut keys_first = keys(Side::Client);
    assert!(take(&mut keys_first, Zero, 5).is_ok());
    assert!(
        take(&mut keys_first, One, 4).is_err(),
        "new keys, lower number"
    );

    let mut between = keys(Side::Client);
    assert!(take(&mut between, One, 5).is_ok());
    assert!(take(&mut between, One, 9).is_ok());
    assert_eq!(between.choose(Zero, pn(7)), Previous);
    assert!(
        take(&mut between, Zero, 7).is_err(),
        "old keys, higher number"
    );

    let mut late = keys(Side::Client);
    assert!(take(&mut late, One, 9).is_ok());
    assert_eq!(take(&mut late, Zero, 7), Ok(Previous));
    assert!(take(&mut late, One, 6).is_err(), "new keys below old ones");

    let mut ours = keys(Side::Client);
    assert!(take(&mut ours, Zero, 5).is_ok());
    ours.update();
    assert!(
        take(&mut ours, One, 4).is_err(),
        "after an update of ours too"
    );
}

/// Proves: rfc9001 6.2 update-too-early-closes
#[test]
fn a_second_update_before_the_first_was_acknowledged_is_a_violation() {
    for acknowledged in [false, true] {
        let mut keys = keys(Side::Client);
        assert!(take(&mut keys, Zero, 5).is_ok());
        acknowledge(&mut keys, 0, 5);
        assert_eq!(take(&mut keys, One, 6), Ok(Next));
        // This says nothing about a packet before the update.
        acknowledge(&mut keys, 1, 5);
        if acknowledged {
            acknowledge(&mut keys, 2, 6);
        }
        assert_eq!(keys.choose(Zero, pn(7)), Next);
        assert_eq!(take(&mut keys, Zero, 7).is_ok(), acknowledged);
    }
}

/// Proves: rfc9001 6.1 no-update-before-confirmation
#[test]
fn a_client_cannot_know_that_the_handshake_is_confirmed_before_the_server_says_anything() {
    let mut silent = keys(Side::Server);
    assert!(take(&mut silent, One, 0).is_err());
    let mut talking = keys(Side::Server);
    talking.on_sealed(pn(0), u64::MAX);
    assert_eq!(take(&mut talking, One, 0), Ok(Next));
    // To a server, the client's Finished shows it.
    assert_eq!(take(&mut keys(Side::Client), One, 0), Ok(Next));
}

#[test]
fn a_packet_under_old_keys_acknowledges_nothing_under_new_ones() {
    let mut keys = keys(Side::Client);
    assert!(take(&mut keys, Zero, 0).is_ok());
    keys.on_sealed(pn(3), u64::MAX);
    keys.update();
    keys.on_sealed(pn(4), u64::MAX);
    assert_eq!(take(&mut keys, Zero, 1), Ok(Previous));
    assert!(keys.may_acknowledge(pn(3)) && !keys.may_acknowledge(pn(4)));
    assert_eq!(take(&mut keys, One, 2), Ok(Current));
    assert!(keys.may_acknowledge(pn(4)));
}

/// Proves: rfc9001 6.1 no-update-before-the-last-is-acknowledged
#[test]
fn an_update_of_ours_waits_for_the_one_before() {
    let mut keys = keys(Side::Client);
    assert!(!keys.may_update(Some(pn(0))), "nothing was sealed");
    keys.on_sealed(pn(3), u64::MAX);
    assert!(take(&mut keys, Zero, 0).is_ok());
    assert!(!keys.may_update(Some(pn(2))) && keys.may_update(Some(pn(3))));
    keys.update();
    keys.on_sealed(pn(4), u64::MAX);
    assert!(!keys.may_update(Some(pn(4))), "the peer has not followed");
    assert!(take(&mut keys, One, 1).is_ok());
    assert!(!keys.may_update(Some(pn(4))), "the old keys are there");
    keys.expire(now() + Duration::from_secs(2));
    assert!(!keys.may_update(Some(pn(3))) && keys.may_update(Some(pn(4))));
}

/// Proves: rfc9001 6.5 old-keys-go
#[test]
fn old_keys_stay_until_their_time_is_over() {
    let mut keys = keys(Side::Client);
    let until = now() + Duration::from_secs(1);
    keys.update();
    keys.expire(until + Duration::from_secs(9));
    assert_eq!(
        keys.choose(Zero, pn(1)),
        Previous,
        "the peer has not followed"
    );
    keys.on_opened(Current, pn(5), || until).unwrap();
    keys.expire(until.checked_sub(Duration::from_millis(1)).unwrap());
    assert_eq!(keys.choose(Zero, pn(1)), Previous);
    keys.on_opened(Current, pn(6), || until + Duration::from_secs(9))
        .unwrap();
    keys.expire(until);
    assert_eq!(keys.choose(Zero, pn(1)), Next);
}

/// Proves: rfc9001 6.6 update-before-confidentiality-limit
#[test]
fn keys_are_due_after_as_many_packets_as_wished_and_half_the_limit_at_most() {
    let mut keys = keys(Side::Client);
    assert!(!keys.on_sealed(pn(0), 3));
    assert!(!keys.on_sealed(pn(1), 3));
    assert!(keys.on_sealed(pn(2), 3));
    keys.update();
    assert!(!keys.on_sealed(pn(3), 3), "new keys count anew");
    keys.leave((1 << 22) - RESERVED_FOR_CLOSING + 2);
    assert!(!keys.on_sealed(pn(4), u64::MAX));
    assert!(keys.on_sealed(pn(5), u64::MAX) && !keys.is_spent());
}
