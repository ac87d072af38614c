//! Identities: which certificates each end accepts.

use std::path::PathBuf;
#[cfg(feature = "rustls")]
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use hybriq_tls::{
    Alert, Backend, ClientAuth, ClientOptions, ConfigError, Identity, ServerOptions, Side, Trust,
};

#[cfg(feature = "rustls")]
use crate::support::providers;
use crate::support::{
    ALPN, Authority, CONTENDERS, HOST, Pair, Slices, ocsp_response, options, pairings,
};

/// An identity whose certificate has this serial number.
fn with_serial(authority: &Authority, serial: u64) -> Identity {
    let (certificate, key) =
        authority.issue_with(&[HOST], |params| params.serial_number = Some(serial.into()));
    let key = hybriq_tls::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Identity::from_der(vec![certificate.der().clone()], key)
}

/// The client of rustls asks for it and shows it to verifiers.
#[cfg(feature = "rustls")]
#[test]
fn a_stapled_response_reaches_the_client() {
    let authority = Authority::new("root");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let trust = authority
        .trust()
        .also(move |peer: &hybriq_tls::PeerChain<'_>| {
            *notes.lock().expect("notes") = peer.ocsp_response.to_vec();
            Ok(())
        });
    let client = ClientOptions::new().alpn(ALPN).trust(trust);
    let plain = with_serial(&authority, 7);
    let response = ocsp_response(&[7], 0x80);
    let stapled = plain.clone().with_ocsp_response(&response);
    let stapled = stapled.expect("a good response");
    for contender in CONTENDERS {
        for (identity, expected) in [(&plain, &[][..]), (&stapled, &response)] {
            let server = ServerOptions::new(identity.clone()).alpn(ALPN);
            let options = (client.clone(), server);
            let (client, server) = providers((&CONTENDERS[0], contender), &options);
            Pair::new(&*client, &*server).complete();
            assert_eq!(*seen.lock().expect("notes"), expected);
        }
    }
}

