//! Datagrams that anybody on the Internet can send: they are dropped and counted, and nothing
//! grows.

use std::net::SocketAddr;

use hybriq::{ConnectionError, tls::Side};
use hybriq_proto::wire::packet::Cid;
use hybriq_sim::{
    Ask, Datagram, Idle, PacketKind, Progress, Record, Rng, SERVER_ADDRESS, World, adversary, ms,
    one_in, packets,
};

use crate::support::{
    LIMIT, PTO, RTT, check, client_with, exchange, pair, plain, server_with, transport, world,
};

const STRANGER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7)),
    7777,
);

fn to_server(payload: Vec<u8>) -> Datagram {
    Datagram::new(STRANGER, SERVER_ADDRESS, payload)
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// Returns the handshake packets that a client sent in a whole exchange.
fn recorded() -> Vec<Record> {
    let (client, server) = pair();
    let world = exchange(plain(1), &client, &server);
    let sent = world
        .trace()
        .sent(Side::Server)
        .chain(world.trace().sent(Side::Client));
    sent.filter(|record| !record.payload.is_empty())
        .cloned()
        .collect()
}

/// Proves: rfc9000 5.2.2 server-drops-the-rest
#[test]
fn garbage_is_dropped_and_counted() {
    let mut world = World::new(plain(1), pair().1);
    let mut rng = Rng::new(5);
    for count in 1..=3000 {
        let len = rng.below(1500) as usize;
        let mut payload = random_bytes(&mut rng, len);
        // Without version negotiation, which is the next test's.
        if let Some(first) = payload.first_mut() {
            *first &= 0x7f;
        }
        world.deliver(to_server(payload));
        let stats = world.server().stats();
        let sum: u64 = stats.drops.by_label().map(|(_, count)| count).sum();
        assert_eq!(sum, stats.datagrams_dropped);
        let useless = stats.datagrams_dropped + world.server().foreign();
        assert_eq!(useless + stats.stateless_resets, count);
        assert_eq!((stats.connections, stats.partial_hellos), (0, 0));
    }
    world.run_for(ms(100));
    // A datagram that may belong to a lost connection is answered by a smaller one that looks the same.
    let resets = world.server().stats().stateless_resets;
    let answers: Vec<_> = world.trace().sent(Side::Client).collect();
    assert_eq!(answers.len() as u64, resets);
    assert!(resets < 30, "{resets}");
    assert!(answers.iter().all(|record| record.has(PacketKind::OneRtt)));
}

/// Proves: rfc9000 5.2.2 server-drops-the-rest
#[test]
fn garbage_that_looks_like_an_initial_takes_no_place() {
    let mut world = World::new(plain(1), pair().1);
    let mut rng = Rng::new(6);
    for count in 1..=1000 {
        let mut payload = random_bytes(&mut rng, 1200);
        payload[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
        payload[14] = 8;
        payload[23] = 0;
        payload[24..26].copy_from_slice(&[0x44, 0x96]);
        assert_eq!(packets(&payload)[0].kind, PacketKind::Initial);
        world.deliver(to_server(payload));
        let stats = world.server().stats();
        assert_eq!(stats.datagrams_dropped, count);
        assert_eq!((stats.connections, stats.partial_hellos), (0, 0));
    }
    world.run_for(ms(100));
    assert_eq!(world.trace().sent(Side::Client).count(), 0);
}

/// Proves: rfc9000 5.2 packets-of-strangers-are-dropped
/// Proves: rfc9000 14 large-and-small-datagrams-do-not-close
#[test]
fn garbage_between_the_datagrams_of_a_connection_changes_nothing() {
    let (client, server) = pair();
    for seed in 0..20 {
        let network = plain(seed)
            .toward(Side::Server, adversary::Inject::new(20, 1400))
            .toward(Side::Client, adversary::Inject::new(20, 1400));
        exchange(network, &client, &server);
    }
}

#[test]
fn an_oversized_datagram_creates_nothing() {
    let mut world = World::new(plain(1), pair().1);
    for first in [0x00, 0x40, 0xc0] {
        let mut payload = vec![0; 65_000];
        payload[0] = first;
        payload[4] = 1;
        world.deliver(to_server(payload));
    }
    let stats = world.server().stats();
    assert_eq!((stats.datagrams_dropped, stats.stateless_resets), (1, 2));
    assert_eq!(stats.connections, 0);
}

/// Every prefix of real handshake datagrams, and every one of them with a byte changed.
///
/// Proves: rfc9000 5.2.2 server-drops-the-rest
#[test]
fn pieces_and_changes_of_real_datagrams_create_nothing() {
    for record in recorded() {
        let mut world = World::new(plain(1), pair().1);
        for len in (0..record.payload.len()).step_by(7) {
            world.deliver(to_server(record.payload[..len].to_vec()));
        }
        for at in (0..record.payload.len()).step_by(5) {
            let mut payload = record.payload.clone();
            payload[at] ^= 0x81;
            world.deliver(to_server(payload));
            // A flip in the padding of a header field may leave an intact packet behind; one in
            // the version asks for version negotiation.
            let stats = world.server().stats();
            assert_eq!(
                (stats.connections, stats.partial_hellos),
                (0, 0),
                "byte {at} of {record}"
            );
        }
        world.run_for(ms(50));
    }
}

/// Proves: rfc9000 12.3 duplicates-are-dropped
#[test]
fn replayed_datagrams_are_dropped() {
    let (client, server) = pair();
    for place in 0..6 {
        for wait in [ms(1), RTT, 2 * PTO] {
            let node = adversary::Replay::new(place, wait);
            let world = exchange(plain(1).toward(Side::Server, node), &client, &server);
            let node = adversary::Replay::new(place, wait);
            exchange(plain(1).toward(Side::Client, node), &client, &server);
            let dropped = world.accepted(0).stats().packets_dropped
                + world.server().stats().datagrams_dropped;
            // A connection that ends stops counting.
            let noticed = dropped > 0 || place > 2 || wait > RTT;
            assert!(
                noticed,
                "the replay of datagram {place} after {wait:?} was not noticed"
            );
        }
    }
}

/// The ledger counts by address: the bytes sent to a spoofed address are limited by the bytes that
/// came from it.
///
/// Proves: rfc9000 8 three-times-what-came
#[test]
fn replays_from_a_spoofed_address_amplify_nothing() {
    let (client, server) = pair();
    for place in 0..5 {
        let node = adversary::Replay::new(place, ms(1)).from(STRANGER);
        let mut world = world(
            plain(1).toward(Side::Server, node),
            &client,
            &server,
            Ask::one_byte(),
        );
        world.run(2 * LIMIT);
        assert_eq!(world.client(0).progress(), Progress::Done);
    }
}

#[test]
fn a_client_hello_from_a_spoofed_address_amplifies_nothing() {
    let (client, server) = pair();
    let network = plain(1).drop_if(|datagram, _| {
        // The victim never answers, and the sender never hears.
        datagram.destination != SERVER_ADDRESS
    });
    let mut world = world(network, &client, &server, Idle);
    world.run(10 * LIMIT);
    let of = |records: usize| records;
    let received: usize = world
        .trace()
        .arrived(Side::Server)
        .map(|record| record.size)
        .sum();
    let sent: usize = world
        .trace()
        .sent(Side::Client)
        .map(|record| of(record.size))
        .sum();
    assert!(
        sent > 0 && sent <= 3 * received,
        "{sent} bytes for {received}"
    );
}

/// Proves: rfc9000 5.2 packets-of-strangers-are-dropped
#[test]
fn datagrams_of_another_connection_are_dropped() {
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    world.connect(&client, Ask::one_byte());
    world.connect(&client, Ask::one_byte());
    world.run_for(RTT / 2 + ms(1));
    let misdirected: Vec<_> = world
        .trace()
        .sent(Side::Client)
        .filter(|record| record.client == world.client_host(0).address)
        .map(|record| record.payload.clone())
        .collect();
    assert!(!misdirected.is_empty());
    let destination = world.client_host(1).address;
    for payload in misdirected {
        let source = SERVER_ADDRESS;
        world.inject(Side::Client, Datagram::new(source, destination, payload));
    }
    world.run(LIMIT);
    for index in 0..2 {
        assert_eq!(
            world.client(index).progress(),
            Progress::Done,
            "client {index}"
        );
    }
    assert!(world.client_host(1).stats().datagrams_dropped > 0);
}

/// A long header of a version nobody speaks.
fn unknown_version(len: usize) -> Vec<u8> {
    let mut payload = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8];
    payload.extend([1, 2, 3, 4, 5, 6, 7, 8, 5, 9, 10, 11, 12, 13]);
    payload.resize(len, 0);
    payload
}

#[test]
fn an_unknown_version_is_answered_with_version_negotiation() {
    let mut world = World::new(plain(1), pair().1);
    world.deliver(to_server(unknown_version(1200)));
    world.run_for(ms(10));
    let answers: Vec<_> = world.trace().sent(Side::Client).collect();
    let [answer] = answers[..] else {
        panic!("{} answers", answers.len())
    };
    let [packet] = &answer.packets[..] else {
        panic!("{answer}")
    };
    assert_eq!(packet.kind, PacketKind::VersionNegotiation);
    assert_eq!(packet.dcid, Cid::new(&[9, 10, 11, 12, 13]).unwrap());
    assert_eq!(packet.scid, Cid::from([1, 2, 3, 4, 5, 6, 7, 8]));
    assert!(
        answer
            .payload
            .windows(4)
            .any(|version| version == [0, 0, 0, 1])
    );
    assert_eq!(world.server().stats().version_negotiations, 1);
}

/// Proves: rfc9000 5.2.2 small-packets-of-unknown-versions-are-dropped
/// Proves: rfc9000 6.1 no-answer-to-version-negotiation
#[test]
fn a_small_datagram_of_an_unknown_version_is_not_answered() {
    let mut world = World::new(plain(1), pair().1);
    world.deliver(to_server(unknown_version(1199)));
    let mut negotiation = unknown_version(1200);
    negotiation[1..5].fill(0);
    world.deliver(to_server(negotiation));
    world.run_for(ms(10));
    assert_eq!(world.trace().sent(Side::Client).count(), 0);
    assert_eq!(world.server().stats().version_negotiations, 0);
}

/// A Version Negotiation packet for the only client of a world that has sent its first flight.
fn negotiation(world: &World, versions: &[u32]) -> Datagram {
    let first = world.trace().sent(Side::Server).next().unwrap();
    let ids = &first.packets[0];
    let mut payload = vec![0xc0, 0, 0, 0, 0, ids.scid.len() as u8];
    payload.extend(ids.scid.as_bytes());
    payload.push(ids.dcid.len() as u8);
    payload.extend(ids.dcid.as_bytes());
    payload.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
    let destination = world.client_host(0).address;
    Datagram::new(SERVER_ADDRESS, destination, payload)
}

/// Proves: rfc9000 6.2 client-gives-up-on-version-negotiation
#[test]
fn a_server_that_speaks_no_version_of_ours_ends_the_connection() {
    let (client, server) = pair();
    let mut world = world(
        plain(1).toward(Side::Server, adversary::truncate(0, 0)),
        &client,
        &server,
        Idle,
    );
    world.run_for(ms(0));
    let datagram = negotiation(&world, &[0xff00_001d, 0x1a2a_3a4a]);
    world.inject(Side::Client, datagram);
    world.run(LIMIT);
    let (at, reason) = world.client(0).closed.clone().unwrap();
    assert_eq!((at, reason), (RTT / 2, ConnectionError::VersionMismatch));
}

/// Proves: rfc9000 6.2 version-negotiation-with-our-version-is-ignored
/// Proves: rfc9000 6.2 late-version-negotiation-is-ignored
#[test]
fn version_negotiation_that_makes_no_sense_is_ignored() {
    let (client, server) = pair();
    let mut listing_ours = world(plain(1), &client, &server, Ask::one_byte());
    listing_ours.run_for(ms(0));
    let datagram = negotiation(&listing_ours, &[0x1a2a_3a4a, 1]);
    listing_ours.inject(Side::Client, datagram);
    listing_ours.run(LIMIT);
    check(&listing_ours);

    let mut late = world(plain(1), &client, &server, Ask::one_byte());
    late.run_for(RTT);
    let datagram = negotiation(&late, &[0x1a2a_3a4a]);
    late.inject(Side::Client, datagram);
    late.run(LIMIT);
    check(&late);

    let mut misdirected = world(plain(1), &client, &server, Ask::one_byte());
    misdirected.run_for(ms(0));
    let mut datagram = negotiation(&misdirected, &[0x1a2a_3a4a]);
    datagram.payload[7] ^= 1;
    misdirected.inject(Side::Client, datagram);
    misdirected.run(LIMIT);
    check(&misdirected);
}

#[test]
fn a_flood_of_junk_for_a_live_connection_is_counted_and_kills_nothing() {
    let (client, server) = pair();
    let mut world = world(plain(1), &client, &server, Ask::one_byte().keep_open());
    assert!(world.run_until(LIMIT, |world| world.client(0).done_at.is_some()));
    let id = world
        .trace()
        .sent(Side::Client)
        .flat_map(|record| &record.packets)
        .find(|packet| !packet.scid.is_empty())
        .map(|packet| packet.scid)
        .unwrap();
    let mut rng = Rng::new(1);
    let source = world.client_host(0).address;
    let before = world.accepted(0).stats().packets_dropped;
    for _ in 0..5000 {
        let len = 21 + rng.below(1200) as usize;
        let mut payload = random_bytes(&mut rng, len);
        payload[0] = payload[0] & 0x3f | 0x40;
        payload[1..9].copy_from_slice(id.as_bytes());
        world.deliver(Datagram::new(source, SERVER_ADDRESS, payload));
    }
    let stats = world.accepted(0).stats();
    assert_eq!(stats.packets_dropped - before, 5000);
    let sum: u64 = stats.drops.by_label().map(|(_, count)| count).sum();
    assert_eq!(sum, stats.packets_dropped);
    world.close_client(0, 0);
    world.run(LIMIT);
    check(&world);
}

#[test]
fn loss_and_junk_together_break_nothing() {
    // Some seeds destroy eight probes in a row: half a minute without a packet that can be read. Seed
    // 0 takes 160 s.
    let patient = || transport().idle_timeout(Some(ms(90_000)));
    let (client, server) = (client_with(patient()), server_with(patient()));
    for seed in 1..22 {
        let network = plain(seed)
            .toward(Side::Server, adversary::Inject::new(50, 1400))
            .loss(one_in(4))
            .corrupt(one_in(6));
        exchange(network, &client, &server);
    }
}
