//! What a connection tells about its security: the record of the handshake, the proof as a type, and
//! the rules of authorities.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hybriq::{
    Backend, ClientConfig, ConnectError, ConnectionError, Endpoint, Group, Identity, KeyExchange,
    PostQuantum, Profile, ServerConfig, Trust,
    error::{By, ConfigError},
    tls::{ClientAuth, KeyAlgorithm, PrivateKeyDer, SignatureAlgorithm},
};
use hybriq_tls::{ClientOptions, Provider, Session, Start};
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};

use crate::endpoint_support::{Pair, client_config, server_config, soon};

async fn connected(server: ServerConfig, client: ClientConfig) -> Pair {
    let server = Endpoint::server("127.0.0.1:0", server).unwrap();
    Pair::of(server, Endpoint::client(client).unwrap()).await
}

/// The TLS libraries with ML-DSA: s2n-tls has none over a FIPS module.
fn with_ml_dsa() -> impl Iterator<Item = Backend> {
    let all = Backend::ALL.into_iter();
    all.filter(|it| *it == Backend::Rustls || !hybriq::tls::is_fips())
}

/// A chain of ML-DSA-87 with its root.
fn ml_dsa() -> (Identity, Trust) {
    let key = KeyPair::generate_for(&rcgen::PKCS_ML_DSA_87).unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    let root = params.self_signed(&key).unwrap().der().clone();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate_for(&rcgen::PKCS_ML_DSA_87).unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        rcgen::ExtendedKeyUsagePurpose::ServerAuth,
        rcgen::ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let leaf = params.signed_by(&key, &issuer).unwrap().der().clone();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (
        Identity::from_der(vec![leaf], key),
        Trust::roots_der([root]),
    )
}

#[tokio::test]
async fn only_a_post_quantum_connection_can_be_proven() {
    let pair = connected(server_config(), client_config()).await;
    for connection in [pair.server, pair.client] {
        let proven = PostQuantum::prove(connection).unwrap();
        assert!(proven.handshake().is_post_quantum());
        assert!(PostQuantum::try_from(proven.into_inner()).is_ok());
    }
    let classical = client_config().key_exchange(KeyExchange::OnlyClassical);
    let pair = connected(server_config(), classical).await;
    for connection in [pair.server, pair.client] {
        let refused = PostQuantum::prove(connection).unwrap_err();
        assert_eq!(refused.group(), Group::X25519);
        let text = refused.to_string();
        assert!(text.contains("its key exchange is X25519"), "{text}");
        assert!(!refused.into_connection().handshake().is_post_quantum());
    }
}

/// A session that began with a classical exchange is none, whatever its own key exchange is.
#[tokio::test]
async fn a_classical_beginning_cannot_be_proven() {
    let server = server_config();
    let tickets = hybriq::fleet::Tickets::default();
    let classical = server.clone().tickets(tickets.clone());
    let classical = classical.key_exchange(KeyExchange::OnlyClassical);
    let endpoint = Endpoint::server("127.0.0.1:0", classical).unwrap();
    let client = Endpoint::client(client_config()).unwrap();
    let address = endpoint.local_address();
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(incoming) = accepting.accept().await {
            if let Ok(connection) = incoming.accept().await {
                let mut send = connection.open_uni().await.unwrap();
                send.finish();
                kept.push(connection);
            }
        }
    });
    // The ticket comes before the stream.
    let first = soon(client.connect(address, "localhost")).await.unwrap();
    soon(first.accept_uni()).await.unwrap().unwrap();
    assert!(!first.handshake().is_post_quantum());
    endpoint.set_server_config(server.tickets(tickets)).unwrap();
    let second = soon(client.connect(address, "localhost")).await.unwrap();
    assert!(second.handshake().key_exchange.is_post_quantum());
    let proof = PostQuantum::prove(second);
    match proof {
        Ok(proven) => assert!(!proven.handshake().resumed),
        Err(refused) => {
            let text = refused.to_string();
            assert!(
                text.contains("resumes a session that began with a classical group"),
                "{text}"
            );
        }
    }
}