#[test]
fn a_response_that_does_not_speak_for_the_certificate_is_refused() {
    let authority = Authority::new("root");
    let good = ocsp_response(&[7], 0x80);
    let mut refused = good.clone();
    // `tryLater` in place of an answer.
    refused[6] = 3;
    let long = [&good[..], &vec![0; 40_000]].concat();
    let revoked = ocsp_response(&[7], 0xa1);
    let other = ocsp_response(&[8], 0x80);
    let whole = good.len() - 1;
    for (response, problem) in [
        (&b"<html>"[..], "is no OCSP response in DER; give"),
        (&good[..whole], "is no OCSP response in DER; give"),
        (&[], "is no OCSP response in DER; give"),
        (&refused, "refused to answer (status 3); ask"),
        (&revoked, "revoked or unknown; get"),
        (&other, "about another certificate; ask"),
        (&long, "at most 32768 are sent; ask"),
    ] {
        let error = with_serial(&authority, 7).with_ocsp_response(response);
        let error = error.expect_err("unusable");
        assert!(matches!(error, ConfigError::Ocsp(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(problem) && !text.contains('\n'), "{text}");
    }
    let folder = std::env::temp_dir();
    let path = folder.join(format!("hybriq-ocsp-{}", std::process::id()));
    let read = || with_serial(&authority, 7).with_ocsp_file(&path);
    let text = |error: ConfigError| error.to_string();
    assert!(text(read().expect_err("no file")).contains("cannot read"));
    std::fs::write(&path, "garbage").expect("a file");
    let name = path.display().to_string();
    assert!(text(read().expect_err("garbage")).contains(&name));
    std::fs::write(&path, &good).expect("a file");
    assert!(read().is_ok());
    std::fs::remove_file(&path).expect("a file");
    // However they are broken.
    let identity = with_serial(&authority, 7);
    for at in 0..good.len() {
        let mut broken = good.clone();
        broken[at] ^= 0x81;
        let _ = identity.clone().with_ocsp_response(&broken[..=at]);
        let _ = identity.clone().with_ocsp_response(broken);
    }
}

/// Proves: rfc9001 4.4 server-is-authenticated
#[test]
fn an_unknown_authority_is_alert_48() {
    for pairing in pairings() {
        let (client, server) = options();
        let stranger = Authority::new("stranger").trust();
        let failure = Pair::of(pairing, &(client.trust(stranger), server)).fail();
        failure.assert(Side::Client, 48);
    }
}

#[test]
fn the_system_store_does_not_know_a_test_authority() {
    for contender in CONTENDERS {
        let (client, server) = options();
        let client = client.trust(Trust::system());
        // A machine without any roots says so when the provider is built.
        if let Ok(client) = (contender.client)(&client) {
            let server = (contender.server)(&server).expect("a server");
            Pair::new(&*client, &*server)
                .fail()
                .assert(Side::Client, 48);
        }
    }
}

#[cfg(feature = "platform-verifier")]
#[test]
fn the_platform_judges_servers_and_nothing_else() {
    let (client, server) = options();
    let platform = || client.clone().trust(Trust::platform());
    // A machine without any roots says so when the provider is built.
    if let Ok(client) = Backend::Rustls.client(&platform()) {
        let server = Backend::Rustls.server(&server).expect("a server");
        Pair::new(&*client, &*server)
            .fail()
            .assert(Side::Client, 48);
    }
    let lists = Trust::platform().revocation_lists([vec![].into()]);
    assert!(Backend::Rustls.client(&client.trust(lists)).is_err());
    let server = server.client_auth(ClientAuth::Required(Trust::platform()));
    assert!(Backend::Rustls.server(&server).is_err());
}

#[cfg(feature = "rustls")]
#[test]
fn a_ca_certificate_shown_as_ones_own_is_told_with_the_remedy() {
    let authority = Authority::new("root");
    let (client, server) = (
        ClientOptions::new().alpn(ALPN).trust(authority.trust()),
        ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN),
    );
    let shown_by_server = (
        client.clone(),
        ServerOptions::new(authority.as_identity()).alpn(ALPN),
    );
    let shown_by_client = (
        client.identity(authority.as_identity()),
        server.client_auth(ClientAuth::Required(authority.trust())),
    );
    for (options, side, whose) in [
        (shown_by_server, Side::Client, "the server's"),
        (shown_by_client, Side::Server, "the client's"),
    ] {
        let client = Backend::Rustls.client(&options.0).expect("a client");
        let server = Backend::Rustls.server(&options.1).expect("a server");
        let failure = Pair::new(&*client, &*server).fail();
        assert_eq!(failure.side, side, "{}", failure.error);
        let detail = failure.error.detail;
        assert!(
            detail.starts_with(&format!("{whose} certificate is a CA certificate; ")),
            "{detail}"
        );
        assert!(
            detail.contains("-addext basicConstraints=critical,CA:FALSE"),
            "{detail}"
        );
    }
}

/// Proves: rfc9001 4.4 server-is-authenticated
#[test]
fn a_certificate_for_another_name_is_alert_42() {
    for (client, server) in pairings() {
        let (client_options, server_options) = options();
        let client = (client.client)(&client_options).expect("a client");
        let server = (server.server)(&server_options).expect("a server");
        for name in ["wrong.test", "sub.example.test", "127.0.0.1"] {
            Pair::named(&*client, &*server, name)
                .fail()
                .assert(Side::Client, 42);
        }
    }
}

#[test]
fn an_address_is_verified_and_not_sent_as_server_name() {
    let authority = Authority::new("root");
    let identity = authority.issue(&["127.0.0.1", "::1"]);
    for (client, server) in pairings() {
        let client_options = ClientOptions::new().alpn(ALPN).trust(authority.trust());
        let client = (client.client)(&client_options).expect("a client");
        let server =
            (server.server)(&ServerOptions::new(identity.clone()).alpn(ALPN)).expect("a server");
        for name in ["127.0.0.1", "::1", "0:0::1"] {
            let pair = Pair::named(&*client, &*server, name).complete();
            assert_eq!(pair.client.session.negotiated().server_name, None);
            assert_eq!(pair.server.session.negotiated().server_name, None);
        }
        Pair::named(&*client, &*server, "127.0.0.2")
            .fail()
            .assert(Side::Client, 42);
        Pair::named(&*client, &*server, HOST)
            .fail()
            .assert(Side::Client, 42);
    }
}

#[test]
fn the_server_name_selects_the_certificate() {
    let authority = Authority::new("root");
    let names: [&[&str]; 3] = [&[HOST], &["other.test", "third.test"], &["*.wild.test"]];
    let identities = names.map(|names| authority.issue(names));
    let [first, second, third] = identities.clone();
    let server_options = ServerOptions::new(first)
        .add_identity(second)
        .add_identity(third)
        .alpn(ALPN);
    for (client, server) in pairings() {
        let client_options = ClientOptions::new().alpn(ALPN).trust(authority.trust());
        let careless = ClientOptions::new()
            .alpn(ALPN)
            .trust(Trust::dangerously_accept_any_certificate());
        let careful = (client.client)(&client_options).expect("a client");
        let careless = (client.client)(&careless).expect("a client");
        let server = (server.server)(&server_options).expect("a server");
        for (name, expected) in [
            (HOST, 0),
            ("other.test", 1),
            ("THIRD.test", 1),
            ("a.wild.test", 2),
        ] {
            let pair = Pair::named(&*careful, &*server, name).complete();
            let certificates = pair.client.session.peer_certificates();
            assert_eq!(
                certificates.first(),
                identities[expected].certificates().first(),
                "{name}"
            );
        }
        // If no name matches, the first certificate is shown and the client decides.
        Pair::named(&*careful, &*server, "unknown.test")
            .fail()
            .assert(Side::Client, 42);
        Pair::named(&*careless, &*server, "unknown.test").complete();
    }
}

#[test]
fn accepting_any_certificate_still_verifies_the_handshake_signature() {
    const CERTIFICATE_VERIFY: u8 = 15;
    for pairing in pairings() {
        let (client, server) = options();
        let options = (
            client.trust(Trust::dangerously_accept_any_certificate()),
            server,
        );
        Pair::of(pairing, &options).complete();

        let mut pair = Pair::of(pairing, &options);
        pair.turn(Slices::Whole).expect("a server flight");
        let flight = pair.client.inbox.handshake.split();
        let mut before_finished = BytesMut::new();
        let mut rest = &flight[..];
        while let [kind, high, middle, low, ..] = *rest {
            let len = 4 + u32::from_be_bytes([0, high, middle, low]) as usize;
            let mut message = rest[..len].to_vec();
            rest = &rest[len..];
            if kind == CERTIFICATE_VERIFY {
                *message.last_mut().expect("a signature") ^= 1;
            }
            before_finished.extend_from_slice(&message);
            if kind == CERTIFICATE_VERIFY {
                break;
            }
        }
        pair.client.inbox.handshake = before_finished;
        let error = pair.client.drive().expect_err("a forged signature");
        assert_eq!(error.alert, Alert(51), "{error}");
    }
}

#[test]
fn client_certificates_are_asked_for_and_verified() {
    let authority = Authority::new("root");
    let ours = authority.issue(&["client.test"]);
    let forged = Authority::new("stranger").issue(&["client.test"]);
    let client = ClientOptions::new().alpn(ALPN).trust(authority.trust());
    let server = ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN);
    let required = server
        .clone()
        .client_auth(ClientAuth::Required(authority.trust()));
    let optional = server
        .clone()
        .client_auth(ClientAuth::Optional(authority.trust()));
    let anyone = Trust::dangerously_accept_any_certificate();
    let any_required = server.clone().client_auth(ClientAuth::Required(anyone));
    for pairing in pairings() {
        let with = |identity: &Identity| client.clone().identity(identity.clone());
        for server in [&required, &optional, &any_required] {
            let pair = Pair::of(pairing, &(with(&ours), server.clone())).complete();
            let seen = pair.server.session.peer_certificates();
            // s2n-tls keeps no certificates it was told not to verify.
            if !seen.is_empty() || !std::ptr::eq(server, &raw const any_required) {
                assert_eq!(seen.first(), ours.certificates().first());
            }
        }
        let pair = Pair::of(pairing, &(client.clone(), optional.clone())).complete();
        assert!(pair.server.session.peer_certificates().is_empty());
        // A certificate nobody asked for stays at home.
        let pair = Pair::of(pairing, &(with(&ours), server.clone())).complete();
        assert!(pair.server.session.peer_certificates().is_empty());

        Pair::of(pairing, &(client.clone(), required.clone()))
            .fail()
            .assert(Side::Server, 116);
        for server in [&required, &optional] {
            let failure = Pair::of(pairing, &(with(&forged), server.clone())).fail();
            failure.assert(Side::Server, 48);
        }
        Pair::of(pairing, &(with(&forged), any_required.clone())).complete();
    }
}

