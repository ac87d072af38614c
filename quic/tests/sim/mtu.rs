//! Datagrams as large as the path carries (RFC 9000 §14, RFC 8899). No router says anything here:
//! what is too large vanishes.

use std::time::{Duration, Instant};

use hybriq::{
    TransportConfig,
    stats::{ConnectionStats, PathStats},
    tls::Side,
};
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, StreamEvent, StreamId, Streams},
};
use hybriq_sim::{Answer, App, Ask, Network, PacketKind, Progress, World, ms, one_in};

use crate::support::{
    DELAY, LIMIT, check, client_with, exchange, pair, plain, server_with, transport, world,
};

/// Bytes that the client sends: enough for every search here.
const BYTES: usize = 1 << 20;

/// A transfer to the server and back over this network. The client's path and counters at the end.
fn transfer(network: Network, config: &TransportConfig) -> (PathStats, ConnectionStats) {
    let (client, server) = (client_with(config.clone()), server_with(config.clone()));
    let mut world = world(
        network,
        &client,
        &server,
        Ask::streams(1, BYTES).keep_open(),
    );
    let done = world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done);
    assert!(done, "{:?}", world.client(0).stats());
    // Sizes that are left are tried with nothing else to send.
    world.run_for(Duration::from_secs(20));
    let stats = world.client(0).stats();
    (world.client_connection(0).path_stats(), stats)
}

#[test]
fn the_mtu_of_every_link_is_found() {
    for (most, carries, probes) in [
        (1452, 1200, 20),
        (1452, 1280, 20),
        (1452, 1400, 20),
        (1452, 1452, 1),
        (1452, 1500, 1),
        (9000, 1500, 40),
        (9000, 9000, 1),
        (65_000, 9000, 40),
        (65_000, 65_527, 1),
    ] {
        let network = plain(1).mtu(carries.into());
        let (path, stats) = transfer(network, &transport().max_datagram_size(most));
        let (found, best) = (path.datagram_size, most.min(carries));
        println!(
            "{carries} of {most}: {found} by {} probes",
            stats.mtu_probes_sent
        );
        assert!(found <= best && best - found < 20, "{found} of {best}");
        assert!(stats.mtu_probes_sent <= probes, "{stats:?}");
        assert_eq!(stats.mtu_black_holes, 0);
    }
}

/// Proves: rfc9000 14.4 lost-probes-are-no-congestion
/// Proves: rfc8899 3 only-probes-exceed-the-mtu
/// Proves: rfc9000 14.2 nothing-above-the-path-mtu
#[test]
fn lost_probes_are_no_congestion() {
    let (_, stats) = transfer(plain(1).mtu(1300), &transport());
    assert!(stats.mtu_probes_lost >= 3, "{stats:?}");
    assert_eq!((stats.packets_lost, stats.congestion_events), (0, 0));
}

/// Proves: rfc9000 14.2 nothing-above-the-path-mtu
/// Proves: rfc9000 8.1 client-initials-are-full
#[test]
fn nothing_exceeds_1200_bytes_before_the_handshake_is_confirmed() {
    let large = || transport().max_datagram_size(65_000);
    let (client, server) = (client_with(large()), server_with(large()));
    let ask = || Ask::streams(1, 100_000);
    let mut world_without_loss = world(plain(1), &client, &server, ask());
    world_without_loss.run(LIMIT);
    // The server confirms with the client's Finished, the client when it hears so.
    for (toward, confirmed) in [(Side::Client, 3 * DELAY), (Side::Server, 4 * DELAY)] {
        let mut sent = world_without_loss.trace().sent(toward);
        let first = sent.find(|record| record.size > 1200).unwrap();
        assert!(first.at >= confirmed, "{first}");
        assert_eq!(first.size, 65_000);
    }
    for seed in 0..10 {
        let mut world = world(plain(seed).loss(one_in(4)), &client, &server, ask());
        world.run(LIMIT);
        for record in world.trace().records() {
            let early = record.has(PacketKind::Initial) || record.has(PacketKind::Handshake);
            assert!(!early || record.size <= 1200, "{record}");
        }
    }
}

#[test]
fn who_sends_little_sends_no_probe() {
    let (client, server) = pair();
    let world = exchange(plain(1), &client, &server);
    for peer in [world.client(0), world.accepted(0)] {
        assert_eq!(peer.stats().mtu_probes_sent, 0);
    }
}

#[test]
fn lossy_links_are_not_underestimated() {
    for seed in 0..20 {
        let network = plain(seed).loss(one_in(10)).mtu(1452);
        let (path, stats) = transfer(network, &transport());
        let found = path.datagram_size;
        assert!(found >= 1432, "seed {seed}: {found} {stats:?}");
        assert_eq!(stats.mtu_black_holes, 0, "seed {seed}: {stats:?}");
    }
}

