//! Tests of breakdowns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hybriq::tls::Suite;
use hybriq::{Backend, Group, KeyExchange};

use super::exchange::handshake;
use super::exchange::handshake::Record;
use super::measure::{measure, once};
use super::plan::{Mode, Plan, SUITES};
use super::timed::recorder::{Operation, Watch};
use crate::handshake::certificates;
use crate::scenario::axes::Certificate;

const FULL: Mode = Mode {
    psk: false,
    shares_ahead: false,
};

fn plan(group: Group) -> Plan {
    Plan {
        provider: Backend::Rustls,
        group,
        suite: Suite::Aes128GcmSha256,
        certificate: Certificate::EcdsaP256,
        chain: 1,
        client_auth: false,
        mode: FULL,
    }
}

/// Performs one handshake of rustls with rustls.
fn one(plan: &Plan, watch: Watch) -> (Record, Record) {
    let certificates = certificates::make(plan.certificates()).unwrap();
    let mut ends = plan.ends(&certificates, &mut Vec::new()).unwrap();
    once(plan, &ends.remove(0), watch).unwrap()
}

/// Returns the count of each operation with a fixed count.
fn counts(record: &Record) -> BTreeMap<&'static str, u32> {
    let unsteady = [
        Operation::KeyDerivation,
        Operation::TranscriptHash,
        Operation::Randomness,
    ];
    let tallies = Operation::ALL.iter().zip(&record.operations);
    tallies
        .filter(|(operation, tally)| !unsteady.contains(operation) && tally.count > 0)
        .map(|(operation, tally)| (operation.name(), tally.count))
        .collect()
}

fn names(record: &Record) -> Vec<&str> {
    record.parts.iter().map(|part| part.name.as_str()).collect()
}

#[test]
fn a_full_hybrid_handshake_does_each_operation_once() {
    for group in [
        Group::X25519MLKEM768,
        Group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024,
    ] {
        let (client, server) = one(&plan(group), Watch::Operations);
        let wanted = [
            "ECDH key generation",
            "ECDH agreement",
            "KEM key generation",
            "KEM decapsulation",
            "verify CertificateVerify",
            "verify chain",
        ];
        assert_eq!(counts(&client), wanted.map(|name| (name, 1)).into());
        let wanted = [
            "ECDH key generation",
            "ECDH agreement",
            "KEM encapsulation",
            "sign",
        ];
        assert_eq!(counts(&server), wanted.map(|name| (name, 1)).into());
    }
}

#[test]
fn a_group_of_one_kind_does_nothing_of_the_other() {
    let kem = one(&plan(Group::MLKEM768), Watch::Operations);
    let ecdh = one(&plan(Group::X25519), Watch::Operations);
    let has = |record: &Record, what: &str| counts(record).keys().any(|name| name.contains(what));
    for (kem, ecdh) in [(&kem.0, &ecdh.0), (&kem.1, &ecdh.1)] {
        assert!(has(kem, "KEM") && !has(kem, "ECDH"));
        assert!(has(ecdh, "ECDH") && !has(ecdh, "KEM"));
    }
}

#[test]
fn a_resumed_handshake_signs_and_verifies_nothing() {
    let psk = Plan {
        mode: Mode { psk: true, ..FULL },
        ..plan(Group::X25519MLKEM768)
    };
    let (client, server) = one(&psk, Watch::Operations);
    for record in [&client, &server] {
        assert!(record.negotiated.resumed);
        let signatures = ["sign", "verify CertificateVerify", "verify chain"];
        assert!(
            signatures
                .iter()
                .all(|name| !counts(record).contains_key(name))
        );
    }
    let (client, _) = one(&psk, Watch::Messages);
    let wanted = [
        "ClientHello",
        "ServerHello",
        "EncryptedExtensions",
        "Finished received",
        "Finished sent",
        "NewSessionTicket",
    ];
    assert_eq!(names(&client), wanted);
}

