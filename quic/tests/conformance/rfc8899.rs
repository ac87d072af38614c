//! RFC 8899: probes for the largest datagram that a path carries.

use std::{collections::BTreeMap, time::Duration};

use hybriq::tls::Side;
use hybriq_sim::{Ask, Network, World, ms};

use crate::{
    duo::{client, server},
    pathtap::{Noted, PathTap, Sighting},
};

/// An echo over a path with this maximum size: returns the datagrams larger than 1200 bytes.
fn probes(carries: usize, by: Side) -> Vec<Sighting> {
    let (tap, config) = PathTap::new();
    let network = Network::new(1).delay(ms(10)).mtu(carries);
    let mut world = World::new(network, server(config.clone()));
    world.connect(&client(config), Ask::streams(1, 1 << 20));
    world.run(Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
    let seen = tap.sightings(&world).into_iter();
    seen.filter(|it| it.by == by && it.datagram > 1200)
        .collect()
}

/// Proves: rfc8899 3 only-probes-exceed-the-mtu
/// Proves: rfc8899 3 lost-probe-data-is-none
#[test]
fn what_exceeds_the_mtu_carries_nothing() {
    for by in [Side::Client, Side::Server] {
        let probes = probes(1200, by);
        assert!(!probes.is_empty());
        for probe in probes {
            let empty = |it: &Noted| matches!(it, Noted::Ping | Noted::Padding);
            assert!(probe.frames.iter().all(empty), "{probe:?}");
        }
    }
}

/// Proves: rfc8899 5.1.1 probe-timer
/// Proves: rfc8899 3 probes-are-rare
#[test]
fn each_size_is_tried_three_times_and_one_after_the_other() {
    for by in [Side::Client, Side::Server] {
        let probes = probes(1200, by);
        let mut tries = BTreeMap::<usize, usize>::new();
        for pair in probes.windows(2) {
            assert!(
                pair[1].at >= pair[0].at + ms(20),
                "a round trip lies between"
            );
        }
        for probe in &probes {
            *tries.entry(probe.datagram).or_default() += 1;
        }
        assert!(tries.values().all(|tries| *tries <= 3), "{tries:?}");
        assert_eq!(tries.values().max(), Some(&3));
    }
}
