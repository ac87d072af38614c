//! Options of servers and clients, checked without a connection.

use std::time::{Duration, SystemTime};

use hybriq_tls::{
    Backend, ClientAuth, ClientOptions, ConfigError, ConfigErrors, Group, Identity, KeyExchange,
    KeyLog, PrivateKeyDer, ServerOptions, Trust,
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
                matches!(error.first(), ConfigError::Validity { certificate: 1, .. }),
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
        assert!(matches!(error.first(), ConfigError::Identity(_)), "{error}");
        let error = backend.check_server(&groups, now()).expect_err("no group");
        assert!(
            matches!(error.first(), ConfigError::KeyExchange { .. }),
            "{error}"
        );
    }
}

/// An identity with the key of another certificate.
fn mismatch(authority: &Authority) -> Identity {
    let (certificate, _) = authority.issue_der(&[HOST]);
    let (_, other_key) = authority.issue_der(&[HOST]);
    Identity::from_der(vec![certificate], other_key)
}

fn no_directory() -> KeyLog {
    KeyLog::File("/no/such/directory/keys.log".into())
}

/// Kinds of the problems. Asserts that each text has a remedy and stands in the text of all.
fn kinds(problems: &ConfigErrors) -> Vec<&'static str> {
    let all = problems.to_string();
    let kind = |error: &ConfigError| {
        let text = error.to_string();
        assert!(text.contains(';') && all.contains(&text), "{text} in {all}");
        match error {
            ConfigError::Identity(_) => "identity",
            ConfigError::Validity { .. } => "validity",
            ConfigError::Roots(_) => "roots",
            ConfigError::KeyExchange { .. } => "groups",
            ConfigError::Write { .. } => "key log",
            ConfigError::Unsupported { .. } => "unsupported",
            other => panic!("{other}"),
        }
    };
    let mut kinds: Vec<_> = problems.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds
}

#[test]
fn every_problem_of_a_server_is_reported() {
    let authority = Authority::new("root");
    let options = ServerOptions::new(mismatch(&authority))
        .add_identity(valid(&authority, 2020, 2025))
        .add_identity(Identity::from_der(
            vec![vec![1, 2, 3].into()],
            PrivateKeyDer::Pkcs8(vec![4, 5, 6].into()),
        ))
        .alpn([""])
        .key_exchange_for("a.test", KeyExchange::Exactly(vec![Group(0x6399)]))
        .key_exchange_for("b.test", KeyExchange::Exactly(vec![Group(0x6399)]))
        .client_auth(ClientAuth::Required(Trust::roots_der([])))
        .key_log(no_directory());
    for backend in backends() {
        let problems = backend.check_server(&options, now()).expect_err("problems");
        assert_eq!(
            kinds(&problems),
            [
                "groups",
                "identity",
                "identity",
                "key log",
                "roots",
                "unsupported",
                "validity"
            ],
            "{backend}: {problems}"
        );
        let text = problems.to_string();
        assert!(text.starts_with("7 problems:\n1. "), "{text}");
        for position in [
            "certificate 0: ",
            "certificate 1 expired",
            "certificate 2: ",
        ] {
            assert!(text.contains(position), "{position} in {text}");
        }
    }
}

/// A list that no library can do is told in the same way by each, with a profile or without.
#[test]
fn a_list_with_a_group_twice_or_without_any_is_a_problem() {
    use hybriq_tls::Profile;
    let authority = Authority::new("root");
    let twice = |group| (vec![group, group], format!("the list has {group} twice"));
    let empty = (Vec::new(), "the list of groups is empty".to_owned());
    let cases = [
        (Profile::Default, twice(Group::X25519)),
        (Profile::Default, empty.clone()),
        (Profile::Cnsa2, twice(Group::MLKEM1024)),
        (Profile::Cnsa2, empty),
    ];
    for (profile, (groups, expected)) in cases {
        let policy = KeyExchange::Exactly(groups);
        let client = ClientOptions::new().trust(authority.trust());
        let client = client.key_exchange(policy.clone()).profile(profile);
        let server = ServerOptions::new(authority.issue(&[HOST]));
        let by_name = server.clone().key_exchange_for(HOST, policy.clone());
        let servers = [server.key_exchange(policy), by_name];
        for backend in backends() {
            if cfg!(feature = "fips") && profile == Profile::Cnsa2 && backend != Backend::Rustls {
                continue; // It has no ML-DSA then, and says so first.
            }
            let mut found = vec![backend.check_client(&client, now()).expect_err("a problem")];
            found.push(backend.client(&client).err().expect("an error").into());
            for server in &servers {
                found.push(backend.check_server(server, now()).expect_err("a problem"));
                found.push(backend.server(server).err().expect("an error").into());
            }
            for error in found {
                assert_eq!(kinds(&error), ["groups"], "{backend} {profile}: {error}");
                assert!(error.to_string().contains(&expected), "{backend}: {error}");
            }
        }
    }
}

#[test]
fn every_problem_of_a_client_is_reported() {
    let authority = Authority::new("root");
    let good = ClientOptions::new().trust(authority.trust());
    let bad = good
        .clone()
        .identity(mismatch(&authority))
        .suites(Vec::new())
        .key_exchange(KeyExchange::Exactly(vec![Group(0x6399)]))
        .trust(Trust::roots_der([]))
        .key_log(no_directory());
    let expired = good.clone().identity(valid(&authority, 2020, 2025));
    for backend in backends() {
        backend.check_client(&good, now()).expect("good options");
        let problems = backend.check_client(&bad, now()).expect_err("problems");
        let found = kinds(&problems);
        for expected in ["groups", "identity", "key log", "roots"] {
            assert!(found.contains(&expected), "{backend}: {problems}");
        }
        let problems = backend
            .check_client(&expired, now())
            .expect_err("a problem");
        assert_eq!(kinds(&problems), ["validity"]);
        assert_eq!(problems.to_string(), problems.first().to_string());
    }
}

#[cfg(feature = "rustls")]
#[test]
fn a_revocation_list_that_cannot_be_read_is_reported() {
    let authority = Authority::new("root");
    let trust = authority.trust().revocation_lists([vec![1, 2, 3].into()]);
    let options = ClientOptions::new().trust(trust);
    let problems = Backend::Rustls
        .check_client(&options, now())
        .expect_err("a problem");
    assert_eq!(kinds(&problems), ["roots"]);
    assert!(problems.to_string().contains("revocation list"));
}
