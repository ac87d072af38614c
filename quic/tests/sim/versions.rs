//! Which version is spoken, whatever the network does to the choice (RFC 9368, RFC 9369 §4).

use std::sync::Arc;

use hybriq::{
    Backend, ConnectionError, Group, KeyExchange, TransportConfig,
    error::{By, Code, ConfigError},
    tls::Side,
    transport::Version,
};
use hybriq_proto::{
    endpoint::Setup,
    wire::packet::{Cid, Decoded, Header, Kind, PacketBuilder, decode, initial_direction},
};
use hybriq_sim::{
    Ask, Datagram, DelayNth, DropNth, Hop, Idle, Initial, InitialFrame, Network, Node, PacketKind,
    Raw, Record, Recut, SERVER_ADDRESS, World, adversary, ms, packets,
};
use hybriq_tls::{ClientStart, Provider, ServerStart, Session, Start};

use crate::support::{
    LIMIT, PTO, RTT, answered_after, check, client, client_with, exchange, pair, plain,
    resumable_pair, server, server_with, transport, world,
};

const V1: Option<Version> = Some(Version::V1);
const V2: Option<Version> = Some(Version::V2);

/// Datagrams whose loss is tried.
const FIRST: usize = 8;

fn speaking(versions: &[Version]) -> TransportConfig {
    transport().versions(versions.iter().copied())
}

fn both() -> TransportConfig {
    speaking(&[Version::V2, Version::V1])
}

/// The packets with long headers that an end sent, by type and version, without repetitions.
fn sent(world: &World, writer: Side) -> Vec<(PacketKind, Option<Version>)> {
    let packets = world.trace().sent(writer.peer());
    let mut sent: Vec<_> = packets
        .flat_map(|record| &record.packets)
        .filter(|packet| packet.kind != PacketKind::OneRtt)
        .map(|packet| (packet.kind, Version::from_number(packet.version)))
        .collect();
    sent.dedup();
    sent
}

fn initials(world: &World, writer: Side) -> Vec<Initial> {
    let address = world.client_host(0).address;
    let initials = world.trace().initials(writer, address);
    initials.into_iter().map(|(_, initial)| initial).collect()
}

fn agreed(world: &World) -> [Version; 2] {
    [world.client(0), world.accepted(0)].map(|end| end.handshake.as_ref().unwrap().version)
}

/// Every way to hand a ClientHello over: one that fills two datagrams, with both providers at both
/// ends, one that takes one, and one that the server asks to be repeated.
fn upgrades() -> Vec<(Setup, Setup)> {
    let mut cases = Vec::new();
    for ours in Backend::ALL {
        for theirs in Backend::ALL {
            let policy = KeyExchange::default;
            cases.push((client(ours, policy()), server(theirs, policy())));
        }
    }
    let classical = KeyExchange::Exactly(vec![Group::X25519]);
    let retried = KeyExchange::Exactly(vec![Group::X25519, Group::X25519MLKEM768]);
    for theirs in Backend::ALL {
        for policy in [&classical, &retried] {
            let server = server(theirs, KeyExchange::PreferPostQuantum);
            cases.push((client(Backend::Rustls, policy.clone()), server));
        }
    }
    cases
}

fn upgraded(network: Network, (client, server): &(Setup, Setup)) -> World {
    let world = exchange(network, client, server);
    assert_eq!(agreed(&world), [Version::V2; 2]);
    world
}

/// Proves: rfc9368 2.3 compatible-negotiation-needs-no-round-trip
/// Proves: rfc9369 4.1 server-answers-in-the-negotiated-version
/// Proves: rfc9368 3 unknown-versions-are-ignored
/// Proves: rfc9369 4.1 client-follows-the-first-long-header
/// Proves: rfc9369 4 compatible-with-version-1
#[test]
fn both_ends_move_to_version_2_without_a_further_round_trip() {
    let world = upgraded(plain(1), &pair());
    assert_eq!(answered_after(&world), 2 * RTT);
    let server = sent(&world, Side::Server);
    assert!(server.iter().all(|(_, version)| *version == V2));
    let client = sent(&world, Side::Client);
    assert_eq!(client[0], (PacketKind::Initial, V1));
    assert!(client[1..].iter().all(|(_, version)| *version == V2));
}

