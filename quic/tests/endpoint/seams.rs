//! Parts that an application plugs in, with nothing but `hybriq` in its `Cargo.toml`: keys
//! elsewhere, checks of certificates, revocation lists, stores of sessions, options of rustls.
#![cfg(feature = "rustls")]

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use hybriq::{
    Backend, ClientConfig, Endpoint, Identity, Profile, ServerConfig, Trust,
    error::{Alert, TlsError},
    memory::{ServerKey, ServerMemory, ServerRecord, ServerStore, SessionMemory},
    tls::{
        CertificateDer, CertificateRevocationListDer, PeerChain, PrivateKeyDer, SignError,
        SignatureScheme, Signer, Verifier,
    },
};
use hybriq_tls::{ClientOptions, MemorySessions, rustls::library};

use crate::endpoint_support::{Pair, client_config, server, server_config, soon};

/// A key elsewhere, played by one in memory.
struct Module {
    key: rcgen::KeyPair,
    signed: Arc<AtomicUsize>,
}

impl Signer for Module {
    fn schemes(&self) -> &[SignatureScheme] {
        &[SignatureScheme::ECDSA_SECP256R1_SHA256]
    }

    fn sign(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, SignError> {
        assert_eq!(scheme, SignatureScheme::ECDSA_SECP256R1_SHA256);
        self.signed.fetch_add(1, Ordering::Relaxed);
        rcgen::SigningKey::sign(&self.key, message).map_err(|error| SignError(error.to_string()))
    }
}

/// Trusts one certificate, whoever issued it.
struct Pinned(CertificateDer<'static>);

impl Verifier for Pinned {
    fn verify(&self, peer: &PeerChain<'_>) -> Result<(), TlsError> {
        match peer.certificates.first() {
            Some(leaf) if **leaf == *self.0 => Ok(()),
            _ => Err(TlsError::new(
                Alert::CERTIFICATE_UNKNOWN,
                "the certificate is not the pinned one",
            )),
        }
    }
}

#[tokio::test]
async fn a_server_signs_by_a_key_elsewhere_and_the_client_pins_its_certificate() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let signed = Arc::new(AtomicUsize::new(0));
    let module = Module {
        key: made.signing_key,
        signed: signed.clone(),
    };
    let identity = Identity::from_signer(vec![certificate.clone()], module);
    let server = ServerConfig::new(identity).alpn(["test"]);
    server.check().unwrap();
    let client = ClientConfig::new()
        .alpn(["test"])
        .trust(Trust::verifier(Pinned(certificate)));
    client.check().unwrap();
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server).unwrap(),
        Endpoint::client(client).unwrap(),
    )
    .await;
    assert_eq!(pair.echo(b"signed elsewhere").await, b"signed elsewhere");
    assert_eq!(signed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_verifier_refuses_with_its_own_reason() {
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let trust = Trust::verifier(Pinned(other.cert.der().clone()));
    let server = server("127.0.0.1:0");
    let client = Endpoint::client(client_config().trust(trust)).unwrap();
    let connecting = client.connect(server.local_address(), "localhost");
    let accepting = async { server.accept().await.unwrap().accept().await };
    let (refused, _) = soon(async { tokio::join!(connecting, accepting) }).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("not the pinned one"), "{error}");
}

/// A resolver of rustls, written against the crate that hybriq re-exports.
struct Resolver(Arc<library::sign::CertifiedKey>);

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

impl library::server::ResolvesServerCert for Resolver {
    fn resolve(
        &self,
        _: library::server::ClientHello<'_>,
    ) -> Option<Arc<library::sign::CertifiedKey>> {
        Some(self.0.clone())
    }
}

#[tokio::test]
async fn options_of_rustls_itself_can_be_set() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let key = library::sign::CertifiedKey::from_der(
        vec![certificate.clone()],
        key,
        &library::crypto::aws_lc_rs::default_provider(),
    );
    let resolver = Arc::new(Resolver(Arc::new(key.unwrap())));
    let server = server_config().tls_options(|options| {
        options.change_rustls(move |config| config.cert_resolver = resolver.clone())
    });
    let pair = Pair::of(
        Endpoint::server("127.0.0.1:0", server).unwrap(),
        Endpoint::client(client_config().trust(Trust::roots_der([certificate]))).unwrap(),
    )
    .await;
    assert_eq!(pair.echo(b"resolved").await, b"resolved");
}

