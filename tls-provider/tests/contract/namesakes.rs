//! Roots of the same name with other keys: who is trusted is a matter of keys.

use hybriq_tls::{
    CertificateDer, ClientAuth, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Side, Trust,
};
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, SignatureAlgorithm,
};

use crate::support::{ALPN, HOST, Pair, options, pairings};

/// A certificate with its root. Every root has the same name.
struct Namesake {
    root: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Namesake {
    /// Makes one that signed itself, as `rcgen::generate_simple_self_signed` does.
    fn self_signed(kind: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(kind).expect("a key");
        let params = CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        let leaf = params.self_signed(&key).expect("a certificate");
        Self {
            root: leaf.der().clone(),
            leaf: leaf.der().clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }

    /// Makes one that an authority signed.
    fn issued(kind: &'static SignatureAlgorithm) -> Self {
        let root_key = KeyPair::generate_for(kind).expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&root_key).expect("a root").der().clone();
        let issuer = Issuer::new(params, root_key);
        let key = KeyPair::generate_for(kind).expect("a key");
        let params = CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        let leaf = params.signed_by(&key, &issuer).expect("a leaf");
        Self {
            root,
            leaf: leaf.der().clone(),
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }

    fn identity(&self) -> Identity {
        Identity::from_der(vec![self.leaf.clone()], self.key.clone_key())
    }

    fn trust(&self) -> Trust {
        Trust::roots_der([self.root.clone()])
    }
}

/// Certificates that an end shows, each with one of a root that the peer trusts in its place.
fn cases() -> Vec<(Namesake, Namesake)> {
    let (p256, p384) = (&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384);
    let mut cases = Vec::new();
    for (shown, trusted) in [(p256, p256), (p384, p256), (p256, p384)] {
        cases.push((Namesake::self_signed(shown), Namesake::self_signed(trusted)));
        cases.push((Namesake::issued(shown), Namesake::issued(trusted)));
    }
    cases
}

#[test]
fn a_server_below_a_namesake_of_a_trusted_root_is_alert_48() {
    for (shown, trusted) in cases() {
        for pairing in pairings() {
            let client = ClientOptions::new().alpn(ALPN).trust(trusted.trust());
            let server = ServerOptions::new(shown.identity()).alpn(ALPN);
            let failure = Pair::of(pairing, &(client, server)).fail();
            failure.assert(Side::Client, 48);
            let text = failure.error.to_string();
            assert!(text.contains("trust`"), "{text}");
        }
    }
}

#[test]
fn a_client_below_a_namesake_of_a_trusted_root_is_alert_48() {
    for (shown, trusted) in cases() {
        for pairing in pairings() {
            let (client, server) = options();
            let client = client.identity(shown.identity());
            let server = server.client_auth(ClientAuth::Required(trusted.trust()));
            let failure = Pair::of(pairing, &(client, server)).fail();
            failure.assert(Side::Server, 48);
            let text = failure.error.to_string();
            assert!(text.contains("trust`"), "{text}");
        }
    }
}

/// s2n-tls does not always find it.
#[cfg(feature = "rustls")]
#[test]
fn a_trusted_root_is_found_beside_its_namesakes() {
    let rustls = &crate::support::CONTENDERS[0];
    for (shown, other) in cases() {
        let trust = Trust::roots_der([other.root.clone(), shown.root.clone()]);
        let client = ClientOptions::new().alpn(ALPN).trust(trust);
        let server = ServerOptions::new(shown.identity()).alpn(ALPN);
        Pair::of((rustls, rustls), &(client, server)).complete();
    }
}

/// No root could help here.
#[cfg(feature = "rustls")]
#[test]
fn a_chain_signed_by_an_unknown_algorithm_is_alert_43() {
    // ECDSA with SHA-256 becomes ECDSA with SHA-224.
    let (known, unknown) = ([0xce, 0x3d, 4, 3, 2], [0xce, 0x3d, 4, 3, 1]);
    let mut shown = Namesake::issued(&PKCS_ECDSA_P256_SHA256);
    let mut der = shown.leaf.to_vec();
    let places: Vec<usize> = (0..der.len())
        .filter(|at| der[*at..].starts_with(&known))
        .collect();
    assert_eq!(places.len(), 2);
    for at in places {
        der[at..at + unknown.len()].copy_from_slice(&unknown);
    }
    shown.leaf = der.into();
    let rustls = &crate::support::CONTENDERS[0];
    let client = ClientOptions::new().alpn(ALPN).trust(shown.trust());
    let server = ServerOptions::new(shown.identity()).alpn(ALPN);
    let failure = Pair::of((rustls, rustls), &(client, server)).fail();
    failure.assert(Side::Client, 43);
    assert!(
        failure.error.detail.contains("does not verify"),
        "{}",
        failure.error
    );
}