#[cfg(feature = "serde")]
#[tokio::test]
async fn a_handshake_is_a_record_for_audits() {
    let (identity, trust) = ml_dsa();
    let server = ServerConfig::new(identity)
        .alpn(["echo"])
        .profile(Profile::Cnsa2);
    let client = ClientConfig::new()
        .alpn(["echo"])
        .trust(trust)
        .profile(Profile::Cnsa2);
    let pair = connected(server, client).await;
    let record = serde_json::to_string_pretty(pair.client.handshake()).unwrap();
    let expected = r#"{
  "post_quantum": true,
  "group": "MLKEM1024",
  "group_kind": "pure",
  "hello_retry": false,
  "client_share_bytes": 1568,
  "server_share_bytes": 1568,
  "suite": "TLS_AES_256_GCM_SHA384",
  "signature_scheme": "mldsa87",
  "client_signature_scheme": null,
  "peer_certificates": [
    {
      "key": "ML-DSA-87",
      "signature": "ML-DSA-87",
      "post_quantum": true
    }
  ],
  "certificate_bytes": BYTES,
  "certificate_compression": null,
  "alpn": "echo",
  "server_name": "localhost",
  "resumed": false,
  "lineage": "post_quantum",
  "early_data": "none",
  "quic_version": 2,
  "role": "client",
  "tls_library": "rustls",
  "profile": "cnsa2",
  "fips": false,
  "requires_post_quantum": true,
  "downgrade": null
}"#;
    // The message has the certificate, and 13 bytes around it.
    let shown = pair.client.peer_certificates();
    let bytes = shown[0].len() + 13;
    let expected = expected.replace("BYTES", &bytes.to_string());
    let fips = format!("\"fips\": {}", hybriq::tls::is_fips());
    assert_eq!(record, expected.replace("\"fips\": false", &fips));
    let at_server = serde_json::to_value(pair.server.handshake()).unwrap();
    assert_eq!(at_server["peer_certificates"], serde_json::json!([]));
    assert_eq!(at_server["profile"], "cnsa2");
    assert_eq!(at_server["role"], "server");
    assert_eq!(at_server["signature_scheme"], "mldsa87");
}

/// Both ends record both signatures, with each library.
#[cfg(feature = "serde")]
#[tokio::test]
async fn the_record_has_the_signatures_of_both_ends() {
    let (identity, trust) = ml_dsa();
    for backend in with_ml_dsa() {
        let server = ServerConfig::new(identity.clone()).alpn(["echo"]);
        let server = server.client_auth(ClientAuth::Required(trust.clone()));
        let client = ClientConfig::new().alpn(["echo"]).trust(trust.clone());
        let client = client.identity(identity.clone());
        let pair = connected(server.tls(backend), client.tls(backend)).await;
        for connection in [&pair.server, &pair.client] {
            let record = serde_json::to_value(connection.handshake()).unwrap();
            assert_eq!(record["signature_scheme"], "mldsa87", "{record}");
            assert_eq!(record["client_signature_scheme"], "mldsa87", "{record}");
            assert_eq!(record["peer_certificates"][0]["key"], "ML-DSA-87");
            assert_eq!(record["tls_library"], backend.name());
        }
    }
}

/// A configuration file names a profile; an error lists those that there are.
#[cfg(feature = "serde")]
#[test]
fn a_file_has_the_name_of_a_profile() {
    for profile in Profile::ALL {
        let name = serde_json::to_string(&profile).unwrap();
        assert_eq!(name, format!("\"{profile}\""));
        assert_eq!(serde_json::from_str::<Profile>(&name).unwrap(), profile);
    }
    let error = serde_json::from_str::<Profile>("\"cnsa3\"").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("no profile `cnsa3`; use default, cnsa2, bsi"),
        "{text}"
    );
    let text = serde_json::from_str::<Profile>("7")
        .unwrap_err()
        .to_string();
    assert!(text.contains("expected the name of a profile"), "{text}");
}

/// A provider replaces the options of TLS, and with them the profile.
#[test]
fn a_provider_that_does_not_keep_to_the_profile_is_refused() {
    let (identity, trust) = ml_dsa();
    let options = hybriq_tls::ServerOptions::new(identity.clone());
    let strict = options.clone().profile(Profile::Cnsa2);
    let server = ServerConfig::new(identity).profile(Profile::Cnsa2);
    let server = |options| {
        let provider = Backend::Rustls.server(options).unwrap();
        server.clone().provider(provider)
    };
    assert!(server(&strict).check().is_ok());
    let problems = server(&options).check().unwrap_err();
    let text = problems.to_string();
    assert!(
        text.contains("a provider replaces the options of TLS"),
        "{text}"
    );
    assert!(Endpoint::server("127.0.0.1:0", server(&options)).is_err());

    let options = hybriq_tls::ClientOptions::new().trust(trust);
    let provider = Backend::Rustls.client(&options).unwrap();
    let client = ClientConfig::new().profile(Profile::Asd).provider(provider);
    assert!(client.check().is_err());
    assert!(Endpoint::client(client).is_err());
}

#[tokio::test]
async fn both_ends_know_the_algorithms_of_the_chain() {
    let pair = connected(server_config(), client_config()).await;
    let handshake = pair.client.handshake();
    assert_eq!(
        handshake.peer_certificates.len(),
        pair.client.peer_certificates().len()
    );
    let leaf = handshake.peer_certificates[0];
    assert_eq!(
        (leaf.key, leaf.signature),
        (KeyAlgorithm::EcdsaP256, SignatureAlgorithm::EcdsaSha256)
    );
    assert_eq!(handshake.profile, Profile::Default);
    assert!(!handshake.requires_post_quantum);
    assert_eq!(pair.server.handshake().peer_certificates, []);
}

