//! Forecasts of first flights, compared with what is then on the wire.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hybriq::{
    Backend, Group, Identity, KeyExchange, Trust,
    fleet::{AddressValidation, TokenKeys},
    memory::ServerMemory,
    stats::{AddressProof, FirstFlight, FlightLimit},
    tls::{CertificateCompression, CertificateDer, ChainChoice, ClientAuth, PrivateKeyDer, Side},
};
use hybriq_proto::{config::ServerTerms, endpoint::Setup};
use hybriq_sim::{Answer, Ask, Echo, PacketKind, Progress, Record, World};
use hybriq_tls::{ClientOptions, Provider, ServerOptions};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, RsaKeySize};

use crate::support::{LIMIT, RTT, check, only, plain, remembering, transport};

/// A leaf, an intermediate and a root with one key of a kind.
struct Chain {
    name: &'static str,
    certificates: [CertificateDer<'static>; 2],
    root: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Chain {
    fn new(name: &'static str, key: &KeyPair) -> Self {
        let named = |name: &str| {
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params
        };
        let authority = |of: &str| {
            let mut params = named(&format!("{name} {of}"));
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let root = authority("root");
        let root_certificate = root.self_signed(key).unwrap();
        let issuer = Issuer::from_params(&root, key);
        let second = authority("intermediate");
        let intermediate = second.signed_by(key, &issuer).unwrap();
        let issuer = Issuer::from_params(&second, key);
        let leaf = named(name).signed_by(key, &issuer).unwrap();
        Self {
            name,
            certificates: [leaf.der().clone(), intermediate.der().clone()],
            root: root_certificate.der().clone(),
            key: der,
        }
    }

    /// The leaf with this many intermediates.
    fn identity(&self, intermediates: usize) -> Identity {
        let chain = self.certificates[..=intermediates].to_vec();
        Identity::from_der(chain, self.key.clone_key())
    }

    /// Trust in the root, for clients that know the intermediate.
    fn trust(&self) -> Trust {
        let [_, intermediate] = &self.certificates;
        Trust::roots_der([self.root.clone()]).intermediates([intermediate.clone()])
    }
}

fn chains() -> Vec<Chain> {
    let of = |algorithm| KeyPair::generate_for(algorithm).unwrap();
    let rsa = |size| KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, size).unwrap();
    [
        ("ECDSA P-256", of(&rcgen::PKCS_ECDSA_P256_SHA256)),
        ("ECDSA P-384", of(&rcgen::PKCS_ECDSA_P384_SHA384)),
        ("Ed25519", of(&rcgen::PKCS_ED25519)),
        ("RSA 2048", rsa(RsaKeySize::_2048)),
        ("RSA 3072", rsa(RsaKeySize::_3072)),
        ("RSA 4096", rsa(RsaKeySize::_4096)),
        ("ML-DSA-44", of(&rcgen::PKCS_ML_DSA_44)),
        ("ML-DSA-65", of(&rcgen::PKCS_ML_DSA_65)),
        ("ML-DSA-87", of(&rcgen::PKCS_ML_DSA_87)),
    ]
    .map(|(name, key)| Chain::new(name, &key))
    .into()
}

fn setup(provider: Arc<dyn Provider>) -> Setup {
    Setup {
        provider,
        transport: Arc::new(transport()),
    }
}

/// A client that keeps the tokens of servers.
fn with_tokens(options: &ClientOptions) -> Setup {
    let transport = remembering(transport(), &ServerMemory::new());
    Setup {
        provider: Backend::Rustls.client(options).unwrap(),
        transport: Arc::new(transport),
    }
}

fn client(trust: Trust, policy: KeyExchange) -> ClientOptions {
    ClientOptions::new()
        .alpn(["sim"])
        .trust(trust)
        .without_resumption()
        .key_exchange(policy)
}

fn server(identity: Identity) -> ServerOptions {
    ServerOptions::new(identity).alpn(["sim"]).without_tickets()
}

/// Facts that the wire shows.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    datagrams: usize,
    bytes: usize,
    at_once: usize,
    client_datagrams: usize,
    round_trips: u32,
}

/// Largest packet with an acknowledgement alone.
const ACK: usize = 51;

fn carries_handshake(record: &Record) -> bool {
    record.packets.iter().any(|packet| {
        let handshake = matches!(packet.kind, PacketKind::Initial | PacketKind::Handshake);
        handshake && packet.range.len() > ACK
    })
}

/// Runs a handshake after `before` round trips of other things. With a token, an earlier connection
/// brings it.
fn seen(client: &Setup, server: &Setup, proof: AddressProof, before: u32) -> (Seen, World) {
    let mut world = World::new(plain(1), server.clone());
    let (keys, host) = (TokenKeys::from_secret([3; 32]), world.server_mut());
    match proof {
        AddressProof::Token => host.validate_addresses(keys, AddressValidation::Never),
        AddressProof::Retry => host.validate_addresses(keys, AddressValidation::Always),
        _ => {}
    }
    world.connect(client, Ask::one_byte());
    world.run(LIMIT);
    check(&world);
    let (mut began, mut at_server) = (Duration::ZERO, Told::default());
    if proof == AddressProof::Token {
        assert_eq!(world.server().stats().addresses_validated, 0);
        began = world.now();
        at_server = forecast_at(&mut world, server);
        world.connect_again(0, client, Ask::one_byte());
        world.run(LIMIT);
        let stats = world.server().stats();
        assert_eq!((stats.addresses_validated, stats.retries_sent), (1, 0));
    }
    let seen = on_the_wire(&world, began, before);
    if let Some(told) = at_server.lock().unwrap().first() {
        let told = (told.datagrams, told.at_once, told.round_trips, told.varies);
        let wire = (seen.datagrams, seen.at_once, seen.round_trips, told.3);
        assert!(told.3 || told == wire, "at the server: {told:?}, {wire:?}");
    }
    (seen, world)
}

/// Forecasts that the server made of clients as they came.
type Told = Arc<Mutex<Vec<FirstFlight>>>;

/// Lets the server forecast the answer to the next client before it accepts it.
fn forecast_at(world: &mut World, setup: &Setup) -> Told {
    let (told, setup) = (Told::default(), setup.clone());
    let kept = told.clone();
    world.server_mut().on_incoming(move |incoming| {
        *kept.lock().unwrap() = incoming.first_flights(&setup);
        Answer::Accept(None, Box::new(Echo::new()))
    });
    told
}

/// Returns what the wire shows of the last connection, which began then.
fn on_the_wire(world: &World, began: Duration, before: u32) -> Seen {
    let start = began + RTT * before;
    let flight: Vec<&Record> = world
        .trace()
        .sent(Side::Client)
        .filter(|record| record.at > start && carries_handshake(record))
        .collect();
    let hellos = world.trace().sent(Side::Server);
    let hellos = hellos.filter(|record| record.at == start);
    let last = world.client_host(0).peers().last().expect("a connection");
    assert_eq!(last.progress(), Progress::Done, "{:?}", last.close_reason());
    let took = last.done_at.expect("an answer").saturating_sub(began);
    Seen {
        datagrams: flight.len(),
        bytes: flight.iter().map(|record| record.size).sum(),
        at_once: flight
            .iter()
            .filter(|record| record.at == start + RTT / 2)
            .count(),
        client_datagrams: hellos
            .filter(|record| record.has(PacketKind::Initial))
            .count(),
        round_trips: (took.as_millis() / RTT.as_millis()) as u32 - 1,
    }
}

/// Compares the forecast with the wire.
#[track_caller]
fn assert_forecast(what: &str, client: &Setup, server: &Setup, proof: AddressProof) -> FirstFlight {
    let flights = server.first_flights(client, "localhost", proof).unwrap();
    let told = flights.first().expect("a forecast").clone();
    let before = u32::from(told.hello_retry) + u32::from(proof == AddressProof::Retry);
    let (seen, world) = seen(client, server, proof, before);
    let expected = Seen {
        datagrams: told.datagrams,
        // Where signatures of ECDSA vary, so do the bytes.
        bytes: match told.bytes.abs_diff(seen.bytes) {
            0..=8 if what.contains("ECDSA") => seen.bytes,
            _ => told.bytes,
        },
        at_once: told.at_once,
        client_datagrams: told.client_datagrams,
        round_trips: told.round_trips,
    };
    let may_differ = told.varies;
    assert!(
        may_differ || seen == expected,
        "{what}: {seen:?}\n{told:?}\n{}",
        world.trace()
    );
    told
}

/// Every kind of certificate, alone and with an intermediate, with every group, with and without a
/// token: the forecast is what the wire shows.
#[test]
fn a_forecast_is_what_the_wire_shows() {
    let mut extra = 0;
    for chain in chains() {
        for intermediates in [0, 1] {
            let options = server(chain.identity(intermediates));
            for backend in Backend::ALL {
                let Ok(provider) = backend.server(&options) else {
                    assert_eq!(backend, Backend::S2nTls, "{}", chain.name);
                    continue;
                };
                let server = setup(provider);
                for group in Group::ALL {
                    let client = client(chain.trust(), only(group));
                    let client = setup(Backend::Rustls.client(&client).unwrap());
                    let none = AddressProof::None;
                    let flights = server.first_flights(&client, "localhost", none).unwrap();
                    let s2n = backend == Backend::S2nTls;
                    let lacks =
                        s2n && chain.name.starts_with("ML-DSA") && group == Group::MLKEM1024;
                    if flights.is_empty() || lacks {
                        assert!(s2n, "{} {group}", chain.name);
                        continue;
                    }
                    for proof in [none, AddressProof::Retry] {
                        let what = format!(
                            "{backend}, {} with {intermediates} intermediates, {group}, {proof:?}",
                            chain.name
                        );
                        let told = assert_forecast(&what, &client, &server, proof);
                        extra += usize::from(told.limit.is_some());
                    }
                }
            }
        }
    }
    assert!(extra > 10, "{extra} flights were cut");
}

/// The token of an earlier connection (NEW_TOKEN) lifts the limit of three times the bytes received, and
/// costs no round trip.
#[test]
fn a_token_of_an_earlier_connection_is_forecast() {
    let mut saved = 0;
    for chain in chains() {
        for intermediates in [0, 1] {
            let server = server(chain.identity(intermediates));
            let server = setup(Backend::Rustls.server(&server).unwrap());
            for group in [Group::X25519MLKEM768, Group::X25519] {
                let client = with_tokens(&client(chain.trust(), only(group)));
                let what = format!("{} and {intermediates}, {group}, a token", chain.name);
                let told = assert_forecast(&what, &client, &server, AddressProof::Token);
                assert_ne!(told.limit, Some(FlightLimit::Amplification), "{what}");
                let without = server.first_flights(&client, "localhost", AddressProof::None);
                let without = without.unwrap().remove(0).round_trips;
                assert!(told.round_trips <= without, "{what}");
                saved += without - told.round_trips;
            }
        }
    }
    assert!(saved > 5, "tokens saved {saved} round trips");
}

#[test]
fn a_request_for_another_share_is_forecast() {
    let chain = Chain::new(
        "ML-DSA-65",
        &KeyPair::generate_for(&rcgen::PKCS_ML_DSA_65).unwrap(),
    );
    for group in Group::ALL {
        let first = match group {
            Group::X25519 | Group::X25519MLKEM768 => Group::SECP256R1,
            _ => Group::X25519,
        };
        let client = client(chain.trust(), KeyExchange::Exactly(vec![first, group]));
        let options = server(chain.identity(1)).key_exchange(only(group));
        let server = setup(Backend::Rustls.server(&options).unwrap());
        for proof in [AddressProof::None, AddressProof::Token, AddressProof::Retry] {
            let client = with_tokens(&client);
            let told = assert_forecast(&format!("{group} by retry"), &client, &server, proof);
            assert!(told.hello_retry);
            assert_eq!(told.group, group);
        }
    }
}

/// The request for a client's certificate is part of the answer. The client's own chain comes after it, and
/// is a small one here: what does not fit into its window would delay what the application asks.
#[test]
fn a_request_for_client_certificates_is_forecast() {
    let chains = [
        ("ML-DSA-44", &rcgen::PKCS_ML_DSA_44),
        ("ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256),
    ];
    let own = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let own = Chain::new("client", &own);
    for (name, algorithm) in chains {
        let chain = Chain::new(name, &KeyPair::generate_for(algorithm).unwrap());
        let options = server(chain.identity(1)).client_auth(ClientAuth::Required(own.trust()));
        let server = setup(Backend::Rustls.server(&options).unwrap());
        for group in [Group::X25519, Group::X25519MLKEM768, Group::MLKEM1024] {
            let options = client(chain.trust(), only(group)).identity(own.identity(0));
            let client = setup(Backend::Rustls.client(&options).unwrap());
            for proof in [AddressProof::None, AddressProof::Retry] {
                assert_forecast(
                    &format!("{name} and a client, {group}"),
                    &client,
                    &server,
                    proof,
                );
            }
        }
    }
}

/// The transport parameter of a commitment is part of the answer too.
#[test]
fn a_commitment_is_forecast() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ML_DSA_44).unwrap();
    let chain = Chain::new("ML-DSA-44", &key);
    let client = client(chain.trust(), only(Group::X25519MLKEM768));
    let client = setup(Backend::Rustls.client(&client).unwrap());
    let day = Duration::from_secs(24 * 60 * 60);
    let server = Setup {
        transport: Arc::new(transport().server_terms(ServerTerms {
            commitment: Some(day),
            ..ServerTerms::NONE
        })),
        ..setup(Backend::Rustls.server(&server(chain.identity(0))).unwrap())
    };
    assert_forecast("commitment", &client, &server, AddressProof::None);
}