/// Writes to one stream as much as it takes, for ever.
#[derive(Default)]
struct Source(Option<StreamId>);

impl Source {
    fn write(&self, streams: &mut Streams) {
        let Some(id) = self.0 else { return };
        while matches!(streams.write(id, &[0; 16 * 1024]), Ok(1..)) {}
    }
}

impl App for Source {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete => {
                self.0 = connection.streams().open(Direction::Uni);
                self.write(connection.streams());
            }
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams()),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Reads everything at once.
struct Sink;

impl App for Sink {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        let id = match event {
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => streams.accept(Direction::Uni),
            Event::Stream(StreamEvent::Readable(id)) => Some(*id),
            _ => None,
        };
        let mut buffer = [0; 16 * 1024];
        while id.is_some_and(|id| streams.read(id, &mut buffer).is_ok_and(|read| read > 0)) {}
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

fn stream_over(network: Network, config: &TransportConfig) -> World {
    let mut world = World::new(network, server_with(config.clone()));
    world.expect_bulk(1_000_000);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Sink)));
    world.connect(&client_with(config.clone()), Source::default());
    world
}

/// Proves: rfc8899 4.3 black-holes-are-detected
#[test]
fn a_black_hole_in_the_middle_of_a_transfer_is_left_behind() {
    for (seed, carries) in [(1, 1200), (2, 1300), (3, 1400), (4, 1440)] {
        let begins = Duration::from_secs(2);
        let network = Network::new(seed)
            .bandwidth(10_000_000, 64_000)
            .mtu_from(begins, carries)
            .delay(DELAY / 2);
        let mut world = stream_over(network, &transport());
        world.run_for(begins);
        let before = world.accepted(0).stats().bytes_received;
        assert_eq!(world.client_connection(0).path_stats().datagram_size, 1452);
        world.run_for(ms(1500));
        let stats = world.client(0).stats();
        assert_eq!(stats.mtu_black_holes, 1, "{carries}: {stats:?}");
        world.run_for(Duration::from_secs(3));
        let at = world.accepted(0).stats().bytes_received;
        assert!(at > before, "nothing comes any more");
        world.run_for(Duration::from_secs(10));
        let rate = (world.accepted(0).stats().bytes_received - at) * 8 / 10;
        assert!(rate > 8_000_000, "{carries}: {rate}");
        world.run_for(Duration::from_secs(10));
        let path = world.client_connection(0).path_stats();
        let found = usize::from(path.datagram_size);
        assert!(
            found <= carries && carries - found < 20,
            "{found} of {carries}"
        );
    }
}

#[test]
fn an_outage_is_no_black_hole_for_long() {
    let (from, to) = (Duration::from_secs(2), Duration::from_secs(6));
    let network = Network::new(1)
        .bandwidth(10_000_000, 64_000)
        .blackout([(from, to)])
        .delay(DELAY / 2);
    let mut world = stream_over(network, &transport());
    world.run_for(Duration::from_secs(40));
    assert_eq!(world.client_connection(0).path_stats().datagram_size, 1452);
}

#[test]
fn a_queue_that_overflows_is_no_black_hole() {
    for seed in 0..10 {
        let network = Network::new(seed)
            .bandwidth(10_000_000, 20_000)
            .delay(DELAY / 2);
        let mut world = stream_over(network, &transport());
        world.run_for(Duration::from_secs(10));
        let stats = world.client(0).stats();
        assert!(stats.packets_lost > 0, "{stats:?}");
        assert_eq!(stats.mtu_black_holes, 0, "seed {seed}: {stats:?}");
    }
}

/// The probe of 9000 bytes needs a good part of a window that data would fill.
#[test]
fn a_probe_gets_its_place_in_a_full_window() {
    let network = Network::new(1)
        .bandwidth(10_000_000, 64_000)
        .delay(DELAY / 2);
    let mut world = stream_over(network, &transport().max_datagram_size(9000));
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.client_connection(0).path_stats().datagram_size, 9000);
}

#[test]
fn without_discovery_nothing_is_probed() {
    let config = transport().without_mtu_discovery();
    let mut world = world(
        plain(1),
        &client_with(config.clone()),
        &server_with(config),
        Ask::streams(1, BYTES),
    );
    world.run(LIMIT);
    check(&world);
    assert!(
        world
            .trace()
            .records()
            .iter()
            .all(|record| record.size <= 1200)
    );
}
