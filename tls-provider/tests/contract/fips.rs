//! FIPS modules: what providers and handshakes say about them is true with a module and without.
//!
//! `cargo test -p hybriq-tls --features fips,s2n-tls --test contract fips` has one; `.ci/fips` runs it.

use std::time::SystemTime;

use hybriq_tls::{
    Backend, ClientAuth, ClientOptions, ConfigError, ConfigErrors, Group, KeyExchange, Profile,
    ServerOptions, Side, Suite, is_fips,
};

use crate::support::{
    CONTENDERS, Contender, HOST, Pair, exactly, options, options_for, pairings, providers,
};

const FIPS: Profile = Profile::Fips140;

fn under_profile() -> (ClientOptions, ServerOptions) {
    let (client, server) = options();
    (client.profile(FIPS), server.profile(FIPS))
}

/// Returns true if this build has a module, and says so in the log of the test.
fn has_module() -> bool {
    if !is_fips() {
        test_summary::skip("this build has no FIPS module: .ci/fips makes one");
    }
    is_fips()
}

/// Both ends of a handshake say this.
#[track_caller]
fn assert_says(pair: &Pair, wanted: bool) {
    for end in [&pair.client, &pair.server] {
        let negotiated = end.session.negotiated();
        assert_eq!(negotiated.fips, wanted, "{negotiated:?}");
    }
}

fn refusals(contender: &Contender, options: &(ClientOptions, ServerOptions)) -> [ConfigErrors; 2] {
    let backend: Backend = contender.name.parse().expect("a known library");
    let now = SystemTime::now();
    let client = backend.check_client(&options.0, now);
    let server = backend.check_server(&options.1, now);
    [client.expect_err("problems"), server.expect_err("problems")]
}

#[test]
fn the_feature_brings_the_module_and_nothing_else_does() {
    assert_eq!(is_fips(), cfg!(feature = "fips"));
}

#[test]
fn the_profile_asks_for_a_module_and_says_how_to_build_it() {
    for contender in CONTENDERS {
        let options = under_profile();
        let built = [
            (contender.client)(&options.0),
            (contender.server)(&options.1),
        ];
        for built in built {
            match built {
                Ok(provider) => assert!(is_fips() && provider.is_fips(), "{}", contender.name),
                Err(ConfigError::Profile { profile, problem }) => {
                    assert!(!is_fips() && profile == FIPS, "{problem}");
                    assert!(problem.contains("the feature `fips`"), "{problem}");
                }
                Err(error) => panic!("{}: {error}", contender.name),
            }
        }
    }
}

/// X25519 and ChaCha20 may come out of the default options, whatever library runs them.
#[test]
fn a_provider_that_may_choose_something_else_is_not_fips() {
    let defaults = options();
    let mut cases = vec![
        defaults.clone(),
        options_for(KeyExchange::OnlyClassical, KeyExchange::OnlyClassical),
    ];
    let (client, server) = &defaults;
    let server = server.clone().key_exchange(exactly(Group::SECP384R1));
    let named = server.key_exchange_for(HOST, KeyExchange::PreferPostQuantum);
    cases.push((client.clone(), named));
    for case in cases {
        for contender in CONTENDERS {
            let (client, server) = providers((contender, contender), &case);
            assert!(!client.is_fips() && !server.is_fips());
        }
    }
}

#[test]
fn a_handshake_is_fips_if_a_module_did_it_with_approved_algorithms() {
    let hybrid = KeyExchange::PreferPostQuantum;
    for pairing in pairings() {
        let pair = Pair::of(pairing, &options_for(hybrid.clone(), hybrid.clone())).complete();
        assert_says(&pair, is_fips());
        let curve = exactly(Group::SECP384R1);
        let pair = Pair::of(pairing, &options_for(hybrid.clone(), curve)).complete();
        assert_says(&pair, is_fips());
        let classical = KeyExchange::OnlyClassical;
        let pair = Pair::of(pairing, &options_for(classical.clone(), classical)).complete();
        assert_eq!(
            pair.client.session.negotiated().group,
            Some(Group::X25519),
            "not approved alone"
        );
        assert_says(&pair, false);
    }
}