#[test]
fn shares_made_ahead_are_not_made_in_the_handshake() {
    for group in Group::ALL {
        let ahead = Plan {
            mode: Mode {
                psk: false,
                shares_ahead: true,
            },
            ..plan(group)
        };
        let (client, server) = one(&ahead, Watch::Operations);
        for record in [&client, &server] {
            assert!(
                counts(record)
                    .keys()
                    .all(|name| !name.contains("key generation"))
            );
        }
        assert_eq!(client.negotiated.group, Some(group));
    }
}

#[test]
fn a_chain_is_verified_certificate_by_certificate_on_both_sides() {
    let mutual = Plan {
        chain: 3,
        client_auth: true,
        ..plan(Group::X25519)
    };
    let (client, server) = one(&mutual, Watch::Operations);
    for record in [&client, &server] {
        let counts = counts(record);
        assert_eq!(counts.get("verify chain"), Some(&3));
        assert_eq!(counts.get("verify CertificateVerify"), Some(&1));
        assert_eq!(counts.get("sign"), Some(&1));
    }
}

#[test]
fn every_message_of_a_full_handshake_has_a_time_and_a_size_on_both_sides() {
    let mutual = Plan {
        client_auth: true,
        ..plan(Group::X25519MLKEM768)
    };
    let (client, server) = one(&mutual, Watch::Messages);
    let first = [
        "ClientHello",
        "ServerHello",
        "EncryptedExtensions",
        "CertificateRequest",
        "Certificate",
        "CertificateVerify",
    ];
    let wanted = [
        "Finished received",
        "Certificate sent",
        "CertificateVerify sent",
        "Finished sent",
        "NewSessionTicket",
    ];
    assert_eq!(names(&client), [&first[..], &wanted].concat());
    let wanted = [
        "Finished sent",
        "Certificate received",
        "CertificateVerify received",
        "Finished received",
        "NewSessionTicket",
    ];
    assert_eq!(names(&server), [&first[..], &wanted].concat());
    for record in [&client, &server] {
        assert!(
            record
                .parts
                .iter()
                .all(|part| part.bytes > 4 && part.time > Duration::ZERO)
        );
    }
    let sizes = |record: &Record| {
        record
            .parts
            .iter()
            .map(|part| part.bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(&client), sizes(&server));
}

#[test]
fn hellos_grow_by_the_key_shares() {
    let hellos = |group| {
        let (client, _) = one(&plan(group), Watch::Messages);
        (client.parts[0].bytes, client.parts[1].bytes)
    };
    let (client, server) = hellos(Group::X25519);
    let (hybrid_client, hybrid_server) = hellos(Group::X25519MLKEM768);
    assert_eq!(hybrid_client - client, 1184);
    assert_eq!(hybrid_server - server, 1088);
}

#[test]
fn timed_groups_agree_with_untimed_ones() {
    for group in Group::ALL {
        let plan = plan(group);
        let certificates = certificates::of_server(plan.certificate, 1).unwrap();
        let timed = plan.ends(&certificates, &mut Vec::new()).unwrap().remove(0);
        let (client, server) = plan.options(&certificates).unwrap();
        let plain = (
            Backend::Rustls.client(&client).unwrap(),
            Backend::Rustls.server(&server).unwrap(),
        );
        for (client, server) in [(&timed.client, &plain.1), (&plain.0, &timed.server)] {
            let (client, server) =
                handshake::run(&**client, &**server, FULL, Watch::Nothing).unwrap();
            assert_eq!(client.negotiated.group, Some(group));
            assert_eq!(server.negotiated.group, Some(group));
        }
    }
}

#[test]
fn every_suite_and_every_kind_of_certificate_works() {
    for suite in SUITES {
        let suite = Plan {
            suite,
            ..plan(Group::X25519)
        };
        assert_eq!(
            one(&suite, Watch::Messages).0.negotiated.suite,
            Some(suite.suite)
        );
    }
    for certificate in Certificate::ALL {
        let kind = Plan {
            certificate,
            ..plan(Group::X25519)
        };
        assert_eq!(
            counts(&one(&kind, Watch::Operations).1).get("sign"),
            Some(&1)
        );
    }
}

/// The parts of both sides lie within the total, which contains little else.
#[test]
fn the_parts_add_up_to_the_handshake() {
    let plan = plan(Group::X25519MLKEM768);
    let certificates = certificates::of_server(plan.certificate, 1).unwrap();
    let ends = plan.ends(&certificates, &mut Vec::new()).unwrap().remove(0);
    let mut shares = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        let records = handshake::run(&*ends.client, &*ends.server, FULL, Watch::Messages);
        let whole = started.elapsed();
        let (client, server) = records.unwrap();
        let parts = client.time() + server.time();
        assert!(parts <= whole, "{parts:?} of {whole:?}");
        shares.push(parts.as_secs_f64() / whole.as_secs_f64());
    }
    shares.sort_by(f64::total_cmp);
    assert!(
        shares[25] > 0.7,
        "the parts are {:.2} of the whole",
        shares[25]
    );
}