/// Proves: rfc9369 4 compatible-with-version-1
#[test]
fn both_ends_move_to_version_1_where_the_server_prefers_it() {
    let client = client_with(both().first_version(Version::V2));
    let server = server_with(speaking(&[Version::V1, Version::V2]));
    let world = exchange(plain(1), &client, &server);
    assert_eq!(agreed(&world), [Version::V1; 2]);
    assert_eq!(answered_after(&world), 2 * RTT);
    assert_eq!(sent(&world, Side::Client)[0], (PacketKind::Initial, V2));
}

#[test]
fn a_client_may_begin_in_the_version_that_the_server_prefers() {
    let client = client_with(both().first_version(Version::V2));
    let world = exchange(plain(1), &client, &pair().1);
    assert_eq!(agreed(&world), [Version::V2; 2]);
    for side in [Side::Client, Side::Server] {
        let sent = sent(&world, side);
        assert!(sent.iter().all(|(_, version)| *version == V2));
    }
}

/// Proves: rfc9368 2.3 server-chooses-from-the-offer
#[test]
fn an_end_that_speaks_version_1_only_is_spoken_to_in_version_1() {
    let one = speaking(&[Version::V1]);
    for (client, server) in [(one.clone(), both()), (both(), one)] {
        let world = exchange(plain(1), &client_with(client), &server_with(server));
        assert_eq!(agreed(&world), [Version::V1; 2]);
        assert_eq!(answered_after(&world), 2 * RTT);
    }
}

#[test]
fn any_of_the_first_datagrams_may_be_lost_on_the_way_to_version_2() {
    for case in upgrades() {
        for first in 0..FIRST {
            for second in first..FIRST {
                upgraded(plain(1).drop_nth([first, second]), &case);
            }
        }
    }
}

#[test]
fn any_of_the_first_datagrams_of_either_end_may_be_lost_on_the_way_to_version_2() {
    for case in upgrades() {
        for side in [Side::Client, Side::Server] {
            for first in 0..FIRST {
                let network = plain(1).toward(side, DropNth::new([first]));
                upgraded(network, &case);
            }
        }
    }
}

#[test]
fn any_of_the_first_datagrams_may_come_late_on_the_way_to_version_2() {
    for case in upgrades() {
        for place in 0..FIRST {
            for wait in [ms(1), RTT, 2 * PTO] {
                upgraded(plain(1).delay_nth([place], wait), &case);
            }
        }
    }
}

#[test]
fn the_halves_of_a_client_hello_may_be_swapped_on_the_way_to_version_2() {
    for case in upgrades() {
        let swapped = || plain(1).toward(Side::Server, adversary::Swap::new(0));
        upgraded(swapped(), &case);
        for place in 0..FIRST {
            upgraded(swapped().drop_nth([place]), &case);
        }
    }
}

/// Proves: rfc9369 4.1 server-answers-in-the-negotiated-version
#[test]
fn half_a_client_hello_is_acknowledged_in_its_own_version() {
    let network = plain(1).toward(Side::Server, DelayNth::new([1], RTT));
    let world = upgraded(network, &pair());
    let server = initials(&world, Side::Server);
    let [first, rest @ ..] = &server[..] else {
        panic!("the server sent nothing")
    };
    assert_eq!(first.version, Version::V1);
    assert!(matches!(first.frames[..], [InitialFrame::Ack(_)]));
    assert!(rest.iter().all(|initial| initial.version == Version::V2));
}

/// Proves: rfc9369 4.1 server-answers-in-the-negotiated-version
#[test]
fn a_client_that_heard_nothing_is_understood_in_its_own_version() {
    let network = plain(1).toward(Side::Client, DropNth::new(0..3));
    let mut world = world(network, &pair().0, &pair().1, Ask::one_byte());
    let accepted = |world: &World| world.server().peers().len() == 1;
    assert!(world.run_until(LIMIT, accepted));
    let before = world.accepted(0).stats().packets_received;
    world.run_until(PTO + RTT, |world| {
        world.accepted(0).stats().packets_received > before
    });
    assert!(
        sent(&world, Side::Client)
            .iter()
            .all(|(_, version)| *version == V1)
    );
    assert!(world.accepted(0).stats().packets_received > before);
    world.run(LIMIT);
    check(&world);
    assert_eq!(agreed(&world), [Version::V2; 2]);
}

