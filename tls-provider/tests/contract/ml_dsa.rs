//! ML-DSA certificates (RFC 9881): at both ends, in chains, and keys in every form of PKCS #8.

use hybriq_tls::{
    CertificateAlgorithms, ClientAuth, ClientOptions, ConfigError, Identity, KeyAlgorithm,
    KeyExchange, PrivateKeyDer, ServerOptions, SignatureScheme, Trust,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::support::{ALPN, Contender, HOST, Pair, with_ml_dsa};

/// Parameter sets with their code points in TLS (draft-ietf-tls-mldsa).
const KINDS: [(&rcgen::SignatureAlgorithm, KeyAlgorithm, u16); 3] = [
    (&rcgen::PKCS_ML_DSA_44, KeyAlgorithm::MlDsa44, 0x0904),
    (&rcgen::PKCS_ML_DSA_65, KeyAlgorithm::MlDsa65, 0x0905),
    (&rcgen::PKCS_ML_DSA_87, KeyAlgorithm::MlDsa87, 0x0906),
];

/// A root, and certificates for both ends below an intermediate.
struct Hierarchy {
    trust: Trust,
    server: Identity,
    client: Identity,
}

impl Hierarchy {
    fn new(kind: &'static rcgen::SignatureAlgorithm) -> Self {
        let key = || KeyPair::generate_for(kind).expect("a key");
        let authority = |name: &str| {
            let mut params = CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params
                .distinguished_name
                .push(rcgen::DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            params
        };
        let root = CertifiedIssuer::self_signed(authority("root"), key()).expect("a root");
        let intermediate = CertifiedIssuer::signed_by(authority("intermediate"), key(), &root);
        let intermediate = intermediate.expect("an intermediate");
        let leaf = |purpose| {
            let key = key();
            let mut params = CertificateParams::new([HOST.to_owned()]).expect("parameters");
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![purpose];
            let leaf = params.signed_by(&key, &intermediate).expect("a leaf");
            let chain = vec![leaf.der().clone(), intermediate.der().clone()];
            Identity::from_der(chain, PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        };
        Self {
            server: leaf(ExtendedKeyUsagePurpose::ServerAuth),
            client: leaf(ExtendedKeyUsagePurpose::ClientAuth),
            trust: Trust::roots_der([root.der().clone()]),
        }
    }
}

fn pairings_with_ml_dsa() -> impl Iterator<Item = (&'static Contender, &'static Contender)> {
    with_ml_dsa().flat_map(|client| with_ml_dsa().map(move |server| (client, server)))
}

/// Each end verifies the chain of the other, whichever library it has.
#[test]
fn both_ends_show_chains_of_every_parameter_set() {
    for (kind, algorithm, scheme) in KINDS {
        let hierarchy = Hierarchy::new(kind);
        for pairing in pairings_with_ml_dsa() {
            let client = ClientOptions::new()
                .alpn(ALPN)
                .trust(hierarchy.trust.clone())
                .identity(hierarchy.client.clone());
            let server = ServerOptions::new(hierarchy.server.clone())
                .alpn(ALPN)
                .client_auth(ClientAuth::Required(hierarchy.trust.clone()));
            let done = Pair::of(pairing, &(client, server)).complete();
            for end in [&done.client, &done.server] {
                let shown = end.session.peer_certificates();
                assert!(shown.len() >= 2, "{} certificates", shown.len());
                for certificate in &shown {
                    let found = CertificateAlgorithms::of(certificate).expect("algorithms");
                    assert_eq!(found.key, algorithm);
                    assert!(found.is_post_quantum());
                }
            }
            let signed = [&done.client, &done.server].map(|end| end.session.negotiated());
            let schemes = signed.iter().filter_map(|it| it.signature_scheme);
            assert!(
                schemes.clone().all(|it| it == SignatureScheme(scheme)) && schemes.count() > 0,
                "{scheme:04x}"
            );
        }
    }
}

/// A server that takes no classical key exchange may have an ML-DSA certificate with either library.
#[test]
fn a_server_requires_post_quantum_keys_and_shows_a_post_quantum_chain() {
    for (kind, ..) in KINDS {
        let hierarchy = Hierarchy::new(kind);
        for server_of in with_ml_dsa() {
            for client_of in with_ml_dsa() {
                let client = ClientOptions::new()
                    .alpn(ALPN)
                    .trust(hierarchy.trust.clone());
                let server = ServerOptions::new(hierarchy.server.clone())
                    .alpn(ALPN)
                    .key_exchange(KeyExchange::RequirePostQuantum);
                let done = Pair::of((client_of, server_of), &(client, server)).complete();
                let group = done.server.session.negotiated().group.expect("a group");
                assert!(group.is_post_quantum());
            }
        }
    }
}

/// Keys as OpenSSL 3.5 writes them, with the certificate of the key. They protect nothing.
const CERTIFICATE: &[u8] = include_bytes!("keys/certificate.pem");
const FORMS: [(&str, &[u8]); 3] = [
    ("seed", include_bytes!("keys/seed.pem")),
    ("expanded key", include_bytes!("keys/expanded.pem")),
    ("both", include_bytes!("keys/both.pem")),
];

/// The CHOICE of RFC 9881 §6.
#[test]
fn a_private_key_is_read_in_each_of_its_forms() {
    let trust = Trust::roots_pem(CERTIFICATE).expect("a root");
    for (form, key) in FORMS {
        let identity = Identity::from_pem(CERTIFICATE, key).expect("PEM");
        for pairing in pairings_with_ml_dsa() {
            println!("{form}, {} to {}", pairing.0.name, pairing.1.name);
            let client = ClientOptions::new().alpn(ALPN).trust(trust.clone());
            let server = ServerOptions::new(identity.clone()).alpn(ALPN);
            Pair::of(pairing, &(client, server)).complete();
        }
    }
}

#[cfg(all(unix, feature = "s2n-tls", feature = "fips"))]
#[test]
fn s2n_tls_over_a_fips_module_says_that_it_has_no_ml_dsa() {
    use hybriq_tls::{Backend, Profile};

    const REMEDY: &str = "no ML-DSA over a FIPS module; use rustls";
    let identity = Identity::from_pem(CERTIFICATE, FORMS[0].1).expect("PEM");
    let options = ServerOptions::new(identity).alpn(ALPN);
    let error = Backend::S2nTls.server(&options).err().expect("an error");
    assert!(error.to_string().contains(REMEDY), "{error}");
    for profile in [Profile::Cnsa2, Profile::Asd] {
        let client = ClientOptions::new().alpn(ALPN).profile(profile);
        let error = Backend::S2nTls.client(&client).err().expect("an error");
        assert!(error.to_string().contains(REMEDY), "{error}");
    }
}

/// Forms of drafts before RFC 9881 are refused, and the error says how to convert them.
#[test]
fn a_private_key_in_another_form_is_told_with_the_remedy() {
    let key = include_bytes!("keys/bare-seed.pem");
    let identity = Identity::from_pem(CERTIFICATE, key).expect("PEM");
    for contender in with_ml_dsa() {
        let options = ServerOptions::new(identity.clone()).alpn(ALPN);
        let error = (contender.server)(&options).err().expect("an error");
        let text = error.to_string();
        assert!(matches!(error, ConfigError::Identity(_)), "{text}");
        assert!(text.contains("openssl pkey"), "{}: {text}", contender.name);
    }
}

/// The keys of another certificate are no form of this one's.
#[test]
fn a_key_of_another_certificate_is_refused() {
    let other = KeyPair::generate_for(&rcgen::PKCS_ML_DSA_44).expect("a key");
    let pem = other.serialize_pem();
    let identity = Identity::from_pem(CERTIFICATE, pem.as_bytes()).expect("PEM");
    for contender in with_ml_dsa() {
        let options = ServerOptions::new(identity.clone()).alpn(ALPN);
        let error = (contender.server)(&options).err().expect("an error");
        let text = error.to_string();
        assert!(
            text.contains("belong together"),
            "{}: {text}",
            contender.name
        );
    }
}
