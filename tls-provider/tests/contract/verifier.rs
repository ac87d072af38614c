//! The application's own checks of certificates, and revocation lists.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hybriq_tls::{
    Alert, ClientAuth, ClientOptions, ConfigError, Error, PeerChain, ServerOptions, Side, Trust,
};

use crate::support::{ALPN, Authority, CONTENDERS, HOST, Pair, pairings, providers};

type Seen = Arc<Mutex<Vec<(Side, Vec<u8>, Option<String>)>>>;

/// Notes what it is asked, and accepts.
fn noting(seen: &Seen) -> impl Fn(&PeerChain<'_>) -> Result<(), Error> + Send + Sync + 'static {
    let seen = seen.clone();
    move |peer| {
        let first = peer.certificates.first().expect("a certificate").to_vec();
        let name = peer.server_name.map(str::to_owned);
        seen.lock().expect("notes").push((peer.owner, first, name));
        Ok(())
    }
}

fn refuse(_: &PeerChain<'_>) -> Result<(), Error> {
    Err(Error::new(
        Alert::ACCESS_DENIED,
        "not on the list; ask the owner",
    ))
}

#[test]
fn a_verifier_is_asked_after_the_built_in_check() {
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    for pairing in pairings() {
        let seen = Seen::default();
        let trust = || authority.trust().also(noting(&seen));
        let (of_server, of_client) = (authority.issue(&[HOST]), authority.issue(&["client.test"]));
        let client = ClientOptions::new().alpn(ALPN).trust(trust());
        let server = ServerOptions::new(of_server.clone())
            .alpn(ALPN)
            .client_auth(ClientAuth::Required(trust()));
        let with = client.clone().identity(of_client.clone());
        Pair::of(pairing, &(with, server.clone())).complete();
        let first = |identity: &hybriq_tls::Identity| identity.certificates()[0].to_vec();
        assert_eq!(
            *seen.lock().expect("notes"),
            [
                (Side::Server, first(&of_server), Some(HOST.to_owned())),
                (Side::Client, first(&of_client), None),
            ]
        );

        // Whom the built-in check refuses, no verifier is asked about.
        seen.lock().expect("notes").clear();
        let forged = ServerOptions::new(stranger.issue(&[HOST])).alpn(ALPN);
        let failure = Pair::of(pairing, &(client, forged)).fail();
        failure.assert(Side::Client, 48);
        assert!(seen.lock().expect("notes").is_empty());
    }
}

#[test]
fn a_verifier_refuses_with_its_own_alert_and_reason() {
    let authority = Authority::new("root");
    let client = ClientOptions::new().alpn(ALPN).trust(authority.trust());
    let server = ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN);
    let strict = authority.trust().also(refuse);
    for pairing in pairings() {
        let by_client = (client.clone().trust(strict.clone()), server.clone());
        let by_server = (
            client.clone().identity(authority.issue(&["client.test"])),
            server
                .clone()
                .client_auth(ClientAuth::Optional(strict.clone())),
        );
        for (options, side) in [(by_client, Side::Client), (by_server, Side::Server)] {
            let failure = Pair::of(pairing, &options).fail();
            failure.assert(side, 49);
            assert_eq!(
                failure.error.to_string(),
                "access_denied: not on the list; ask the owner"
            );
            assert_eq!(failure.error.reason_for_peer(), Error::PRIVATE);
        }
    }
}

#[test]
fn a_client_that_is_refused_hands_out_no_secrets() {
    let authority = Authority::new("root");
    let client = ClientOptions::new()
        .alpn(ALPN)
        .trust(authority.trust().also(refuse));
    let server = ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN);
    for pairing in pairings() {
        let mut pair = Pair::of(pairing, &(client.clone(), server.clone()));
        while let Ok(true) = pair.turn(crate::support::Slices::Whole) {}
        let one_rtt = pair.client.secret(hybriq_tls::Level::OneRtt, Side::Client);
        assert!(one_rtt.is_none() && pair.client.exporter.is_none());
    }
}

#[test]
fn a_verifier_may_decide_alone() {
    let stranger = Authority::new("stranger");
    let seen = Seen::default();
    let alone = Trust::verifier(noting(&seen));
    for contender in CONTENDERS {
        let options = ClientOptions::new().alpn(ALPN).trust(alone.clone());
        let server = ServerOptions::new(stranger.issue(&["another.test"])).alpn(ALPN);
        if contender.name == "s2n-tls" {
            let error = (contender.client)(&options).err().expect("a refusal");
            assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
            let server = server.client_auth(ClientAuth::Required(alone.clone()));
            assert!((contender.server)(&server).is_err());
            continue;
        }
        Pair::of((contender, contender), &(options.clone(), server.clone())).complete();
        let server = server.client_auth(ClientAuth::Required(alone.clone()));
        let with = options.identity(stranger.issue(&["client.test"]));
        Pair::of((contender, contender), &(with, server)).complete();
        let owners: Vec<Side> = seen.lock().expect("notes").iter().map(|it| it.0).collect();
        assert_eq!(owners, [Side::Server, Side::Server, Side::Client]);
        let nobody = Trust::verifier(refuse);
        let options = ClientOptions::new().alpn(ALPN).trust(nobody);
        let server = ServerOptions::new(stranger.issue(&[HOST])).alpn(ALPN);
        let failure = Pair::of((contender, contender), &(options, server)).fail();
        failure.assert(Side::Client, 49);
    }
}

