//! Profiles: what complies connects, what does not is refused, at either end and with each library.

use hybriq_tls::{
    CertificateAlgorithms, CertificateDer, ClientAuth, ClientOptions, ConfigError, Group, Identity,
    KeyAlgorithm, KeyExchange, PrivateKeyDer, Profile, Provider, ServerOptions, Side,
    SignatureScheme, Suite, Tickets, Trust,
};
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair, SignatureAlgorithm};

use crate::support::{ALPN, CONTENDERS, Contender, HOST, Pair, exactly};

/// A root and a certificate that it signed, with keys of these kinds.
struct Chain {
    root: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Chain {
    fn new(root: &'static SignatureAlgorithm, leaf: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(root).expect("a key");
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![
            rcgen::KeyUsagePurpose::KeyCertSign,
            rcgen::KeyUsagePurpose::DigitalSignature,
        ];
        let root = params.self_signed(&key).expect("a root").der().clone();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate_for(leaf).expect("a key");
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            rcgen::ExtendedKeyUsagePurpose::ServerAuth,
            rcgen::ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let leaf = params
            .signed_by(&key, &issuer)
            .expect("a leaf")
            .der()
            .clone();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Self { root, leaf, key }
    }

    fn identity(&self) -> Identity {
        Identity::from_der(vec![self.leaf.clone()], self.key.clone_key())
    }

    fn trust(&self) -> Trust {
        Trust::roots_der([self.root.clone()])
    }

    fn client(&self) -> ClientOptions {
        ClientOptions::new().alpn(ALPN).trust(self.trust())
    }

    fn server(&self) -> ServerOptions {
        ServerOptions::new(self.identity()).alpn(ALPN)
    }
}

/// Profiles that a build without a validated module has, each with a key that complies and some that
/// do not.
fn cases() -> [(Profile, Chain, Vec<Chain>); 4] {
    use rcgen::{
        PKCS_ECDSA_P256_SHA256 as P256, PKCS_ED25519 as ED25519, PKCS_ML_DSA_44 as ML_DSA_44,
        PKCS_ML_DSA_65 as ML_DSA_65, PKCS_ML_DSA_87 as ML_DSA_87,
    };
    [
        (
            Profile::Cnsa2,
            Chain::new(&ML_DSA_87, &ML_DSA_87),
            vec![Chain::new(&P256, &P256), Chain::new(&ML_DSA_65, &ML_DSA_87)],
        ),
        (
            Profile::Bsi,
            Chain::new(&P256, &P256),
            vec![Chain::new(&P256, &ED25519), Chain::new(&ED25519, &P256)],
        ),
        (
            Profile::Anssi,
            Chain::new(&ED25519, &P256),
            vec![Chain::new(&P256, &ML_DSA_44)],
        ),
        (
            Profile::Asd,
            Chain::new(&ML_DSA_87, &ML_DSA_87),
            vec![Chain::new(&P256, &ML_DSA_65)],
        ),
    ]
}

/// Libraries that can keep to a profile.
fn able(profile: Profile) -> impl Iterator<Item = &'static Contender> {
    let pure = profile.groups() == Some(&[Group::MLKEM1024]);
    CONTENDERS
        .iter()
        .filter(move |it| it.name == "rustls" || pure && it.has_ml_dsa())
}

fn rustls() -> &'static Contender {
    CONTENDERS
        .iter()
        .find(|it| it.name == "rustls")
        .expect("rustls")
}

#[test]
fn ends_that_comply_connect() {
    for (profile, chain, _) in cases() {
        for (client_of, server_of) in
            able(profile).flat_map(|it| able(profile).map(move |of| (it, of)))
        {
            let client = chain.client().profile(profile).identity(chain.identity());
            let server = chain.server().profile(profile);
            let server = server.client_auth(ClientAuth::Required(chain.trust()));
            let done = Pair::of((client_of, server_of), &(client, server)).complete();
            for end in [&done.client, &done.server] {
                let negotiated = end.session.negotiated();
                let (group, suite) = (negotiated.group.expect("a group"), negotiated.suite);
                assert!(
                    profile
                        .groups()
                        .is_none_or(|allowed| allowed.contains(&group))
                );
                let key = CertificateAlgorithms::of(&chain.leaf).expect("a leaf").key;
                let scheme = match key {
                    KeyAlgorithm::MlDsa87 => SignatureScheme::MLDSA87,
                    _ => SignatureScheme::ECDSA_SECP256R1_SHA256,
                };
                assert_eq!(negotiated.signature_scheme, Some(scheme));
                assert_eq!(negotiated.client_signature_scheme, Some(scheme));
                let suite = suite.expect("a suite");
                assert!(
                    profile
                        .suites()
                        .is_none_or(|allowed| allowed.contains(&suite))
                );
            }
        }
    }
}

