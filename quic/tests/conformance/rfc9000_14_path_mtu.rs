//! RFC 9000 §14: how large datagrams are.

use std::time::Duration;

use hybriq::{TransportConfig, tls::Side};
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{Ask, Forge, InitialFrame, Network, World, ms, one_in};

use crate::duo::{Duo, client, server};

/// Proves: rfc9000 14 large-and-small-datagrams-do-not-close
#[test]
fn datagrams_of_any_size_are_taken_or_dropped() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        for size in [0, 1, 2, 20, 21, 22] {
            duo.put(from, vec![0x40; size]);
        }
        for size in [0, 100, 1199, 1200] {
            let ping =
                duo.connection(from)
                    .forge(Space::Data, |_| (), size, |out| assert!(out.ping()));
            duo.put(from, ping);
        }
        duo.put(from, vec![0x40; 9000]);
        duo.put(from, vec![0x40; 65_000]);
        duo.assert_alive();
    }
}

/// Proves: rfc9000 14.1 server-initials-are-full
#[test]
fn ack_eliciting_initials_of_a_server_fill_their_datagrams() {
    let mut seen = 0;
    for seed in 0..20 {
        let transport = TransportConfig::new;
        let network = Network::new(seed).delay(ms(10)).loss(one_in(4));
        let mut world = World::new(network, server(transport()));
        world.connect(&client(transport()), Ask::one_byte());
        world.run(Duration::from_secs(120));
        let address = world.client_host(0).address;
        for (_, initial) in world.trace().initials(Side::Server, address) {
            let silent = initial.frames.iter().all(|frame| {
                matches!(
                    frame,
                    InitialFrame::Ack(_) | InitialFrame::Padding(_) | InitialFrame::Close(_)
                )
            });
            seen += usize::from(!silent);
            assert!(silent || initial.datagram_size >= 1200, "{initial:?}");
        }
    }
    assert!(seen > 40, "{seen}");
}

/// Proves: rfc9000 14.2 nothing-above-the-path-mtu
#[test]
fn datagrams_are_larger_than_1200_bytes_only_when_a_probe_arrived() {
    let network = Network::new(1).delay(ms(10)).mtu(1200);
    let transport = TransportConfig::new;
    let mut world = World::new(network, server(transport()));
    world.connect(&client(transport()), Ask::streams(1, 500_000));
    world.run(Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
    for (toward, peer) in [
        (Side::Server, world.client(0)),
        (Side::Client, world.accepted(0)),
    ] {
        let sent = world.trace().sent(toward);
        let large = sent.filter(|record| record.size > 1200).count() as u64;
        assert!(large > 0);
        assert_eq!(large, peer.stats().mtu_probes_sent, "all of them probes");
    }
}