#[test]
fn compression_and_known_intermediates_are_forecast() {
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256);
    let key = key.or_else(|_| KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256));
    let chain = Chain::new("ECDSA or RSA", &key.unwrap());
    let options = client(chain.trust(), only(Group::X25519));
    let compressing = options
        .clone()
        .certificate_compression(CertificateCompression::ALL);
    let [plain, compressing] =
        [options, compressing].map(|it| setup(Backend::Rustls.client(&it).unwrap()));
    let server = |options: ServerOptions| setup(Backend::Rustls.server(&options).unwrap());
    let whole = server(self::server(chain.identity(1)));
    let none = AddressProof::None;
    let first = assert_forecast("ECDSA", &plain, &whole, none);
    let options = self::server(chain.identity(1));
    let brotli = server(
        options
            .clone()
            .certificate_compression([CertificateCompression::Brotli]),
    );
    let smaller = assert_forecast("ECDSA, compressed", &compressing, &brotli, none);
    assert_eq!(smaller.compression, Some(CertificateCompression::Brotli));
    assert!(smaller.certificate_bytes < first.certificate_bytes);
    let alone = server(options.leave_out_intermediates());
    let alone = assert_forecast("ECDSA, alone", &plain, &alone, none);
    assert!(alone.certificate_bytes < first.certificate_bytes);
}

