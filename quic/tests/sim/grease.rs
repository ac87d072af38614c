//! The QUIC bit that nothing may rely on (RFC 9287).

use hybriq::{TransportConfig, tls::Side};
use hybriq_sim::{Ask, PacketKind, World, one_in};

use crate::support::{LIMIT, check, client_with, plain, server_with, transport, world};

/// Counts the packets of each end with the bit and without it, long headers first.
fn bits(world: &World, to: Side) -> [[usize; 2]; 2] {
    let mut counts = [[0; 2]; 2];
    for packet in world.trace().sent(to).flat_map(|record| &record.packets) {
        let long = usize::from(packet.kind == PacketKind::OneRtt);
        counts[long][usize::from(!packet.quic_bit)] += 1;
    }
    counts
}

fn transfer(client: TransportConfig, server: TransportConfig, seed: u64) -> World {
    let (client, server) = (client_with(client), server_with(server));
    let app = Ask::streams(1, 200_000);
    let network = plain(seed).loss(one_in(50));
    let mut world = world(network, &client, &server, app);
    world.run(LIMIT);
    check(&world);
    world
}

/// Proves: rfc9287 3 greased-packets-are-taken
#[test]
fn half_of_the_packets_go_without_the_bit_when_both_agreed() {
    let world = transfer(transport(), transport(), 1);
    for to in [Side::Client, Side::Server] {
        let [_, [with, without]] = bits(&world, to);
        assert!(with > 20 && without > 20, "{with} {without}");
        assert!(with < 2 * without && without < 2 * with);
    }
}

/// Proves: rfc9287 3.1 bit-is-cleared-only-for-those-who-asked
#[test]
fn the_bit_is_always_set_for_those_who_did_not_ask() {
    let without = || transport().without_grease();
    for (client, server) in [(without(), transport()), (transport(), without())] {
        let world = transfer(client, server, 2);
        for to in [Side::Client, Side::Server] {
            let [long, short] = bits(&world, to);
            assert_eq!((long[1], short[1]), (0, 0));
        }
    }
}

/// Proves: rfc9287 3.1 initials-keep-the-bit
#[test]
fn a_client_sets_the_bit_until_it_knows_the_servers_parameters() {
    for seed in 0..20 {
        let world = transfer(transport(), transport(), seed);
        let packets = world.trace().sent(Side::Server);
        let mut initials = packets
            .flat_map(|record| &record.packets)
            .filter(|packet| packet.kind == PacketKind::Initial)
            .take(2);
        assert!(initials.all(|packet| packet.quic_bit));
    }
}
