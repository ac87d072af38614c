//! What compression of certificates (RFC 8879) saves, for the table in `quic/evidence/post-quantum.md`.

use std::sync::Arc;

use hybriq::{
    Backend, Group, Identity, KeyExchange, Trust,
    stats::{AddressProof, FirstFlight},
    tls::{CertificateCompression, CertificateDer, PrivateKeyDer},
};
use hybriq_proto::endpoint::Setup;
use hybriq_tls::{ClientOptions, ServerOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CrlDistributionPoint, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, RsaKeySize, SignatureAlgorithm,
};

use crate::support::transport;

/// A kind of chain, and what its first flight is without compression, with zlib and with brotli.
struct Row {
    name: &'static str,
    key: &'static SignatureAlgorithm,
    /// Certificates that are sent.
    sent: usize,
    /// Names of the server.
    names: usize,
    /// Bytes of the message with the certificates.
    bytes: [usize; 3],
    /// Datagrams of the flight, to a client with X25519MLKEM768.
    datagrams: [usize; 3],
    /// Round trips until the handshake is complete, to a client with X25519MLKEM768 and to one with
    /// X25519.
    round_trips: [[u32; 3]; 2],
}

const fn row(
    (name, key): (&'static str, &'static SignatureAlgorithm),
    (sent, names): (usize, usize),
    bytes: [usize; 3],
    datagrams: [usize; 3],
    round_trips: [[u32; 3]; 2],
) -> Row {
    Row {
        name,
        key,
        sent,
        names,
        bytes,
        datagrams,
        round_trips,
    }
}

const ECDSA: (&str, &SignatureAlgorithm) = ("ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256);
const RSA: (&str, &SignatureAlgorithm) = ("RSA 2048", &rcgen::PKCS_RSA_SHA256);
const ML_DSA: (&str, &SignatureAlgorithm) = ("ML-DSA-65", &rcgen::PKCS_ML_DSA_65);

/// The bytes vary a little: signatures and keys differ from run to run.
static ROWS: [Row; 7] = [
    row(
        ECDSA,
        (1, 2),
        [540, 483, 460],
        [2, 2, 2],
        [[1, 1, 1], [1, 1, 1]],
    ),
    row(
        ECDSA,
        (2, 2),
        [1132, 758, 717],
        [3, 2, 2],
        [[1, 1, 1], [1, 1, 1]],
    ),
    row(
        ECDSA,
        (1, 100),
        [2598, 765, 594],
        [4, 2, 2],
        [[1, 1, 1], [1, 1, 1]],
    ),
    row(
        RSA,
        (1, 2),
        [935, 895, 905],
        [3, 3, 3],
        [[1, 1, 1], [1, 1, 1]],
    ),
    row(
        RSA,
        (3, 2),
        [2913, 2171, 2093],
        [4, 4, 4],
        [[1, 1, 1], [2, 1, 1]],
    ),
    row(
        ML_DSA,
        (1, 2),
        [5664, 5647, 5600],
        [10, 10, 9],
        [[2, 2, 2], [2, 2, 2]],
    ),
    row(
        ML_DSA,
        (2, 2),
        [11_382, 11_040, 10_970],
        [14, 14, 14],
        [[2, 2, 2], [3, 2, 2]],
    ),
];

/// Bytes by which a row may differ. Brotli of an RSA certificate varies most.
const TOLERANCE: usize = 60;

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let names = &mut params.distinguished_name;
    *names = rcgen::DistinguishedName::new();
    names.push(DnType::CountryName, "US");
    names.push(DnType::OrganizationName, "Example Trust Services");
    names.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params.crl_distribution_points = lists();
    params
}

/// A place of a revocation list, as public authorities name it.
fn lists() -> Vec<CrlDistributionPoint> {
    vec![CrlDistributionPoint {
        uris: vec!["http://crl.example.com/issuing-1.crl".to_owned()],
    }]
}

