//! Options of servers, checked without serving.

use std::time::{Duration, SystemTime};

use hybriq_tls::{
    Backend, ConfigError, Group, Identity, KeyExchange, PrivateKeyDer, ServerOptions,
};

use crate::support::{Authority, CONTENDERS, HOST};

fn backends() -> impl Iterator<Item = Backend> {
    CONTENDERS.iter().map(|it| it.name.parse().expect("a name"))
}

fn valid(authority: &Authority, from: i32, until: i32) -> Identity {
    let (certificate, key) = authority.issue_with(&[HOST], |params| {
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
    });
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Identity::from_der(vec![certificate.der().clone()], key)
}

/// The first hours of 2026.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + 3600)
}

#[test]
fn good_options_pass() {
    let authority = Authority::new("root");
    for backend in backends() {
        let options = ServerOptions::new(valid(&authority, 2025, 2027))
            .add_identity(authority.issue(&["other.test"]));
        backend.check_server(&options, now()).expect("good options");
    }
}

#[test]
fn a_certificate_out_of_its_time_is_reported() {
    let authority = Authority::new("root");
    let good = valid(&authority, 2025, 2027);
    for backend in backends() {
        for (identity, expected) in [
            (valid(&authority, 2020, 2025), "expired 365 days ago"),
            (valid(&authority, 2027, 2028), "is not valid before"),
        ] {
            let options = ServerOptions::new(good.clone()).add_identity(identity);
            let error = backend
                .check_server(&options, now())
                .expect_err("a problem");
            assert!(
                matches!(error, ConfigError::Validity { certificate: 1, .. }),
                "{error}"
            );
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}

#[test]
fn whatever_keeps_a_provider_from_being_built_is_reported() {
    let authority = Authority::new("root");
    let (certificate, _) = authority.issue_der(&[HOST]);
    let (_, other_key) = authority.issue_der(&[HOST]);
    let mismatch = ServerOptions::new(Identity::from_der(vec![certificate], other_key));
    let groups = ServerOptions::new(valid(&authority, 2025, 2027))
        .key_exchange(KeyExchange::Exactly(vec![Group(0x6399)]));
    for backend in backends() {
        let error = backend
            .check_server(&mismatch, now())
            .expect_err("a mismatch");
        assert!(matches!(error, ConfigError::Identity(_)), "{error}");
        let error = backend.check_server(&groups, now()).expect_err("no group");
        assert!(matches!(error, ConfigError::KeyExchange { .. }), "{error}");
    }
}