/// Proves: rfc9368 2.1 incompatible-negotiation-starts-anew
/// Proves: rfc9000 6.1 server-answers-other-versions-with-version-negotiation
#[test]
fn a_server_of_one_version_takes_a_round_trip_more_from_a_client_that_begins_in_the_other() {
    for (theirs, other) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        for backend in Backend::ALL {
            let client = Setup {
                transport: both().first_version(other).into(),
                ..client(backend, KeyExchange::default())
            };
            let server = Setup {
                transport: speaking(&[theirs]).into(),
                ..server(backend, KeyExchange::default())
            };
            let world = exchange(plain(1), &client, &server);
            assert_eq!(agreed(&world), [theirs; 2]);
            assert_eq!(answered_after(&world), 3 * RTT);
            assert!(world.server().stats().version_negotiations >= 1);
            for place in 0..FIRST {
                exchange(plain(1).drop_nth([place]), &client, &server);
            }
        }
    }
}

/// Proves: rfc9000 6.2 client-gives-up-on-version-negotiation
#[test]
fn ends_without_a_common_version_part_after_a_round_trip() {
    for (ours, theirs) in [(Version::V1, Version::V2), (Version::V2, Version::V1)] {
        let client = client_with(speaking(&[ours]));
        let server = server_with(speaking(&[theirs]));
        let mut world = world(plain(1), &client, &server, Idle);
        world.run(LIMIT);
        let closed = world.client(0).closed.clone().unwrap();
        assert_eq!(closed, (RTT, ConnectionError::VersionMismatch));
        let stats = world.server().stats();
        assert_eq!((stats.connections, stats.partial_hellos), (0, 0));
    }
}

/// A Version Negotiation packet for the only client of a world, in answer to its last datagram.
fn negotiation(world: &World, versions: &[u32]) -> Datagram {
    let last = world.trace().sent(Side::Server).next_back().unwrap();
    let ids = &last.packets[0];
    let mut payload = vec![0xc0, 0, 0, 0, 0, ids.scid.len() as u8];
    payload.extend(ids.scid.as_bytes());
    payload.push(ids.dcid.len() as u8);
    payload.extend(ids.dcid.as_bytes());
    payload.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    Datagram::new(SERVER_ADDRESS, world.client_host(0).address, payload)
}

fn version_negotiation_error(by: By, reason: &ConnectionError) -> bool {
    matches!(
        reason,
        ConnectionError::Transport { by: who, code: Code::VERSION_NEGOTIATION_ERROR, .. }
            if *who == by
    )
}

/// Proves: rfc9368 4 client-checks-what-it-would-have-chosen
/// Proves: security 5 version-downgrade-is-detected
/// Proves: rfc9368 2.1 forged-version-negotiation-is-detected
#[test]
fn a_forged_version_negotiation_packet_cannot_downgrade() {
    for theirs in [[Version::V1, Version::V2], [Version::V2, Version::V1]] {
        let client = client_with(both().first_version(Version::V2));
        let server = server_with(speaking(&theirs));
        let network = plain(1).toward(Side::Server, DropNth::new([0, 1]));
        let mut world = world(network, &client, &server, Ask::one_byte());
        world.run_for(ms(0));
        let forged = negotiation(&world, &[Version::V1.number(), 0x1a2a_3a4a]);
        world.inject(Side::Client, forged);
        world.run(LIMIT);
        let reason = world.client(0).close_reason().unwrap();
        assert!(version_negotiation_error(By::Local, reason), "{reason}");
        let reason = world.accepted(0).close_reason().unwrap();
        assert!(version_negotiation_error(By::Peer, reason), "{reason}");
    }
}

/// Proves: rfc9368 2.1 one-version-negotiation-per-connection
#[test]
fn an_attempt_that_version_negotiation_led_to_ignores_version_negotiation() {
    let client = client_with(both());
    let server = server_with(speaking(&[Version::V2]));
    let mut world = world(plain(1), &client, &server, Ask::one_byte());
    // The first flight, its answer, and the second flight.
    let second = |world: &World| sent(world, Side::Client).contains(&(PacketKind::Initial, V2));
    assert!(world.run_until(LIMIT, second));
    let forged = negotiation(&world, &[Version::V1.number()]);
    world.inject(Side::Client, forged);
    world.run(LIMIT);
    check(&world);
    assert_eq!(agreed(&world), [Version::V2; 2]);
}

