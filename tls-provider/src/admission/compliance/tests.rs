use super::*;
use crate::{
    CertificateAlgorithms, CertificateDer, ClientOptions, KeyAlgorithm, SignatureAlgorithm,
    admission::algorithms::Problems,
};

#[test]
fn names_are_read_back() {
    for profile in Profile::ALL {
        assert_eq!(
            profile.name().to_uppercase().parse::<Profile>().ok(),
            Some(profile)
        );
    }
    let error = "cnsa3".parse::<Profile>().expect_err("no profile");
    let text = error.to_string();
    assert!(
        text.starts_with("there is no profile `cnsa3`; use default, cnsa2"),
        "{text}"
    );
    for profile in Profile::ALL {
        assert!(text.contains(profile.name()), "{text}");
    }
}

/// The groups of a policy under a profile.
fn groups(profile: Profile, wanted: &KeyExchange) -> Option<Vec<Group>> {
    Some(policy(profile, wanted).ok()?.groups())
}

#[test]
fn a_profile_narrows_the_groups() {
    use KeyExchange::{Exactly, OnlyClassical, PreferPostQuantum, RequirePostQuantum};
    for profile in Profile::ALL {
        let Some(allowed) = profile.groups() else {
            assert_eq!(
                groups(profile, &OnlyClassical),
                Some(OnlyClassical.groups())
            );
            continue;
        };
        assert_eq!(
            groups(profile, &PreferPostQuantum).as_deref(),
            Some(allowed)
        );
        let required = policy(profile, &RequirePostQuantum).expect("a policy");
        assert!(required.requires_post_quantum(), "{profile}");
        assert_eq!(groups(profile, &OnlyClassical), None, "{profile}: X25519");
        let last = allowed.last().copied().expect("a group");
        assert_eq!(groups(profile, &Exactly(vec![last])), Some(vec![last]));
        let text = policy(profile, &Exactly(vec![Group::X25519, last]));
        let text = text.expect_err("X25519").to_string();
        assert!(text.contains("must not have X25519;") && text.contains(&last.to_string()));
        let text = policy(profile, &Exactly(vec![Group(0x9999), Group::X25519]));
        let text = text.expect_err("two groups").to_string();
        assert!(text.contains("have group 0x9999, X25519;"), "{text}");
    }
}

#[test]
fn a_profile_narrows_the_suites() {
    let chacha = [Suite::ChaCha20Poly1305Sha256];
    for profile in Profile::ALL {
        let allowed = profile.suites().map(<[_]>::to_vec);
        assert_eq!(
            suites(profile, None).ok(),
            Some(allowed.clone()),
            "{profile}"
        );
        let may = allowed.is_none_or(|suites| suites.contains(&chacha[0]));
        assert_eq!(suites(profile, Some(&chacha)).is_ok(), may, "{profile}");
    }
}

#[test]
fn certificates_are_judged_by_key_and_signature() {
    use KeyAlgorithm::{EcdsaP256, Ed25519, MlDsa65, MlDsa87, Rsa, Unknown};
    use SignatureAlgorithm as Signed;

    let judge = |profile: Profile, key, signature| {
        profile.allows_certificate(&CertificateAlgorithms { key, signature })
    };
    let cases = [
        (
            MlDsa87,
            Signed::MlDsa87,
            [true, true, true, true, true, true],
        ),
        (
            MlDsa65,
            Signed::MlDsa65,
            [true, false, true, true, true, true],
        ),
        (
            MlDsa87,
            Signed::EcdsaSha384,
            [true, false, true, true, false, true],
        ),
        (
            EcdsaP256,
            Signed::EcdsaSha256,
            [true, false, true, true, false, true],
        ),
        (
            Ed25519,
            Signed::Ed25519,
            [true, false, false, true, false, false],
        ),
        (
            Rsa { bits: 2048 },
            Signed::RsaSha256,
            [true, false, false, false, false, true],
        ),
        (
            Rsa { bits: 3000 },
            Signed::RsaPss,
            [true, false, true, false, false, true],
        ),
        (
            Rsa { bits: 3072 },
            Signed::RsaSha256,
            [true, false, false, true, false, true],
        ),
        (
            Unknown,
            Signed::Unknown,
            [true, false, false, false, false, false],
        ),
    ];
    for (key, signature, expected) in cases {
        for (profile, expected) in Profile::ALL.into_iter().zip(expected) {
            assert_eq!(
                judge(profile, key, signature),
                expected,
                "{profile}: {key}, {signature}"
            );
        }
    }
}

#[test]
fn a_chain_that_cannot_be_read_is_refused() {
    let chain = [CertificateDer::from(vec![1, 2, 3])];
    let problem = |profile: Profile| profile.problem_of_chain(chain.iter().map(|der| &**der));
    assert_eq!(problem(Profile::Default), None);
    let text = problem(Profile::Bsi).expect("a problem");
    assert!(
        text.starts_with("certificate 0 of the chain cannot be read; the profile `bsi` allows RSA")
    );
}

/// A peer does not send its root, but the signature reveals the size of the root's key.
#[test]
fn a_small_key_of_a_root_is_found_by_its_signature() {
    use rcgen::{CertificateParams, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

    let params = || CertificateParams::new(vec!["example.test".to_owned()]).expect("names");
    let small = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
    let issuer = Issuer::new(params(), small.expect("a key"));
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let leaf = params().signed_by(&key, &issuer).expect("a certificate");
    let problem = |profile: Profile| profile.problem_of_chain([&**leaf.der()]);
    assert_eq!(problem(Profile::Fips140), None);
    let text = problem(Profile::Anssi).expect("a problem");
    assert!(
        text.contains("is signed by an RSA key of 2048 bits"),
        "{text}"
    );
}

#[test]
fn a_profile_of_validated_modules_needs_one() {
    let mut problems = Problems::default();
    let options = ClientOptions::new().profile(Profile::Fips140);
    drop(options.resolved(&mut problems));
    assert_eq!(problems.is_empty(), crate::is_fips());
}