/// The post-quantum chain where it costs no round trip, and the small one where it would.
#[test]
fn a_server_chooses_the_chain_that_costs_the_fewest_round_trips() {
    let chain = |name, algorithm| Chain::new(name, &KeyPair::generate_for(algorithm).unwrap());
    let large = chain("ML-DSA-65", &rcgen::PKCS_ML_DSA_65);
    let small = chain("ECDSA P-256", &rcgen::PKCS_ECDSA_P256_SHA256);
    let [_, known] = &large.certificates;
    let trust = Trust::roots_der([large.root.clone(), small.root.clone()]);
    let trust = trust.intermediates([known.clone()]);
    let options = server(large.identity(0)).add_identity(small.identity(1));
    let policy = || KeyExchange::Exactly(vec![Group::X25519]);
    let client = client(trust, policy());
    let client = setup(Backend::Rustls.client(&client).unwrap());
    for (choice, proof, expected, round_trips) in [
        (ChainChoice::First, AddressProof::None, 0x0905, 2),
        (ChainChoice::FewestRoundTrips, AddressProof::None, 0x0403, 1),
        // Nothing but the window limits the answer to a validated client.
        (
            ChainChoice::FewestRoundTrips,
            AddressProof::Retry,
            0x0905,
            2,
        ),
    ] {
        let options = options.clone().chain_choice(choice);
        let server = setup(Backend::Rustls.server(&options).unwrap());
        let before = u32::from(proof == AddressProof::Retry);
        let (seen, world) = seen(&client, &server, proof, before);
        let handshake = world.client(0).handshake.clone().unwrap();
        let scheme = handshake.signature_scheme.map(|scheme| scheme.0);
        assert_eq!(scheme, Some(expected), "{choice:?} {proof:?}");
        assert_eq!(seen.round_trips, round_trips, "{choice:?} {proof:?}");
    }
}