#[test]
fn a_server_ignores_version_negotiation() {
    let (client, server) = pair();
    let mut world = world(plain(1), &client, &server, Ask::one_byte());
    assert!(world.run_until(LIMIT, |world| world.server().peers().len() == 1));
    let first = world.trace().sent(Side::Client).next().cloned();
    let Record { packets, .. } = first.unwrap();
    let ids = &packets[0];
    let mut payload = vec![0xc0, 0, 0, 0, 0, ids.scid.len() as u8];
    payload.extend(ids.scid.as_bytes());
    payload.push(ids.dcid.len() as u8);
    payload.extend(ids.dcid.as_bytes());
    payload.extend(0x1a2a_3a4a_u32.to_be_bytes());
    let client = world.client_host(0).address;
    world.deliver(Datagram::new(client, SERVER_ADDRESS, payload));
    world.run(LIMIT);
    check(&world);
}

/// An attacker on the path who reseals the Initial packets of an end in another version.
struct Reseal {
    writer: Side,
    version: Version,
    first_dcid: Option<Cid>,
}

impl Reseal {
    fn new(writer: Side, version: Version) -> Self {
        Self {
            writer,
            version,
            first_dcid: None,
        }
    }

    fn reseal(&self, packet: &mut [u8]) -> Option<Vec<u8>> {
        let size = packet.len();
        let (Decoded::Protected(packet), _) = decode(packet, 8).ok()? else {
            return None;
        };
        let first_dcid = self.first_dcid.as_ref()?;
        let keys = initial_direction(packet.version?, first_dcid, self.writer);
        let (dcid, scid) = (packet.dcid, packet.scid);
        let packet = packet.unprotect(&keys.header, None).ok()?;
        let number = packet.pn;
        let payload = packet.open(&keys.packet).ok()?;
        let header = Header::Long {
            kind: Kind::Initial,
            version: self.version,
            dcid,
            scid,
            token: &[],
        };
        let keys = initial_direction(self.version, first_dcid, self.writer);
        let mut buffer = vec![0; size];
        let mut builder = PacketBuilder::begin(&mut buffer, &header, number, None)?;
        let mut frames = builder.frames();
        frames.write(&Raw(payload));
        let len = frames.len();
        let size = builder.finish_padded(len, size, &keys);
        buffer.truncate(size);
        Some(buffer)
    }
}

impl Node for Reseal {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let headers = packets(&datagram.payload);
        if self.first_dcid.is_none() && hop.toward.is_server() {
            self.first_dcid = headers.first().map(|header| header.dcid);
        }
        if hop.toward == self.writer.peer() {
            let mut payload = Vec::new();
            for header in headers {
                let packet = datagram.payload[header.range.clone()].to_vec();
                let changed = (header.kind == PacketKind::Initial)
                    .then(|| self.reseal(&mut packet.clone()))
                    .flatten();
                payload.append(&mut changed.unwrap_or(packet));
            }
            datagram.payload = payload;
        }
        hop.forward(datagram);
    }
}

/// Runs until both ends have given up; nothing was agreed on.
fn failed(network: Network, client: &Setup, server: &Setup) -> World {
    let mut world = world(network, client, server, Ask::one_byte());
    world.run(LIMIT);
    for end in [world.client(0), world.accepted(0)] {
        assert!(end.handshake.is_none(), "the handshake became complete");
    }
    world
}

/// Proves: rfc9368 4 server-checks-chosen-version
#[test]
fn a_first_flight_that_changed_its_version_on_the_way_is_refused() {
    let (client, server) = pair();
    let network = plain(1).node(Reseal::new(Side::Client, Version::V2));
    let world = failed(network, &client, &server);
    let reason = world.accepted(0).close_reason().unwrap();
    assert!(version_negotiation_error(By::Local, reason), "{reason}");
    let reason = world.client(0).close_reason().unwrap();
    assert!(version_negotiation_error(By::Peer, reason), "{reason}");
}

/// The keys of what follows are of another version than the attacker's.
///
/// Proves: rfc9000 5.2.1 client-drops-other-versions
/// Proves: rfc9369 4.1 other-versions-are-dropped
#[test]
fn an_answer_that_changed_its_version_on_the_way_leads_nowhere() {
    let one = speaking(&[Version::V1]);
    for (server, version) in [(both(), Version::V1), (one, Version::V2)] {
        let network = plain(1).node(Reseal::new(Side::Server, version));
        let world = failed(network, &pair().0, &server_with(server));
        let reason = world.client(0).close_reason();
        assert_eq!(reason, Some(&ConnectionError::HandshakeTimedOut));
    }
}