/// Returns a chain as public authorities make them, and its root.
fn chain(row: &Row) -> (Identity, CertificateDer<'static>) {
    // Each has a key of its own: one key in two certificates would be compressed.
    let key = || {
        if row.key == &rcgen::PKCS_RSA_SHA256 {
            KeyPair::generate_rsa_for(row.key, RsaKeySize::_2048).unwrap()
        } else {
            KeyPair::generate_for(row.key).unwrap()
        }
    };
    let mut above = key();
    let mut params = authority("Example Root 1");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&above).unwrap().der().clone();
    let mut chain = Vec::new();
    for number in 1..row.sent {
        let issuer = Issuer::from_params(&params, &above);
        let own = key();
        let mut next = authority(&format!("Example Issuing Authority {number}"));
        next.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        chain.insert(0, next.signed_by(&own, &issuer).unwrap().der().clone());
        (params, above) = (next, own);
    }
    let names = (1..row.names).map(|n| format!("host-{n}.example.com"));
    let names: Vec<String> = std::iter::once("localhost".to_owned())
        .chain(names)
        .collect();
    let mut leaf = CertificateParams::new(names).unwrap();
    leaf.distinguished_name = rcgen::DistinguishedName::new();
    leaf.distinguished_name
        .push(DnType::CommonName, "localhost");
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    leaf.crl_distribution_points = lists();
    let issuer = Issuer::from_params(&params, &above);
    let key = key();
    chain.insert(0, leaf.signed_by(&key, &issuer).unwrap().der().clone());
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (Identity::from_der(chain, key), root)
}

/// Forecasts the first flight of a server that compresses by one algorithm or by none.
fn flight(
    (identity, root): &(Identity, CertificateDer<'static>),
    algorithm: Option<CertificateCompression>,
    group: Group,
) -> FirstFlight {
    let client = ClientOptions::new()
        .alpn(["sim"])
        .trust(Trust::roots_der([root.clone()]))
        .without_resumption()
        .key_exchange(KeyExchange::Exactly(vec![group]))
        .certificate_compression(algorithm);
    let server = ServerOptions::new(identity.clone())
        .alpn(["sim"])
        .without_tickets()
        .certificate_compression(algorithm);
    let setup = |provider| Setup {
        provider,
        transport: Arc::new(transport()),
    };
    let client = setup(Backend::Rustls.client(&client).unwrap());
    let server = setup(Backend::Rustls.server(&server).unwrap());
    let flights = server.first_flights(&client, "localhost", AddressProof::None);
    let flight = flights.unwrap().remove(0);
    assert_eq!(flight.compression, algorithm);
    flight
}

/// Prints the table, and compares it: names shrink, keys and signatures do not.
#[test]
fn compression_saves_what_the_table_says() {
    let algorithms = [
        None,
        Some(CertificateCompression::Zlib),
        Some(CertificateCompression::Brotli),
    ];
    for row in &ROWS {
        let chain = chain(row);
        let [post_quantum, classical] = [Group::X25519MLKEM768, Group::X25519]
            .map(|group| algorithms.map(|algorithm| flight(&chain, algorithm, group)));
        let bytes = post_quantum.each_ref().map(|it| it.certificate_bytes);
        let datagrams = post_quantum.each_ref().map(|it| it.datagrams);
        let round_trips =
            [&post_quantum, &classical].map(|it| it.each_ref().map(|it| it.round_trips));
        let what = format!("{}, {} sent, {} names", row.name, row.sent, row.names);
        println!("{what}: {bytes:?} bytes, {datagrams:?} datagrams, {round_trips:?} round trips");
        for (seen, expected) in bytes.into_iter().zip(row.bytes) {
            assert!(seen.abs_diff(expected) <= TOLERANCE, "{what}: {bytes:?}");
        }
        for (seen, expected) in datagrams.into_iter().zip(row.datagrams) {
            assert!(seen.abs_diff(expected) <= 1, "{what}: {datagrams:?}");
        }
        assert_eq!(round_trips, row.round_trips, "{what}");
    }
}