#[tokio::test]
async fn a_revoked_server_is_refused() {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![
        rcgen::KeyUsagePurpose::KeyCertSign,
        rcgen::KeyUsagePurpose::CrlSign,
    ];
    let root_key = rcgen::KeyPair::generate().unwrap();
    let root = params.self_signed(&root_key).unwrap().der().clone();
    let issuer = rcgen::Issuer::new(params, root_key);
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.serial_number = Some(7_u64.into());
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
    let identity = Identity::from_der(
        vec![certificate],
        PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    );
    let list = |serial: u64| {
        let revoked = rcgen::RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: rcgen::date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2024, 1, 1),
            next_update: rcgen::date_time_ymd(4000, 1, 1),
            crl_number: 1_u64.into(),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&issuer).unwrap();
        CertificateRevocationListDer::from(list.der().to_vec())
    };
    for (serial, accepted) in [(8, true), (7, false)] {
        let server = ServerConfig::new(identity.clone()).alpn(["test"]);
        let server = Endpoint::server("127.0.0.1:0", server).unwrap();
        let trust = Trust::roots_der([root.clone()]).revocation_lists([list(serial)]);
        let client = Endpoint::client(client_config().trust(trust)).unwrap();
        let connecting = client.connect(server.local_address(), "localhost");
        let accepting = async { server.accept().await.unwrap().accept().await };
        let (connected, _) = soon(async { tokio::join!(connecting, accepting) }).await;
        assert_eq!(connected.is_ok(), accepted, "{connected:?}");
    }
}

/// A store that counts, in front of one in memory.
#[derive(Default)]
struct Counting {
    memory: ServerMemory,
    changes: AtomicUsize,
}

impl ServerStore for Counting {
    fn read(&self, server: &ServerKey, read: &mut dyn FnMut(&ServerRecord)) {
        self.memory.read(server, read);
    }

    fn change(
        &self,
        now: SystemTime,
        server: &ServerKey,
        change: &mut dyn FnMut(&mut ServerRecord),
    ) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.memory.change(now, server, change);
    }
}

#[tokio::test]
async fn what_is_remembered_outlives_an_endpoint_in_a_store_of_the_application() {
    for backend in Backend::ALL {
        let store = Arc::new(Counting::default());
        let server = server("127.0.0.1:0");
        for is_second in [false, true] {
            let config = client_config().tls(backend).server_store(store.clone());
            let stored = config.session_memory() == SessionMemory::Stored;
            let pair = Pair::of(server.clone(), Endpoint::client(config).unwrap()).await;
            assert_eq!(pair.client.handshake().resumed, is_second && stored);
            // The ticket has arrived by then.
            assert_eq!(pair.echo(b"a round trip").await, b"a round trip");
        }
        assert!(store.changes.load(Ordering::Relaxed) > 0);
        assert_eq!(store.memory.names(), ["localhost"]);
    }
}

#[test]
fn it_is_told_where_sessions_are() {
    let config = || client_config().tls(Backend::S2nTls);
    let memory = |config: ClientConfig| config.session_memory();
    let trust = || Trust::roots_der([]).also(Pinned(CertificateDer::from(Vec::new())));
    let provider = ClientOptions::new();
    let provider = Backend::Rustls.client(&provider).unwrap();
    let of_the_application =
        |tls: ClientOptions| tls.session_store(Arc::new(MemorySessions::new()));
    assert_eq!(memory(config()), SessionMemory::Stored);
    for (config, place) in [
        (config().tls(Backend::Rustls), SessionMemory::Library),
        (config().profile(Profile::Bsi), SessionMemory::Profile),
        (config().trust(trust()), SessionMemory::Verifier),
        (config().provider(provider), SessionMemory::Application),
        (
            config().tls_options(of_the_application),
            SessionMemory::Application,
        ),
        (config().without_resumption(), SessionMemory::Off),
    ] {
        assert_eq!(memory(config), place);
    }
}

#[test]
fn a_store_that_the_library_cannot_fill_is_refused_with_the_remedy() {
    let config = client_config()
        .tls_options(|tls: ClientOptions| tls.session_store(Arc::new(MemorySessions::new())));
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("s2n-tls"), "{error}");
}
