//! Which group comes out, and by how many round trips (the tables of the design's TLS notes).

use hybriq_tls::{ClientHello, ConfigError, Group, KeyExchange, PerLevel, Side};

use crate::support::{
    CONTENDERS, Contender, HOST, Pair, Slices, exactly, options, options_for, pairings,
};

const X25519MLKEM768: Group = Group::X25519MLKEM768;
const P256MLKEM768: Group = Group::SECP256R1MLKEM768;
const P384MLKEM1024: Group = Group::SECP384R1MLKEM1024;
const X25519: Group = Group::X25519;
const P256: Group = Group::SECP256R1;
const P384: Group = Group::SECP384R1;

fn list(groups: &[Group]) -> KeyExchange {
    KeyExchange::Exactly(groups.to_vec())
}

/// The pairings that have both policies.
fn able<'a>(
    client: &'a KeyExchange,
    server: &'a KeyExchange,
) -> impl Iterator<Item = (&'static Contender, &'static Contender)> + 'a {
    let options = options_for(client.clone(), server.clone());
    pairings().filter(move |(client, server)| {
        (client.client)(&options.0).is_ok() && (server.server)(&options.1).is_ok()
    })
}

/// Runs a case over every pairing that can do it, at least `least` where there are several.
#[track_caller]
fn check(client: &KeyExchange, server: &KeyExchange, least: usize, group: Group, retry: bool) {
    let mut ran = 0;
    for pairing in able(client, server) {
        let options = options_for(client.clone(), server.clone());
        let pair = Pair::of(pairing, &options).complete();
        for end in [&pair.client, &pair.server] {
            let negotiated = end.session.negotiated();
            let found = (negotiated.group, negotiated.hello_retry);
            assert_eq!(
                found,
                (Some(group), retry),
                "{} to {}",
                pairing.0.name,
                pairing.1.name
            );
        }
        ran += 1;
    }
    assert!(
        CONTENDERS.len() < 2 || ran >= least,
        "ran over {ran} pairings only"
    );
}

#[test]
fn every_group_both_have_works_alone() {
    for (client, server) in pairings() {
        let both = client
            .groups
            .iter()
            .filter(|group| server.groups.contains(group));
        for group in both.copied() {
            let options = options_for(exactly(group), exactly(group));
            let pair = Pair::of((client, server), &options).complete();
            assert_eq!(pair.client.session.negotiated().group, Some(group));
            assert_eq!(pair.server.session.negotiated().group, Some(group));
        }
    }
}

/// s2n-tls as a server has named policies only, and each of them accepts more than one group, so
/// the other end is the one that insists.
#[test]
fn every_group_a_default_policy_accepts_works_with_a_client_that_offers_it_alone() {
    let policies = [
        KeyExchange::PreferPostQuantum,
        KeyExchange::RequirePostQuantum,
    ];
    for policy in policies {
        for group in policy.groups() {
            check_rustls_client(group, &policy);
        }
    }
}

fn check_rustls_client(group: Group, policy: &KeyExchange) {
    // s2n-tls does not have MLKEM768.
    let able = |server: &&Contender| group != Group::MLKEM768 || server.groups.contains(&group);
    for server in CONTENDERS.iter().filter(able) {
        let Some(client) = CONTENDERS
            .iter()
            .find(|client| client.groups.contains(&group))
        else {
            continue;
        };
        let options = options_for(exactly(group), policy.clone());
        let pair = Pair::of((client, server), &options).complete();
        assert_eq!(
            pair.server.session.negotiated().group,
            Some(group),
            "{}",
            server.name
        );
    }
}

#[test]
fn a_share_the_server_lacks_is_replaced_by_hello_retry_request() {
    check(
        &KeyExchange::PreferPostQuantum,
        &list(&[P384]),
        4,
        P384,
        true,
    );
    check(
        &list(&[X25519MLKEM768, P256MLKEM768, X25519]),
        &list(&[P256MLKEM768]),
        1,
        P256MLKEM768,
        true,
    );
    check(
        &list(&[X25519MLKEM768, X25519, P384]),
        &list(&[P384]),
        2,
        P384,
        true,
    );
    check(
        &list(&[X25519MLKEM768, P256]),
        &list(&[P256]),
        1,
        P256,
        true,
    );
}

