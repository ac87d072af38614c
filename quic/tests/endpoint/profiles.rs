//! Each profile against peers that break it, at either end and with each library: both ends get a typed
//! reason.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::endpoint_support::soon;
use hybriq::{
    Backend, ClientConfig, ConnectError, ConnectionError, Endpoint, Group, Identity, KeyExchange,
    Profile, ServerConfig, Trust,
    error::{Alert, By},
    stats::{HandshakeOutcome, RefusalReason},
    tls::{CertificateDer, ClientAuth, PrivateKeyDer, Side, Suite},
};
use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256 as P256, PKCS_ED25519 as ED25519, PKCS_ML_DSA_44 as ML_DSA_44,
    PKCS_ML_DSA_87 as ML_DSA_87, SignatureAlgorithm,
};

/// A root and a certificate that it signed, with keys of these kinds.
struct Chain {
    root: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Chain {
    fn new(root: &'static SignatureAlgorithm, leaf: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(root).unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root = params.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate_for(leaf).unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let leaf = params.signed_by(&key, &issuer).unwrap().der().clone();
        Self {
            root,
            leaf,
            key: key.serialize_der(),
        }
    }

    fn identity(&self) -> Identity {
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        Identity::from_der(vec![self.leaf.clone()], key)
    }

    fn trust(&self) -> Trust {
        Trust::roots_der([self.root.clone()])
    }

    fn server(&self) -> ServerConfig {
        ServerConfig::new(self.identity()).alpn(["test"])
    }

    fn client(&self) -> ClientConfig {
        ClientConfig::new().alpn(["test"]).trust(self.trust())
    }
}

/// A profile that needs no validated module, with a chain that complies and one that does not.
struct Case {
    profile: Profile,
    good: Chain,
    bad: Chain,
}

fn cases() -> [Case; 4] {
    let case = |profile, good: [&'static SignatureAlgorithm; 2], bad: [&'static _; 2]| Case {
        profile,
        good: Chain::new(good[0], good[1]),
        bad: Chain::new(bad[0], bad[1]),
    };
    [
        case(Profile::Cnsa2, [&ML_DSA_87, &ML_DSA_87], [&P256, &P256]),
        case(Profile::Bsi, [&P256, &P256], [&P256, &ED25519]),
        case(Profile::Anssi, [&ED25519, &P256], [&P256, &ML_DSA_44]),
        case(Profile::Asd, [&ML_DSA_87, &ML_DSA_87], [&P256, &P256]),
    ]
}

impl Case {
    /// Libraries that can keep to the profile.
    fn libraries(&self) -> impl Iterator<Item = Backend> + use<> {
        let is_pure = self.profile.groups() == Some(&[Group::MLKEM1024]);
        let all = Backend::ALL.into_iter();
        all.filter(move |library| *library == Backend::Rustls || is_pure)
    }

    fn strict_server(&self, library: Backend) -> ServerConfig {
        self.good.server().profile(self.profile).tls(library)
    }