/// A server with a verifier resumes no session that another verifier, or none, let in.
#[test]
fn no_ticket_passes_another_verifier() {
    let authority = Authority::new("root");
    for (pairing, auth) in pairings().flat_map(|pairing| {
        let auths: [fn(Trust) -> ClientAuth; 2] = [ClientAuth::Required, ClientAuth::Optional];
        auths.map(|auth| (pairing, auth))
    }) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counting = || {
            let count = asked.clone();
            authority.trust().also(move |_: &PeerChain<'_>| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        let tickets = hybriq_tls::Tickets::new();
        let with = |trust: Trust| {
            ServerOptions::new(authority.issue(&[HOST]))
                .alpn(ALPN)
                .tickets(tickets.clone())
                .client_auth(auth(trust))
        };
        let options = ClientOptions::new()
            .alpn(ALPN)
            .trust(authority.trust())
            .identity(authority.issue(&["client.test"]));
        let (client, lax) = providers(pairing, &(options, with(authority.trust())));
        Pair::new(&*client, &*lax).complete();
        for expected in [1, 2] {
            let strict = (pairing.1.server)(&with(counting())).expect("a server");
            Pair::new(&*client, &*strict).complete();
            assert_eq!(asked.load(Ordering::Relaxed), expected);
        }
    }
}

#[cfg(feature = "rustls")]
mod revocation {
    use hybriq_tls::{Backend, Identity, PrivateKeyDer};
    use rcgen::SerialNumber;

    use super::*;
    use crate::identity::Directory;

    fn identity(authority: &Authority, serial: u64) -> Identity {
        let (certificate, key) = authority.issue_with(&[HOST], |params| {
            params.serial_number = Some(SerialNumber::from(serial));
        });
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Identity::from_der(vec![certificate.der().clone()], key)
    }

    fn pair(client: &ClientOptions, server: &ServerOptions) -> Pair {
        let client = Backend::Rustls.client(client).expect("a client");
        let server = Backend::Rustls.server(server).expect("a server");
        Pair::new(&*client, &*server)
    }

    #[test]
    fn a_revoked_certificate_is_refused_at_either_end() {
        let authority = Authority::new("root");
        let list = authority.revoke(&[7], (2999, 1, 1));
        let trust = authority.trust().revocation_lists([list.der().clone()]);
        let client = ClientOptions::new().alpn(ALPN).trust(trust.clone());
        let server = |serial| ServerOptions::new(identity(&authority, serial)).alpn(ALPN);
        pair(&client, &server(8)).complete();
        let failure = pair(&client, &server(7)).fail();
        failure.assert(Side::Client, 44);
        assert!(
            failure
                .error
                .to_string()
                .starts_with("certificate_revoked: "),
            "{}",
            failure.error
        );

        let server = server(8).client_auth(ClientAuth::Required(trust));
        let with = |serial| client.clone().identity(identity(&authority, serial));
        pair(&with(9), &server).complete();
        pair(&with(7), &server).fail().assert(Side::Server, 44);
    }

    #[test]
    fn a_status_that_nobody_knows_is_refused() {
        let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
        let server = ServerOptions::new(identity(&authority, 8)).alpn(ALPN);
        for list in [
            stranger.revoke(&[], (2999, 1, 1)),
            authority.revoke(&[], (2024, 2, 1)),
        ] {
            let trust = authority.trust().revocation_lists([list.der().clone()]);
            let client = ClientOptions::new().alpn(ALPN).trust(trust);
            let failure = pair(&client, &server).fail();
            assert_eq!(failure.side, Side::Client, "{}", failure.error);
        }
    }

    #[test]
    fn lists_come_from_files_and_need_roots() {
        let directory = Directory::new("crl");
        let authority = Authority::new("root");
        let list = authority.revoke(&[7], (2999, 1, 1));
        let path = directory.write("list.pem", &list.pem().expect("PEM"));
        let garbage = directory.write("garbage.pem", "nothing");
        let trust = authority.trust();
        let error = trust.clone().revocation_lists_pem_file(&garbage).err();
        let error = error.expect("no list").to_string();
        assert!(error.contains("BEGIN X509 CRL"), "{error}");
        let trust = trust.revocation_lists_pem_file(&path).expect("a list");
        let client = ClientOptions::new().alpn(ALPN).trust(trust);
        let server = ServerOptions::new(identity(&authority, 7)).alpn(ALPN);
        pair(&client, &server).fail().assert(Side::Client, 44);

        let trust =
            Trust::dangerously_accept_any_certificate().revocation_lists([list.der().clone()]);
        let error = Backend::Rustls
            .client(&ClientOptions::new().trust(trust))
            .err();
        assert!(matches!(error, Some(ConfigError::Roots(_))), "{error:?}");
    }

    #[test]
    fn s2n_tls_refuses_lists_and_names_the_way_out() {
        let authority = Authority::new("root");
        let list = authority.revoke(&[7], (2999, 1, 1));
        let trust = authority.trust().revocation_lists([list.der().clone()]);
        for contender in CONTENDERS.iter().filter(|it| it.name == "s2n-tls") {
            let options = ClientOptions::new().trust(trust.clone());
            let error = (contender.client)(&options).err().expect("a refusal");
            assert!(error.to_string().contains("use rustls"), "{error}");
        }
    }
}