#[test]
fn peers_without_a_group_of_the_profile_are_refused() {
    for (profile, chain, _) in cases() {
        for strict in able(profile) {
            for group in [Group::X25519, Group::MLKEM768] {
                let client = chain.client().key_exchange(exactly(group));
                let server = chain.server().profile(profile);
                let failure = Pair::of((rustls(), strict), &(client, server)).fail();
                failure.assert(Side::Server, 40);
                let groups = failure.error.groups().expect("both lists");
                assert_eq!(Some(&*groups.ours), profile.groups());
                assert_eq!(groups.peers, [group]);

                let client = chain.client().profile(profile);
                let server = chain.server().key_exchange(exactly(group));
                let failure = Pair::of((strict, rustls()), &(client, server)).fail();
                failure.assert(Side::Server, 40);
            }
        }
    }
}

#[test]
fn peers_without_a_suite_of_the_profile_are_refused() {
    let chacha = vec![Suite::ChaCha20Poly1305Sha256];
    for (profile, chain, _) in cases() {
        if profile
            .suites()
            .is_none_or(|allowed| allowed.contains(&chacha[0]))
        {
            continue;
        }
        for strict in able(profile) {
            let client = chain.client().suites(chacha.clone());
            let server = chain.server().profile(profile);
            let failure = Pair::of((rustls(), strict), &(client, server)).fail();
            failure.assert(Side::Server, 71);
            assert_names_both(&failure.error.detail);

            let client = chain.client().profile(profile);
            let server = chain.server().suites(chacha.clone());
            let failure = Pair::of((strict, rustls()), &(client, server)).fail();
            failure.assert(Side::Server, 40);
            assert_names_both(&failure.error.detail);
        }
    }
}

#[track_caller]
fn assert_names_both(detail: &str) {
    for name in ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"] {
        assert!(detail.contains(name), "{detail}");
    }
    assert!(detail.starts_with("no cipher suite in common"), "{detail}");
}

/// A ticket of a server without the profile begins no session under it, though both know the same keys.
#[test]
fn a_session_that_began_without_the_profile_is_not_resumed() {
    for (profile, chain, _) in cases() {
        for strict in able(profile) {
            let tickets = Tickets::new();
            let suite = vec![Suite::Aes256GcmSha384];
            let group = *profile.groups().and_then(<[_]>::first).expect("a group");
            let client = (rustls().client)(&chain.client().suites(suite)).expect("a client");
            let server = |profile| {
                let options = chain.server().tickets(tickets.clone()).profile(profile);
                let options = match profile {
                    Profile::Default if strict.name == "rustls" => {
                        options.key_exchange(exactly(group))
                    }
                    _ => options,
                };
                (strict.server)(&options).expect("a server")
            };
            let (open, bound) = (server(Profile::Default), server(profile));
            let resumes = |server: &dyn Provider| {
                let done = Pair::new(&*client, server).complete();
                done.server.session.negotiated().resumed
            };
            println!("{profile} with {}", strict.name);
            assert!(!resumes(&*open));
            assert!(resumes(&*open), "the tickets of one server");
            assert!(!resumes(&*bound), "a ticket from before");
            assert!(resumes(&*bound), "a ticket of the profile");
            assert!(!resumes(&*open), "a ticket of the profile elsewhere");
        }
    }
}

#[test]
fn peers_with_a_certificate_that_the_profile_forbids_are_refused() {
    for (profile, chain, forbidden) in cases() {
        for strict in able(profile) {
            for other in &forbidden {
                let client = other.client().profile(profile);
                let failure = Pair::of((strict, rustls()), &(client, other.server())).fail();
                assert_refused(&failure, Side::Client, (profile, strict), other);

                let client = chain.client().identity(other.identity());
                let server = chain.server().profile(profile);
                let server = server.client_auth(ClientAuth::Required(other.trust()));
                let failure = Pair::of((rustls(), strict), &(client, server)).fail();
                assert_refused(&failure, Side::Server, (profile, strict), other);
            }
        }
    }
}