#[test]
fn a_server_that_prefers_post_quantum_asks_a_client_that_sent_a_classical_share() {
    let prefers = KeyExchange::PreferPostQuantum;
    check(
        &list(&[X25519, X25519MLKEM768]),
        &prefers,
        2,
        X25519MLKEM768,
        true,
    );
    check(
        &list(&[P256, X25519, P256MLKEM768]),
        &prefers,
        2,
        P256MLKEM768,
        true,
    );
    check(
        &list(&[X25519, P384MLKEM1024]),
        &prefers,
        2,
        P384MLKEM1024,
        true,
    );
}

#[test]
fn no_hello_retry_request_from_one_post_quantum_group_to_another() {
    let client = list(&[X25519MLKEM768, P384MLKEM1024, X25519]);
    check(
        &client,
        &KeyExchange::PreferPostQuantum,
        2,
        X25519MLKEM768,
        false,
    );
    check(
        &client,
        &list(&[P384MLKEM1024, X25519MLKEM768]),
        1,
        X25519MLKEM768,
        false,
    );
    let client = list(&[P384MLKEM1024, X25519MLKEM768]);
    check(
        &client,
        &KeyExchange::PreferPostQuantum,
        2,
        P384MLKEM1024,
        false,
    );
}

#[test]
fn the_classical_half_of_a_hybrid_share_saves_a_round_trip() {
    check(
        &list(&[X25519MLKEM768, X25519]),
        &KeyExchange::OnlyClassical,
        2,
        X25519,
        false,
    );
    check(
        &list(&[P384MLKEM1024, P384]),
        &list(&[P384]),
        2,
        P384,
        false,
    );
}

#[test]
fn an_exact_list_is_the_servers_order() {
    let client = list(&[X25519MLKEM768, X25519]);
    check(&client, &list(&[X25519, X25519MLKEM768]), 1, X25519, false);
    check(
        &client,
        &list(&[X25519MLKEM768, X25519]),
        1,
        X25519MLKEM768,
        false,
    );
}

#[test]
fn a_classical_peer_connects_under_prefer() {
    let (prefer, classical) = (KeyExchange::PreferPostQuantum, KeyExchange::OnlyClassical);
    check(&classical, &prefer, 4, X25519, false);
    for pairing in pairings() {
        let options = options_for(prefer.clone(), classical.clone());
        let pair = Pair::of(pairing, &options).complete();
        let group = pair.client.session.negotiated().group.expect("a group");
        assert!(!group.is_post_quantum());
    }
}

#[test]
fn peers_that_require_post_quantum_get_it() {
    let require = KeyExchange::RequirePostQuantum;
    check(&require, &require, 4, X25519MLKEM768, false);
    check(
        &require,
        &KeyExchange::PreferPostQuantum,
        4,
        X25519MLKEM768,
        false,
    );
    check(
        &KeyExchange::PreferPostQuantum,
        &require,
        4,
        X25519MLKEM768,
        false,
    );
}

#[test]
fn peers_without_a_common_group_are_refused_with_alert_40_before_any_work() {
    let (require, classical) = (KeyExchange::RequirePostQuantum, KeyExchange::OnlyClassical);
    let cases = [
        (classical.clone(), require.clone(), 4),
        (require, classical, 4),
        (list(&[X25519]), list(&[P384]), 2),
    ];
    for (client, server, least) in cases {
        let mut ran = 0;
        for pairing in able(&client, &server) {
            let mut pair = Pair::of(pairing, &options_for(client.clone(), server.clone()));
            let failure = pair.run(Slices::Whole).expect_err("no common group");
            failure.assert(Side::Server, 40);
            assert_eq!(pair.server.sent, PerLevel::default());
            ran += 1;
        }
        assert!(
            CONTENDERS.len() < 2 || ran >= least,
            "ran over {ran} pairings only"
        );
    }
}

