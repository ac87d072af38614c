//! RFC 9287: the QUIC bit.

use std::time::Duration;

use hybriq::{TransportConfig, tls::Side};
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{Ask, Forge, Network, World, ms};

use crate::duo::{Duo, client, server};

/// Proves: rfc9287 3 greased-packets-are-taken
#[test]
fn a_packet_without_the_bit_is_taken_by_who_announced_it() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        let received = duo.connection(from.peer()).stats().packets_received;
        let packet = duo.connection(from).forge_without_quic_bit(Space::Data);
        duo.put(from, packet);
        assert!(duo.connection(from.peer()).stats().packets_received > received);
        duo.assert_alive();
    }
}

/// Proves: rfc9287 3.1 bit-is-cleared-only-for-those-who-asked
#[test]
fn the_bit_is_set_where_only_one_end_greases() {
    for seed in 0..10 {
        let network = Network::new(seed).delay(ms(10));
        let without = TransportConfig::new().without_grease();
        let mut world = World::new(network, server(without));
        world.connect(&client(TransportConfig::new()), Ask::streams(1, 50_000));
        world.run(Duration::from_secs(120));
        assert!(world.client(0).done_at.is_some());
        let seen = world.trace().records().iter();
        let mut packets = seen.flat_map(|record| &record.packets);
        assert!(
            packets.all(|packet| packet.quic_bit),
            "the server did not ask"
        );
    }
}
