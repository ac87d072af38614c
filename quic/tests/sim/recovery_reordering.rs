//! Paths that reorder: late packets are not taken for lost ones for long (RFC 9002 §6.1).

use std::time::{Duration, Instant};

use hybriq::stats::ConnectionStats;
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, StreamEvent},
};
use hybriq_sim::{Answer, App, Ask, Network, Overtake, Progress, World, one_in};

use crate::support::{DELAY, client_with, server_with, transport, world};

/// 20 Mbit/s, 100 ms there and back, a queue of what fits on the way.
fn link(seed: u64) -> Network {
    Network::new(seed)
        .delay(DELAY)
        .bandwidth(20_000_000, 250_000)
}

/// One datagram in twenty comes behind up to fifty that left later.
fn reordering(seed: u64) -> Network {
    link(seed).node(Overtake::new(one_in(20), 50))
}

/// Reads what comes and answers nothing.
struct Sink;

impl App for Sink {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        let id = match event {
            Event::Stream(StreamEvent::Readable(id)) => Some(*id),
            Event::Stream(StreamEvent::Opened(_)) => streams.accept(Direction::Bidi),
            _ => None,
        };
        let Some(id) = id else { return };
        let mut buffer = [0; 16 * 1024];
        while streams.read(id, &mut buffer).is_ok_and(|read| read > 0) {}
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// A client that sends, and a server that reads.
fn sender(network: Network) -> World {
    let (client, server) = (client_with(transport()), server_with(transport()));
    let mut world = world(network, &client, &server, Ask::streams(1, 100_000_000));
    let server = world.server_mut();
    server.on_incoming(|_| Answer::Accept(None, Box::new(Sink)));
    world
}

/// Figures of a transfer once its sender knows the path.
struct Adapted {
    /// The sender's counters after three and after five seconds.
    before: ConnectionStats,
    after: ConnectionStats,
    /// Bytes that arrived between.
    arrived: u64,
    packet_threshold: u64,
}

fn adapted(network: Network) -> Adapted {
    let mut world = sender(network);
    let received = |world: &World| world.accepted(0).stats().bytes_received;
    world.run_for(Duration::from_secs(3));
    let (before, so_far) = (world.client(0).stats(), received(&world));
    world.run_for(Duration::from_secs(2));
    Adapted {
        before,
        after: world.client(0).stats(),
        arrived: received(&world) - so_far,
        packet_threshold: world.client_connection(0).path_stats().packet_threshold,
    }
}

#[test]
fn reordering_by_fifty_packets_costs_less_than_a_twentieth() {
    let in_order = adapted(link(1)).arrived;
    for seed in 0..3 {
        let Adapted {
            before,
            after,
            arrived,
            packet_threshold,
        } = adapted(reordering(seed));
        assert!(before.spurious_losses > 0, "it was hard at first");
        assert!(packet_threshold > 20, "{packet_threshold}");
        let late = after.spurious_losses - before.spurious_losses;
        let sent = after.packets_sent - before.packets_sent;
        assert!(late * 1000 < sent, "seed {seed}: {late} of {sent}");
        let least = in_order * 95 / 100;
        assert!(arrived > least, "seed {seed}: {arrived} of {in_order}");
    }
}

#[test]
fn real_losses_are_found_on_a_path_that_reorders() {
    for seed in 0..3 {
        let stats = adapted(reordering(seed).loss(one_in(100))).after;
        assert!(stats.packets_lost > stats.spurious_losses, "{stats:?}");
        assert_eq!(stats.ptos, 0, "{stats:?}");
    }
}

#[test]
fn a_path_in_order_keeps_the_first_thresholds() {
    let Adapted {
        after,
        packet_threshold,
        ..
    } = adapted(link(1));
    assert!(after.packets_lost > 0, "the queue is short: {after:?}");
    assert_eq!((packet_threshold, after.spurious_losses), (3, 0));
}