#[test]
fn operations_are_part_of_their_handshake() {
    let (client, server) = one(&plan(Group::SECP256R1), Watch::Operations);
    for record in [&client, &server] {
        let operations: Duration = record.operations.iter().map(|tally| tally.time).sum();
        assert!(operations > Duration::ZERO && operations <= record.time());
    }
}

#[test]
fn s2n_tls_tells_no_operations_and_lacks_what_it_lacks() {
    let s2n = |group| Plan {
        provider: Backend::S2nTls,
        ..plan(group)
    };
    let outcome = measure(
        &[s2n(Group::X25519MLKEM768), s2n(Group::MLKEM768)],
        3,
        || (),
    );
    let sides: Vec<_> = outcome.breakdowns.iter().map(|it| it.side).collect();
    assert_eq!(
        sides,
        [
            crate::report::results::Side::Client,
            crate::report::results::Side::Server
        ]
    );
    for breakdown in &outcome.breakdowns {
        assert_eq!(breakdown.group, Group::X25519MLKEM768);
        assert!(breakdown.operations.is_empty());
        assert!(!breakdown.messages.is_empty());
    }
    assert_eq!(outcome.left_out.len(), 2);
    assert!(
        outcome
            .left_out
            .iter()
            .all(|reason| reason.contains("MLKEM768"))
    );
    let ahead = Plan {
        mode: Mode {
            psk: false,
            shares_ahead: true,
        },
        ..s2n(Group::X25519)
    };
    let refused = measure(&[ahead], 1, || ()).left_out;
    assert!(refused[0].contains("--shares fresh"), "{refused:?}");
}

#[test]
fn every_part_of_a_breakdown_is_measured_as_often_as_the_total() {
    let plans = [plan(Group::X25519), plan(Group::SECP256R1)];
    let mut turns = 0;
    let outcome = measure(&plans, 25, || turns += 1);
    assert_eq!(turns, super::measure::turns(&plans));
    assert_eq!(outcome.breakdowns.len(), 4);
    for breakdown in &outcome.breakdowns {
        assert_eq!(breakdown.total_us.n, 5);
        let parts = breakdown.messages.iter().chain(&breakdown.operations);
        for part in parts {
            assert_eq!(part.us.n, 5, "{}", part.name);
            assert!(part.us.low <= part.us.median && part.us.median <= part.us.high);
        }
    }
}

#[test]
fn a_policy_that_no_library_has_is_no_group_of_s2n_tls() {
    // Once s2n-tls gets the group, the exception in `Plan` can go.
    let exactly = KeyExchange::Exactly(vec![Group::MLKEM768]);
    let certificates = certificates::of_server(Certificate::EcdsaP256, 1).unwrap();
    let (client, _) = plan(Group::MLKEM768).options(&certificates).unwrap();
    assert!(
        Backend::S2nTls
            .client(&client.key_exchange(exactly))
            .is_err()
    );
}