/// A peer that breaks the rules of a profile is refused, and both ends know why.
#[tokio::test]
async fn a_profile_refuses_a_peer_at_both_ends() {
    let (identity, trust) = ml_dsa();
    for backend in with_ml_dsa() {
        let server = ServerConfig::new(identity.clone()).alpn(["echo"]);
        let server = server.tls(backend).profile(Profile::Cnsa2);
        let server = Endpoint::server("127.0.0.1:0", server).unwrap();
        let address = server.local_address();
        let accepting = server.clone();
        let accepted =
            tokio::spawn(async move { accepting.accept().await.unwrap().accept().await });
        let hybrid = ClientConfig::new().alpn(["echo"]).trust(trust.clone());
        let hybrid = hybrid.key_exchange(KeyExchange::Exactly(vec![Group::X25519MLKEM768]));
        let client = Endpoint::client(hybrid).unwrap();
        let at_client = soon(client.connect(address, "localhost"))
            .await
            .unwrap_err();
        let at_server = soon(accepted).await.unwrap().unwrap_err();
        for (error, by_whom) in [(at_client, By::Peer), (at_server, By::Local)] {
            let ConnectError::Connection(ConnectionError::KeyExchangeRefused {
                by, groups, ..
            }) = error
            else {
                panic!("{error}");
            };
            assert_eq!(by, by_whom);
            let (of_server, of_client) = match by {
                By::Local => (groups.ours, groups.peers),
                By::Peer => (groups.peers, groups.ours),
            };
            assert_eq!(of_server, [Group::MLKEM1024]);
            assert_eq!(of_client, [Group::X25519MLKEM768]);
        }
    }
}

#[tokio::test]
async fn a_profile_refuses_a_certificate_at_both_ends() {
    let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
    let address = server.local_address();
    let accepted = tokio::spawn(async move { server.accept().await.unwrap().accept().await });
    let strict = client_config().profile(Profile::Asd);
    let client = Endpoint::client(strict).unwrap();
    let at_client = soon(client.connect(address, "localhost"))
        .await
        .unwrap_err();
    let at_server = soon(accepted).await.unwrap().unwrap_err();
    let text = at_client.to_string();
    assert!(
        text.contains("the profile `asd` allows ML-DSA-65 and ML-DSA-87"),
        "{text}"
    );
    let text = at_server.to_string();
    assert!(text.contains("unsupported_certificate"), "{text}");
}

#[test]
fn options_that_a_profile_forbids_are_found_by_a_check() {
    let server = server_config().profile(Profile::Cnsa2).accept_early_data();
    let problems = server.check().unwrap_err();
    assert_eq!(problems.iter().count(), 2, "{problems}");
    let client = client_config().profile(Profile::Bsi).offer_early_data();
    let problems = client.check().unwrap_err();
    assert!(matches!(
        problems.first(),
        ConfigError::Profile {
            profile: Profile::Bsi,
            ..
        }
    ));
    assert!(Endpoint::client(client).is_err());
}

/// A provider that counts how often it prepares and is ready.
struct Preparing {
    inner: Arc<dyn Provider>,
    prepared: AtomicUsize,
    ready: tokio::sync::Notify,
}

impl Provider for Preparing {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn supports_early_data(&self) -> bool {
        self.inner.supports_early_data()
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.inner.key_exchange()
    }

    fn may_prepare(&self) -> bool {
        self.inner.may_prepare()
    }

    fn prepare(&self) {
        self.inner.prepare();
        self.prepared.fetch_add(1, Ordering::Relaxed);
        if !self.inner.may_prepare() {
            self.ready.notify_one();
        }
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        self.inner.session(start)
    }
}

/// Key shares are made while there is nothing to do: before the first connection, and for each one that was
/// used.
#[tokio::test]
async fn an_idle_endpoint_makes_key_shares_ahead_of_time() {
    let server = Endpoint::server("127.0.0.1:0", server_config()).unwrap();
    let mut options = None;
    let _ = client_config().tls_options(|tls| {
        options = Some(tls.clone().key_shares_ahead(3));
        tls
    });
    let options: ClientOptions = options.unwrap();
    let provider = Arc::new(Preparing {
        inner: Backend::Rustls.client(&options).unwrap(),
        prepared: AtomicUsize::new(0),
        ready: tokio::sync::Notify::new(),
    });
    let client = Endpoint::client(client_config().provider(provider.clone())).unwrap();
    soon(provider.ready.notified()).await;
    assert_eq!(provider.prepared.load(Ordering::Relaxed), 3);
    let mut pair = Pair::of(server, client).await;
    for connections in 1..4 {
        soon(provider.ready.notified()).await;
        let prepared = provider.prepared.load(Ordering::Relaxed);
        assert_eq!(prepared, 3 + connections);
        pair = Pair::of(pair.server_endpoint, pair.client_endpoint).await;
    }
    assert_eq!(pair.echo(b"ahead").await, b"ahead");
}

/// What the record says of a FIPS module is what the build has.
#[tokio::test]
async fn a_handshake_is_fips_only_in_a_build_with_the_module() {
    for backend in Backend::ALL {
        let server = server_config().tls(backend);
        let pair = connected(server, client_config().tls(backend)).await;
        for connection in [&pair.server, &pair.client] {
            assert_eq!(connection.handshake().fips, hybriq::tls::is_fips());
        }
        let classical = client_config().key_exchange(KeyExchange::OnlyClassical);
        let pair = connected(server_config().tls(backend), classical).await;
        assert!(!pair.server.handshake().fips, "X25519");
    }
}