#[test]
fn a_key_that_does_not_fit_its_certificate_is_refused() {
    let authority = Authority::new("root");
    let (certificate, _) = authority.issue_der(&[HOST]);
    let (_, other_key) = authority.issue_der(&[HOST]);
    let identity = Identity::from_der(vec![certificate], other_key);
    for contender in CONTENDERS {
        for result in [
            (contender.server)(&ServerOptions::new(identity.clone())),
            (contender.client)(
                &ClientOptions::new()
                    .trust(authority.trust())
                    .identity(identity.clone()),
            ),
        ] {
            let error = result.err().expect("a mismatch");
            assert!(matches!(error, ConfigError::Identity(_)), "{error}");
            let text = error.to_string();
            assert!(
                text.ends_with("give the two that belong together"),
                "{text}"
            );
        }
    }
    let nothing = Identity::from_der(Vec::new(), authority.issue_der(&[HOST]).1);
    for contender in CONTENDERS {
        let error = (contender.server)(&ServerOptions::new(nothing.clone())).err();
        assert!(matches!(error, Some(ConfigError::Identity(_))), "{error:?}");
    }
}

#[test]
fn unreadable_roots_are_refused() {
    let garbage = hybriq_tls::CertificateDer::from(vec![1, 2, 3]);
    for trust in [Trust::roots_der([garbage]), Trust::roots_der([])] {
        for contender in CONTENDERS {
            let error = (contender.client)(&ClientOptions::new().trust(trust.clone())).err();
            assert!(matches!(error, Some(ConfigError::Roots(_))), "{error:?}");
        }
    }
}

