use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn now() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

/// A handshake in which everything is post-quantum.
const GOOD: Seen = Seen {
    group: Group::X25519MLKEM768,
    lineage: Lineage::PostQuantum,
    certificates: Certificates::PostQuantum,
    commitment: None,
};

fn pinned() -> OriginRecord {
    let mut record = OriginRecord::default();
    record.learn(now(), DAY, &GOOD);
    record
}

#[test]
fn each_part_of_a_downgrade_is_found() {
    let classical = Group::X25519;
    let found = |seen: Seen| pinned().downgrade(now(), &seen).unwrap_or_default();
    let downgrade = |group, session, certificates| Downgrade {
        group,
        session,
        certificates,
    };
    assert_eq!(found(GOOD), downgrade(None, false, false));
    for group in [classical, Group(0x0a0a)] {
        let lineage = Lineage::Classical;
        let seen = Seen {
            group,
            lineage,
            ..GOOD
        };
        assert_eq!(found(seen), downgrade(Some(group), false, false));
    }
    let session = Seen {
        lineage: Lineage::Classical,
        certificates: Certificates::ResumedPostQuantum,
        ..GOOD
    };
    assert_eq!(found(session), downgrade(None, true, false));
    for certificates in [Certificates::Classical, Certificates::Resumed] {
        let seen = Seen {
            certificates,
            ..GOOD
        };
        assert_eq!(found(seen), downgrade(None, false, true));
        let both = Seen {
            group: classical,
            ..seen
        };
        assert_eq!(found(both), downgrade(Some(classical), false, true));
    }
}

#[test]
fn only_what_a_handshake_shows_is_remembered() {
    let learnt = |seen: Seen| {
        let mut record = OriginRecord::default();
        record.learn(now(), DAY, &seen);
        (
            record.pins_key_exchange(now()),
            record.pins_certificates(now()),
        )
    };
    assert_eq!(learnt(GOOD), (true, true));
    let (group, lineage) = (Group::X25519, Lineage::Classical);
    assert_eq!(learnt(Seen { group, ..GOOD }), (false, true));
    assert_eq!(learnt(Seen { lineage, ..GOOD }), (false, true));
    for certificates in [
        Certificates::Classical,
        Certificates::Resumed,
        Certificates::ResumedPostQuantum,
    ] {
        let commitment = Some(DAY);
        let seen = Seen {
            certificates,
            commitment,
            ..GOOD
        };
        assert_eq!(learnt(seen), (true, false), "{certificates:?}");
    }
}

#[test]
fn a_downgrade_shortens_nothing() {
    let before = pinned();
    for certificates in [Certificates::Classical, Certificates::Resumed] {
        for commitment in [None, Some(Duration::ZERO), Some(SECOND)] {
            let mut record = before;
            let seen = Seen {
                group: Group::X25519,
                lineage: Lineage::Classical,
                certificates,
                commitment,
            };
            record.learn(now() + SECOND, DAY, &seen);
            assert_eq!(record, before);
        }
    }
}

#[test]
fn a_pin_ends_with_its_second() {
    let record = pinned();
    let bad = Seen {
        group: Group::X25519,
        certificates: Certificates::Classical,
        ..GOOD
    };
    assert!(record.downgrade(now() + DAY - SECOND, &bad).is_some());
    assert!(record.downgrade(now() + DAY, &bad).is_none());
    assert!(record.is_pinned(now() + DAY - SECOND) && !record.is_pinned(now() + DAY));
}

#[test]
fn a_server_that_is_visited_often_is_stored_rarely() {
    let mut origins = Origins::default();
    origins.set_continuity(Continuity::Refuse);
    let (mut record, mut changes) = (OriginRecord::default(), 0);
    let mut visit = |at: SystemTime, seen: &Seen| {
        if origins.would_change(at, &record, seen) {
            origins.learn(at, &mut record, seen);
            changes += 1;
        }
        changes
    };
    for hour in 0..48 {
        assert_eq!(visit(now() + hour * DAY / 24, &GOOD), 1 + hour / 24);
    }
    let other = Seen {
        group: Group::MLKEM1024,
        ..GOOD
    };
    assert_eq!(visit(now() + 2 * DAY, &other), 3);
    // A server whose promises fluctuate is stored each time it shortens its promise, and no more
    // often.
    let zero = Seen {
        commitment: Some(Duration::ZERO),
        ..other
    };
    assert_eq!(visit(now() + 2 * DAY, &zero), 4);
    assert_eq!(visit(now() + 2 * DAY, &zero), 4);
}

/// A promise of less than a day is stored again before and after its end, regardless of how long
/// the client itself remembers.
#[test]
fn a_short_promise_is_prolonged_by_each_visit() {
    let hour = DAY / 24;
    let seen = Seen {
        commitment: Some(6 * hour),
        ..GOOD
    };
    let mut origins = Origins::default();
    origins.set_continuity(Continuity::Refuse);
    let mut record = OriginRecord::default();
    for at in [0, 5, 10, 17, 24].map(|hours| now() + hours * hour) {
        if origins.would_change(at, &record, &seen) {
            origins.learn(at, &mut record, &seen);
        }
        assert!(record.pins_certificates(at + 6 * hour - SECOND));
        assert!(!record.pins_certificates(at + 6 * hour));
    }
}

#[test]
fn a_hint_counts_for_its_name_and_only_without_a_memory() {
    let mut origins = Origins::default();
    origins.set_hint(
        "A.test",
        vec![Group(0x0a0a), Group::MLKEM1024, Group::X25519],
    );
    let policy = KeyExchange::default();
    let nothing = OriginRecord::default();
    let hint = origins.predict(&nothing, "a.TEST.", &policy);
    assert_eq!(hint, Some(Group::MLKEM1024));
    assert_eq!(origins.predict(&nothing, "b.test", &policy), None);
    let classical = origins.predict(&nothing, "a.test", &KeyExchange::OnlyClassical);
    assert_eq!(classical, Some(Group::X25519));
    let known = OriginRecord {
        group: Some(Group::SECP256R1MLKEM768),
        ..nothing
    };
    assert_eq!(origins.predict(&known, "a.test", &policy), known.group);
    origins.set_prediction(Prediction::Off);
    assert_eq!(origins.predict(&known, "a.test", &policy), None);
}

proptest! {
    #[test]
    fn a_record_survives_its_bytes(group in 1_u16.., times in any::<[Option<u32>; 2]>()) {
        let [key_exchange_until, certificates_until] = times.map(|time| {
            time.map(|seconds| UNIX_EPOCH + Duration::from_secs(u64::from(seconds) + 1))
        });
        let record = OriginRecord {
            group: Some(Group(group)),
            key_exchange_until,
            certificates_until,
        };
        prop_assert_eq!(OriginRecord::from_bytes(&record.to_bytes()), Some(record));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Some(record) = OriginRecord::from_bytes(&bytes) {
            prop_assert_eq!(&record.to_bytes()[..], &bytes[..]);
        }
    }
}