/// The end with the profile refuses, unless s2n-tls announces too few signatures to be shown a certificate.
#[track_caller]
fn assert_refused(
    failure: &crate::support::Failure,
    side: Side,
    (profile, strict): (Profile, &Contender),
    shown: &Chain,
) {
    let detail = &failure.error.detail;
    let key = CertificateAlgorithms::of(&shown.leaf).expect("a leaf").key;
    let is_announced = key == KeyAlgorithm::MlDsa87;
    let expected = if strict.name == "rustls" {
        failure.assert(side, 43);
        format!("the profile `{profile}` allows")
    } else if is_announced {
        failure.assert(side, 43);
        format!("under the profile `{profile}` s2n-tls accepts ML-DSA-87")
    } else if side.is_server() {
        failure.assert(side, 116);
        format!("does not comply: under the profile `{profile}` s2n-tls accepts ML-DSA-87")
    } else {
        failure.assert(Side::Server, 40);
        let scheme = match key {
            KeyAlgorithm::MlDsa65 => "mldsa65",
            _ => "ecdsa_secp256r1_sha256",
        };
        format!(
            "no signature scheme in common: the server signs by {scheme}, the client verifies mldsa87; "
        )
    };
    assert!(detail.contains(&expected), "{detail}");
}

/// Each library says it in the same way.
#[test]
fn servers_that_a_profile_of_their_client_cannot_verify_name_both_lists() {
    let (profile, _, forbidden) = cases().into_iter().next().expect("a case");
    for server in CONTENDERS {
        for client in able(profile).filter(|it| it.name != "rustls") {
            let options = (
                forbidden[0].client().profile(profile),
                forbidden[0].server(),
            );
            let failure = Pair::of((client, server), &options).fail();
            assert_refused(&failure, Side::Client, (profile, client), &forbidden[0]);
        }
    }
}

#[test]
fn options_that_a_profile_forbids_are_errors_of_the_configuration() {
    for (profile, chain, forbidden) in cases() {
        for strict in able(profile) {
            let server = chain.server().profile(profile);
            let client = chain.client().profile(profile);
            let servers = [
                forbidden[0].server().profile(profile),
                server.clone().key_exchange(KeyExchange::OnlyClassical),
                server
                    .clone()
                    .key_exchange_for(HOST, exactly(Group::X25519)),
                server.clone().accept_early_data(),
            ];
            for options in servers {
                let error = (strict.server)(&options).err();
                if matches!(error, Some(ConfigError::Unsupported { .. })) {
                    continue; // s2n-tls has no 0-RTT at all.
                }
                is_profile(error, profile);
            }
            let clients = [
                client.clone().identity(forbidden[0].identity()),
                client.clone().key_exchange(exactly(Group::X25519)),
                client.session_store(std::sync::Arc::new(hybriq_tls::MemorySessions::new())),
            ];
            for options in clients {
                let error = (strict.client)(&options).err();
                if matches!(error, Some(ConfigError::Unsupported { .. })) {
                    continue; // rustls takes no store at all.
                }
                is_profile(error, profile);
            }
        }
    }
}

#[track_caller]
fn is_profile(error: Option<ConfigError>, wanted: Profile) {
    match error {
        Some(ConfigError::Profile { profile, problem }) => {
            assert_eq!(profile, wanted);
            assert!(!problem.is_empty());
        }
        other => panic!("{wanted}: {other:?}"),
    }
}

/// All problems are found at once.
#[test]
fn a_check_names_everything_that_a_profile_forbids() {
    let (profile, _, forbidden) = cases().into_iter().next().expect("a case");
    let options = forbidden[0]
        .server()
        .profile(profile)
        .key_exchange(KeyExchange::OnlyClassical)
        .suites(vec![Suite::ChaCha20Poly1305Sha256])
        .accept_early_data();
    let now = std::time::SystemTime::now();
    let problems = hybriq_tls::Backend::Rustls.check_server(&options, now);
    let problems = problems.expect_err("problems");
    let of_profile = problems
        .iter()
        .filter(|it| matches!(it, ConfigError::Profile { .. }));
    assert_eq!(of_profile.count(), 4, "{problems}");
    let text = problems.to_string();
    for part in ["ECDSA P-256 key", "X25519", "TLS_CHACHA20", "0-RTT"] {
        assert!(text.contains(part), "{text}");
    }
}

#[cfg(all(unix, feature = "s2n-tls"))]
#[test]
fn a_library_that_cannot_keep_to_a_profile_says_so() {
    let (profile, chain, _) = cases().into_iter().nth(1).expect("a case");
    let options = chain.server().profile(profile);
    let backend = hybriq_tls::Backend::S2nTls;
    let now = std::time::SystemTime::now();
    let problems = backend.check_server(&options, now).expect_err("a problem");
    assert_eq!(problems.iter().count(), 1, "{problems}");
    let error = backend.server(&options).err().expect("an error");
    let text = error.to_string();
    is_profile(Some(error), profile);
    assert_eq!(problems.to_string(), text);
    assert!(
        text.contains("s2n-tls has no policy with exactly"),
        "{text}"
    );
}
