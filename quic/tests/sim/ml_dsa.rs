//! What certificates with ML-DSA cost in round trips: only what the limits of the first flight say.

use hybriq::{
    Backend, Group, Identity,
    fleet::{AddressValidation, TokenKeys},
    memory::ServerMemory,
    tls::{CertificateDer, PrivateKeyDer, Side},
};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{Ask, PacketKind, Progress, World};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::support::{
    LIMIT, RTT, client_of_root, plain, remembering, server_of_identity, transport,
};

/// A chain, and the round trips that it costs beyond those of a small certificate.
struct Case {
    kind: &'static rcgen::SignatureAlgorithm,
    /// Certificates that the server sends.
    chain: usize,
    datagram_size: u16,
    /// Without a token the server sends three times what the client did (RFC 9000 §8.1).
    without_token: u32,
    /// With one, the initial window of ten datagrams is the limit (RFC 9002 §7.2).
    with_token: u32,
}

const fn case(
    kind: &'static rcgen::SignatureAlgorithm,
    (chain, datagram_size): (usize, u16),
    without_token: u32,
    with_token: u32,
) -> Case {
    Case {
        kind,
        chain,
        datagram_size,
        without_token,
        with_token,
    }
}

static CASES: [Case; 4] = [
    case(&rcgen::PKCS_ECDSA_P256_SHA256, (2, 1200), 0, 0),
    case(&rcgen::PKCS_ML_DSA_44, (1, 1200), 1, 0),
    case(&rcgen::PKCS_ML_DSA_65, (1, 1200), 1, 0),
    case(&rcgen::PKCS_ML_DSA_87, (1, 1200), 1, 1),
];

/// Makes a chain below a root.
fn identity(case: &Case) -> (Identity, CertificateDer<'static>) {
    let key = || KeyPair::generate_for(case.kind).unwrap();
    let authority = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let mut issuer = CertifiedIssuer::self_signed(authority("root"), key()).unwrap();
    let root = issuer.der().clone();
    let mut chain = Vec::new();
    for _ in 1..case.chain {
        issuer = CertifiedIssuer::signed_by(authority("intermediate"), key(), &issuer).unwrap();
        chain.insert(0, issuer.der().clone());
    }
    let key = key();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    chain.insert(0, params.signed_by(&key, &issuer).unwrap().der().clone());
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    (Identity::from_der(chain, key), root)
}

/// Connects twice, the second time with the token of the first; returns the world and the round
/// trips of each beyond the two of a small certificate.
fn rounds(client: &Setup, server: &Setup) -> (World, [u32; 2]) {
    let mut world = World::new(plain(1), server.clone());
    let keys = TokenKeys::from_secret([3; 32]);
    world
        .server_mut()
        .validate_addresses(keys, AddressValidation::Never);
    world.connect(client, Ask::one_byte());
    world.run(LIMIT);
    world.connect_again(0, client, Ask::one_byte());
    let began = world.now();
    world.run(LIMIT);
    let peers = world.client_host(0).peers();
    let took = [0, 1].map(|round| {
        let peer = &peers[round];
        assert_eq!(peer.progress(), Progress::Done, "{:?}", peer.close_reason());
        assert!(!peer.handshake.as_ref().unwrap().resumed);
        let since = [std::time::Duration::ZERO, began][round];
        let took = peer.done_at.unwrap().saturating_sub(since).as_millis();
        assert_eq!(took % RTT.as_millis(), 0, "{took} ms");
        u32::try_from(took / RTT.as_millis()).unwrap() - 2
    });
    assert_eq!(world.server().stats().addresses_validated, 1);
    (world, took)
}

/// Chains beyond a limit cost one round trip, and no chain costs more than its limits say, with
/// either library at the server.
///
/// Proves: rfc9000 8.1 all-bytes-of-a-datagram-count
#[test]
fn a_chain_costs_the_round_trips_that_its_size_says() {
    for (index, case) in CASES.iter().enumerate() {
        let (identity, root) = identity(case);
        for backend in Backend::ALL {
            let transport = || transport().datagram_size(case.datagram_size);
            let client =
                client_of_root(root.clone(), remembering(transport(), &ServerMemory::new()));
            let server = server_of_identity(backend, identity.clone(), transport());
            let (world, took) = rounds(&client, &server);
            assert_eq!(
                took,
                [case.without_token, case.with_token],
                "case {index}, {backend}"
            );
            let agreed = world
                .client(0)
                .handshake
                .as_ref()
                .unwrap()
                .key_exchange
                .group;
            assert_eq!(agreed, Group::X25519MLKEM768);
            predicted(&world, case);
        }
    }
}

/// Checks the cases themselves: the sizes on the wire say the same.
fn predicted(world: &World, case: &Case) {
    let size = usize::from(case.datagram_size);
    let first_flight: usize = world
        .trace()
        .sent(Side::Server)
        .filter(|record| record.at.is_zero())
        .map(|record| record.size)
        .sum();
    let handshake: usize = world
        .trace()
        .sent(Side::Client)
        .filter(|record| record.at < 3 * RTT)
        .filter(|record| record.has(PacketKind::Handshake) || record.has(PacketKind::Initial))
        .map(|record| record.size)
        .sum();
    let window = (10 * size).min(14_720);
    assert_eq!(
        handshake > 3 * first_flight,
        case.without_token > 0,
        "{handshake} bytes"
    );
    assert_eq!(handshake > window, case.with_token > 0, "{handshake} bytes");
}