/// TLS binds its keys to the ClientHello as it was sent.
///
/// Proves: rfc9368 2.3 server-chooses-from-the-offer
#[test]
fn version_information_cannot_be_stripped() {
    let strip = |hello: &[u8]| {
        let mut hello = hello.to_vec();
        let information = [0x11, 0x10, 0, 0, 0, 1];
        let place = hello.windows(6).position(|bytes| bytes == information);
        // A parameter that means nothing (RFC 9000 §18.1).
        hello[place.expect("version_information")] = 0x3a;
        let (head, tail) = hello.split_at(hello.len() / 2);
        let crypto = |offset: usize, data: &[u8]| InitialFrame::Crypto {
            offset: offset as u64,
            data: data.to_vec(),
        };
        vec![vec![crypto(0, head)], vec![crypto(head.len(), tail)]]
    };
    let network = plain(1).toward(Side::Server, Recut::new(2, strip));
    let (client, server) = pair();
    let world = failed(network, &client, &server);
    assert!(
        sent(&world, Side::Server)
            .iter()
            .all(|(_, version)| *version == V1)
    );
    let reason = world.client(0).close_reason();
    assert_eq!(reason, Some(&ConnectionError::HandshakeTimedOut));
}

/// A setup that continues with the memory of another setup's provider.
fn again(setup: &Setup, transport: TransportConfig) -> Setup {
    Setup {
        provider: setup.provider.clone(),
        transport: transport.into(),
    }
}

/// One more connection in a world, with the version it has to come to; whether it was resumed.
#[track_caller]
fn resumed(world: &mut World, client: &Setup, version: Version) -> bool {
    let index = world.connect(client, Ask::one_byte());
    world.run(LIMIT);
    let [ours, theirs] = [world.client(index), world.accepted(index)]
        .map(|end| end.handshake.as_ref().expect("a handshake"));
    assert_eq!([ours.version, theirs.version], [version; 2]);
    assert_eq!(ours.resumed, theirs.resumed);
    ours.resumed
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_ticket_of_one_version_is_not_used_in_the_other() {
    for backend in Backend::ALL {
        let (one, server) = resumable_pair(backend, speaking(&[Version::V1]), both());
        let two = again(&one, speaking(&[Version::V2]));
        let mut world = World::new(plain(1), server);
        assert!(!resumed(&mut world, &one, Version::V1));
        assert!(!resumed(&mut world, &two, Version::V2), "{backend}");
        assert!(resumed(&mut world, &two, Version::V2), "{backend}");
        assert!(resumed(&mut world, &two, Version::V2) || backend == Backend::S2nTls);
    }
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_ticket_is_of_the_version_that_was_negotiated() {
    for backend in Backend::ALL {
        let (client, server) = resumable_pair(backend, both(), both());
        let mut world = World::new(plain(1), server);
        assert!(!resumed(&mut world, &client, Version::V2));
        // Asked to begin in version 1, it goes without the ticket that it has.
        let stubborn = again(&client, both().first_version(Version::V1));
        assert!(!resumed(&mut world, &stubborn, Version::V2), "{backend}");
        // Left alone it begins in the version of the ticket.
        assert!(resumed(&mut world, &client, Version::V2), "{backend}");
    }
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_server_takes_no_ticket_of_another_version() {
    for backend in Backend::ALL {
        let (client, server) = resumable_pair(backend, both(), both());
        let careless = Setup {
            provider: Arc::new(Careless(client.provider)),
            transport: speaking(&[Version::V1]).into(),
        };
        let two = again(&careless, speaking(&[Version::V2]));
        let mut world = World::new(plain(1), server);
        assert!(!resumed(&mut world, &careless, Version::V1));
        assert!(!resumed(&mut world, &two, Version::V2), "{backend}");
        assert!(resumed(&mut world, &two, Version::V2), "{backend}");
    }
}

/// A client's TLS that uses every ticket it has, in whatever version.
struct Careless(Arc<dyn Provider>);

impl Provider for Careless {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn supports_early_data(&self) -> bool {
        self.0.supports_early_data()
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.0.key_exchange()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let resumption_context = &[];
        self.0.session(match start {
            Start::Client(start) => ClientStart {
                resumption_context,
                ..start
            }
            .into(),
            Start::Server(start) => ServerStart {
                resumption_context,
                ..start
            }
            .into(),
        })
    }
}