#[cfg(feature = "rustls")]
#[test]
fn a_handshake_with_chacha20_is_not_fips() {
    let chacha = vec![Suite::ChaCha20Poly1305Sha256];
    for server in CONTENDERS {
        let (client, options) = options();
        let client = client.suites(chacha.clone());
        let pair = Pair::of((&CONTENDERS[0], server), &(client, options)).complete();
        assert_says(&pair, false);
    }
}

#[test]
fn ends_under_the_profile_connect_with_each_other() {
    if !has_module() {
        return;
    }
    for pairing in pairings() {
        let (client, server) = under_profile();
        let pair = Pair::of(pairing, &(client.clone(), server.clone())).complete();
        assert_says(&pair, true);
        let negotiated = pair.server.session.negotiated();
        assert_eq!(negotiated.group, Some(Group::X25519MLKEM768));
        assert_eq!(negotiated.suite, Some(Suite::Aes128GcmSha256));
        // And with peers that know nothing of it.
        let (other, _) = options_for(exactly(Group::SECP384R1), KeyExchange::OnlyClassical);
        let authority = crate::support::Authority::new("root");
        let strict = ServerOptions::new(authority.issue(&[HOST]))
            .alpn(crate::support::ALPN)
            .profile(FIPS)
            .client_auth(ClientAuth::None);
        let other = other.trust(authority.trust());
        let pair = Pair::of(pairing, &(other, strict)).complete();
        assert_says(&pair, true);
    }
}

/// Every approved group of rustls, alone at both ends, in the module.
#[cfg(feature = "rustls")]
#[test]
fn every_group_of_the_profile_works_in_the_module() {
    if !has_module() {
        return;
    }
    for group in FIPS.groups().expect("a list") {
        let (client, server) = under_profile();
        let options = (
            client.key_exchange(exactly(*group)),
            server.key_exchange(exactly(*group)),
        );
        let (client, server) = providers((&CONTENDERS[0], &CONTENDERS[0]), &options);
        assert!(client.is_fips() && server.is_fips(), "{group}");
        assert_says(&Pair::new(&*client, &*server).complete(), true);
    }
}

#[test]
fn peers_without_an_approved_group_or_suite_are_refused() {
    if !has_module() {
        return;
    }
    for (client_of, server_of) in pairings() {
        let (client, server) = under_profile();
        let (other, another) = options();
        let x25519 = exactly(Group::X25519);
        let chacha = vec![Suite::ChaCha20Poly1305Sha256];
        // s2n-tls has neither alone; the other end may be anything.
        if client_of.groups.contains(&Group::X25519) {
            for (other, alert) in [
                (other.clone().key_exchange(x25519.clone()), 40),
                (other.suites(chacha.clone()), 71),
            ] {
                let failure = Pair::of((client_of, server_of), &(other, server.clone())).fail();
                failure.assert(Side::Server, alert);
            }
        }
        if server_of.groups.contains(&Group::X25519) {
            for another in [another.clone().key_exchange(x25519), another.suites(chacha)] {
                let failure = Pair::of((client_of, server_of), &(client.clone(), another)).fail();
                failure.assert(Side::Server, 40);
            }
        }
    }
}

/// With a module or without: a group or suite that is not approved is named.
#[test]
fn options_that_are_not_approved_are_errors() {
    for contender in CONTENDERS {
        let (client, server) = under_profile();
        for policy in [KeyExchange::OnlyClassical, exactly(Group::X25519)] {
            let options = (
                client.clone().key_exchange(policy.clone()),
                server.clone().key_exchange(policy),
            );
            for errors in refusals(contender, &options) {
                let text = errors.to_string();
                assert!(
                    text.contains("must not have X25519"),
                    "{}: {text}",
                    contender.name
                );
            }
        }
        let chacha = vec![Suite::Aes128GcmSha256, Suite::ChaCha20Poly1305Sha256];
        let options = (client.suites(chacha.clone()), server.suites(chacha));
        for errors in refusals(contender, &options) {
            let text = errors.to_string();
            assert!(
                text.contains("TLS_CHACHA20_POLY1305_SHA256 is not allowed"),
                "{}: {text}",
                contender.name
            );
        }
    }
}