#[test]
fn the_server_name_chooses_the_policy() {
    for pairing in pairings() {
        let (client, server) = options();
        let server = server
            .key_exchange(KeyExchange::RequirePostQuantum)
            .key_exchange_for("Example.TEST", KeyExchange::OnlyClassical);
        let client_provider = (pairing.0.client)(&client).expect("a client");
        let server_provider = (pairing.1.server)(&server).expect("a server");
        assert_eq!(
            server_provider.key_exchange(),
            &KeyExchange::RequirePostQuantum
        );
        let named = server_provider.key_exchange_for(Some(HOST));
        assert_eq!(named, &KeyExchange::OnlyClassical);
        let other = server_provider.key_exchange_for(Some("other.test"));
        assert_eq!(other, &KeyExchange::RequirePostQuantum);

        let pair = Pair::new(&*client_provider, &*server_provider).complete();
        let group = pair.server.session.negotiated().group.expect("a group");
        assert!(!group.is_post_quantum());

        let (classical, _) = options_for(KeyExchange::OnlyClassical, KeyExchange::OnlyClassical);
        let classical = (pairing.0.client)(&classical).expect("a client");
        let failure = Pair::named(&*classical, &*server_provider, "other.test").fail();
        failure.assert(Side::Server, 40);
    }
}

#[test]
fn a_policy_that_a_provider_cannot_do_is_refused_with_what_it_can() {
    for contender in CONTENDERS {
        for policy in [list(&[]), exactly(Group(0x6a6a))] {
            let (client, server) = options_for(policy.clone(), policy);
            for result in [(contender.client)(&client), (contender.server)(&server)] {
                let error = result.err().expect("such a policy");
                assert!(matches!(error, ConfigError::KeyExchange { .. }), "{error}");
                let text = error.to_string();
                assert!(
                    text.contains(contender.name) && text.contains("X25519MLKEM768"),
                    "{text}"
                );
            }
        }
    }
}

#[cfg(all(unix, feature = "s2n-tls"))]
#[test]
fn s2n_tls_refuses_lists_without_a_named_policy() {
    use hybriq_tls::{Backend, Suite};
    for groups in [
        &[X25519][..],
        &[X25519MLKEM768],
        &[Group::MLKEM768],
        &[P384, X25519],
    ] {
        let (client, _) = options_for(list(groups), KeyExchange::OnlyClassical);
        let error = Backend::S2nTls
            .client(&client)
            .err()
            .expect("no such policy");
        let text = error.to_string();
        assert!(text.starts_with("s2n-tls cannot do Exactly(["), "{text}");
        assert!(
            text.contains("use rustls") && !text.contains('\n'),
            "{text}"
        );
    }
    let (client, _) = options();
    let error = Backend::S2nTls
        .client(&client.suites(vec![Suite::ChaCha20Poly1305Sha256]))
        .err();
    assert!(
        matches!(error, Some(ConfigError::Unsupported { .. })),
        "{error:?}"
    );
    // A policy that wants other certificates says so.
    let (_, server) = options_for(list(&[Group::MLKEM1024]), list(&[Group::MLKEM1024]));
    let error = Backend::S2nTls
        .server(&server)
        .err()
        .expect("an ECDSA certificate");
    assert!(error.to_string().contains("cnsa_2"), "{error}");
}

#[test]
fn a_classical_server_leaves_the_next_first_flight_post_quantum() {
    for (client, server) in pairings() {
        let (client_options, server_options) =
            options_for(KeyExchange::PreferPostQuantum, list(&[P384]));
        let client = (client.client)(&client_options).expect("a client");
        let server = (server.server)(&server_options).expect("a server");
        Pair::new(&*client, &*server).complete();
        let mut pair = Pair::new(&*client, &*server);
        pair.client.drive().expect("a ClientHello");
        let (hello, _) = ClientHello::parse(&pair.client.outbox.crypto.initial)
            .expect("well-formed")
            .expect("whole");
        let share = hello.key_shares().first().expect("a share");
        assert_eq!((share.group, share.len), (X25519MLKEM768, 1216));
    }
}

#[test]
fn pure_ml_kem_is_preferred_to_a_classical_share() {
    let offer = list(&[X25519, Group::MLKEM1024]);
    check(
        &offer,
        &KeyExchange::PreferPostQuantum,
        2,
        Group::MLKEM1024,
        true,
    );
}