    fn strict_client(&self, library: Backend) -> ClientConfig {
        self.good.client().profile(self.profile).tls(library)
    }
}

/// Errors of both ends of a handshake that fails, and the count that each end made of it.
struct Refused {
    server: ConnectionError,
    client: ConnectionError,
    counted: [HandshakeOutcome; 2],
}

async fn refused(server: ServerConfig, client: ClientConfig) -> Refused {
    let endpoint = Endpoint::server("127.0.0.1:0", server).unwrap();
    let from = Endpoint::client(client).unwrap();
    let connect = async {
        match from.connect(endpoint.local_address(), "localhost").await {
            // The handshake is complete for the client before the server sees its certificate.
            Ok(connection) => connection.closed().await,
            Err(ConnectError::Connection(error)) => error,
            Err(other) => panic!("{other}"),
        }
    };
    let accept = async { endpoint.accept().await.unwrap().accept().await };
    let (accepted, client) = soon(async { tokio::join!(accept, connect) }).await;
    let server = match accepted {
        Err(ConnectError::Connection(error)) => error,
        other => panic!("{other:?}"),
    };
    let counted = [&endpoint, &from].map(|endpoint| {
        let counts = endpoint.handshakes();
        assert_eq!(
            counts.iter().map(|it| it.count).sum::<u64>(),
            1,
            "{counts:?}"
        );
        counts[0].outcome
    });
    Refused {
        server,
        client,
        counted,
    }
}

/// Asserts that both ends know the alert that one of them raised, and its reason.
#[track_caller]
fn assert_alert(refused: &Refused, raised_by: Side, alert: Alert, words: &[&str]) {
    for (error, side) in [
        (&refused.server, Side::Server),
        (&refused.client, Side::Client),
    ] {
        let ConnectionError::Transport { by, code, .. } = error else {
            panic!("{error}");
        };
        let expected = if side == raised_by {
            By::Local
        } else {
            By::Peer
        };
        assert_eq!((*by, code.alert()), (expected, Some(alert.0)), "{error}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "no `{word}` in: {text}");
        }
    }
}

#[tokio::test]
async fn a_peer_without_a_group_is_refused() {
    for case in cases() {
        for library in case.libraries() {
            let weak = KeyExchange::Exactly(vec![Group::X25519]);
            let outcomes = [
                refused(
                    case.strict_server(library),
                    case.good.client().key_exchange(weak.clone()),
                ),
                refused(
                    case.good.server().key_exchange(weak.clone()),
                    case.strict_client(library),
                ),
            ];
            for (number, outcome) in outcomes.into_iter().enumerate() {
                let outcome = outcome.await;
                let strict = case.profile.groups().unwrap();
                let (of_server, of_client) = match number {
                    0 => (strict, &[Group::X25519][..]),
                    _ => (&[Group::X25519][..], strict),
                };
                for (error, who) in [(outcome.server, By::Local), (outcome.client, By::Peer)] {
                    let ConnectionError::KeyExchangeRefused { by, groups, .. } = error else {
                        panic!("{}: {error}", case.profile);
                    };
                    assert_eq!(by, who);
                    let (ours, theirs) = match by {
                        By::Local => (of_server, of_client),
                        By::Peer => (of_client, of_server),
                    };
                    assert_eq!((&*groups.ours, &*groups.peers), (ours, theirs));
                }
                for (counted, by) in outcome.counted.into_iter().zip([By::Local, By::Peer]) {
                    let reason = RefusalReason::KeyExchange;
                    assert_eq!(counted, HandshakeOutcome::Refused { by, reason });
                }
            }
        }
    }
}

#[tokio::test]
async fn a_peer_without_a_cipher_suite_is_refused() {
    for case in cases() {
        let suites = case.profile.suites().unwrap();
        let others = [
            Suite::Aes128GcmSha256,
            Suite::Aes256GcmSha384,
            Suite::ChaCha20Poly1305Sha256,
        ];
        let weak: Vec<Suite> = others
            .into_iter()
            .filter(|suite| !suites.contains(suite))
            .collect();
        if weak.is_empty() {
            continue;
        }
        let words = [weak[0].to_string(), suites[0].to_string()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for library in case.libraries() {
            let client = case.good.client().suites(weak.clone());
            let outcome = refused(case.strict_server(library), client).await;
            assert_alert(&outcome, Side::Server, Alert::INSUFFICIENT_SECURITY, &words);
            let reason = RefusalReason::Parameters;
            assert_eq!(
                outcome.counted,
                [By::Local, By::Peer].map(|by| HandshakeOutcome::Refused { by, reason })
            );

            let server = case.good.server();
            let server = server.tls_options(|tls| tls.suites(weak.clone()));
            let outcome = refused(server, case.strict_client(library)).await;
            assert_alert(&outcome, Side::Server, Alert::HANDSHAKE_FAILURE, &words);
        }
    }
}

#[tokio::test]
async fn a_peer_with_a_forbidden_certificate_is_refused() {
    for case in cases() {
        let allows = format!("the profile `{}` allows", case.profile);
        for library in case.libraries() {
            let client = case.bad.client().profile(case.profile).tls(library);
            let at_client = refused(case.bad.server(), client).await;
            let client = case.good.client().identity(case.bad.identity());
            let server = case.strict_server(library);
            let server = server.client_auth(ClientAuth::Required(case.bad.trust()));
            let at_server = refused(server, client).await;
            println!("{}\n{}", at_client.client, at_server.server);
            if library == Backend::Rustls {
                let alert = Alert::UNSUPPORTED_CERTIFICATE;
                assert_alert(&at_client, Side::Client, alert, &[&allows]);
                assert_alert(&at_server, Side::Server, alert, &[&allows]);
            } else {
                // The policy of s2n-tls asks for ML-DSA-87, and the peer has no such signature.
                let alert = Alert::HANDSHAKE_FAILURE;
                let both = ["signs by ecdsa_secp256r1_sha256", "verifies mldsa87"];
                assert_alert(&at_client, Side::Server, alert, &both);
                let alert = Alert::CERTIFICATE_REQUIRED;
                let takes = format!("under the profile `{}` s2n-tls accepts", case.profile);
                assert_alert(&at_server, Side::Server, alert, &[&takes]);
            }
        }
    }
}
