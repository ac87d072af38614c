//! The spin bit, by which observers measure round trips (RFC 9000 §17.4).

use std::time::Duration;

use hybriq::tls::Side;
use hybriq_sim::{Ask, PacketKind, World, ms};

use crate::support::{LIMIT, RTT, check, client_with, plain, server_with, transport, world};

/// When the bit of packets to this side changed, since the handshake.
fn edges(world: &World, to: Side) -> Vec<Duration> {
    let mut edges = Vec::new();
    let mut last = None;
    for record in world.trace().sent(to) {
        for packet in &record.packets {
            if packet.kind == PacketKind::OneRtt
                && last
                    .replace(packet.spin_bit)
                    .is_some_and(|was| was != packet.spin_bit)
            {
                edges.push(record.at);
            }
        }
    }
    edges
}

fn transfer(seed: u64, spins: bool) -> World {
    let config = || {
        if spins {
            transport().spin_bit()
        } else {
            transport()
        }
    };
    let (client, server) = (client_with(config()), server_with(config()));
    let app = Ask::streams(1, 2_000_000);
    let mut world = world(plain(seed), &client, &server, app);
    world.run(LIMIT);
    check(&world);
    world
}

#[test]
fn the_bit_changes_once_a_round_trip_where_both_ends_spin() {
    let mut spinning = 0;
    for seed in 0..20 {
        let world = transfer(seed, true);
        let edges = edges(&world, Side::Server);
        let spans: Vec<_> = edges
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]))
            .collect();
        if spans.len() < 3 {
            continue;
        }
        spinning += 1;
        // While the transfer lasts there is always a packet soon to carry the change.
        for span in &spans[1..spans.len() - 1] {
            assert!((RTT..RTT + ms(40)).contains(span), "{spans:?}");
        }
    }
    // Each end spins on fifteen of sixteen paths.
    assert!(spinning >= 14, "{spinning}");
}

/// Proves: rfc9000 17.4 spin-bit-can-be-off
#[test]
fn by_default_the_bit_says_nothing() {
    let mut set = 0;
    for seed in 0..20 {
        let world = transfer(seed, false);
        for to in [Side::Client, Side::Server] {
            assert!(edges(&world, to).is_empty());
            let first = world
                .trace()
                .sent(to)
                .flat_map(|record| &record.packets)
                .find(|packet| packet.kind == PacketKind::OneRtt);
            set += u32::from(first.unwrap().spin_bit);
        }
    }
    assert!(
        (8..=32).contains(&set),
        "{set} of 40 connections have it set"
    );
}