/// A directory of this test's own, removed at the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("a file");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn identities_and_roots_come_from_pem_files() {
    let directory = Directory::new("pem");
    let authority = Authority::new("root");
    let (chain_pem, key_pem) = authority.issue_pem(&[HOST]);
    let chain = directory.write("chain.pem", &chain_pem);
    let key = directory.write("key.pem", &key_pem);
    let both = directory.write("both.pem", &format!("{key_pem}{chain_pem}"));
    let roots = directory.write("roots.pem", &authority.pem);
    let trust = Trust::roots_pem_file(&roots).expect("roots");
    for identity in [
        Identity::from_pem_files(&chain, &key).expect("two files"),
        Identity::from_pem_files(&both, &both).expect("one file"),
        Identity::from_pem(chain_pem.as_bytes(), key_pem.as_bytes()).expect("text"),
    ] {
        for pairing in pairings() {
            let client = ClientOptions::new().alpn(ALPN).trust(trust.clone());
            let server = ServerOptions::new(identity.clone()).alpn(ALPN);
            Pair::of(pairing, &(client, server)).complete();
        }
        let shown = format!("{identity:?}");
        assert!(
            shown.contains("certificates: 1") && shown.len() < 60,
            "{shown}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_in_one_line() {
    let directory = Directory::new("bad-pem");
    let authority = Authority::new("root");
    let (chain_pem, key_pem) = authority.issue_pem(&[HOST]);
    let chain = directory.write("chain.pem", &chain_pem);
    let key = directory.write("key.pem", &key_pem);
    let garbage = directory.write("garbage.pem", "not a certificate");
    let broken = directory.write("broken.pem", &chain_pem[..chain_pem.len() / 2]);
    let missing = directory.0.join("missing.pem");

    let cases = [
        (
            Identity::from_pem_files(&missing, &key).err(),
            "cannot read",
            &missing,
        ),
        (
            Identity::from_pem_files(&chain, &missing).err(),
            "cannot read",
            &missing,
        ),
        (
            Identity::from_pem_files(&directory.0, &key).err(),
            "cannot read",
            &directory.0,
        ),
        (
            Identity::from_pem_files(&garbage, &key).err(),
            "BEGIN CERTIFICATE",
            &garbage,
        ),
        (
            Identity::from_pem_files(&broken, &key).err(),
            "BEGIN CERTIFICATE",
            &broken,
        ),
        (
            Identity::from_pem_files(&key, &key).err(),
            "BEGIN CERTIFICATE",
            &key,
        ),
        (
            Identity::from_pem_files(&chain, &garbage).err(),
            "BEGIN PRIVATE KEY",
            &garbage,
        ),
        (
            Identity::from_pem_files(&chain, &chain).err(),
            "BEGIN PRIVATE KEY",
            &chain,
        ),
        (
            Trust::roots_pem_file(&missing).err(),
            "cannot read",
            &missing,
        ),
        (
            Trust::roots_pem_file(&garbage).err(),
            "BEGIN CERTIFICATE",
            &garbage,
        ),
    ];
    for (error, expected, path) in cases {
        let text = error.expect("an error").to_string();
        assert!(
            text.contains(expected) && text.contains(&*path.to_string_lossy()),
            "{text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
    let error = Identity::from_pem(b"", key_pem.as_bytes()).err();
    assert!(matches!(error, Some(ConfigError::Identity(_))));
    let error = Identity::from_pem(chain_pem.as_bytes(), b"").err();
    assert!(matches!(error, Some(ConfigError::Identity(_))));
    assert!(matches!(
        Trust::roots_pem(b"").err(),
        Some(ConfigError::Roots(_))
    ));
}

#[test]
fn a_backend_has_a_name() {
    for backend in Backend::ALL {
        assert_eq!(
            backend.to_string().parse::<Backend>().expect("its name"),
            backend
        );
    }
    let text = "openssl"
        .parse::<Backend>()
        .expect_err("no backend")
        .to_string();
    assert_eq!(
        text,
        "there is no TLS library `openssl`; use `rustls` or `s2n-tls`"
    );
}
