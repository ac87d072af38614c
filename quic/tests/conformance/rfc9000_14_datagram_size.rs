//! RFC 9000 §14: datagrams that are too small or too large.

use hybriq::tls::Side;
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{Forge, InitialFrame, Network, PacketKind, one_in};

use crate::{
    duo::Duo,
    stalled::{give, heard_nothing, ping, received},
};

/// Proves: rfc9000 14 large-and-small-datagrams-do-not-close
#[test]
fn datagrams_of_odd_sizes_do_not_close() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        for size in [0, 1, 2, 20, 21, 1201, 1453, 9001, 65_507, 65_527] {
            for first in [0x40, 0xc0] {
                let mut payload = vec![0; size];
                if let Some(byte) = payload.first_mut() {
                    *byte = first;
                }
                duo.put(from, payload);
            }
        }
        // The smallest there are.
        duo.send(from, ping);
        duo.assert_alive();
    }
}

/// Proves: rfc9000 14.1 small-initials-are-dropped
#[test]
fn a_server_takes_initials_in_full_datagrams_only() {
    let mut stalled = heard_nothing();
    for (size, taken) in [(40, 0), (1199, 0), (1200, 1)] {
        let client = stalled.client_connection(0);
        let packet = client.forge(Space::Initial, |_| (), size, ping);
        let before = received(&mut stalled, Side::Server);
        give(&mut stalled, Side::Server, packet);
        assert_eq!(
            received(&mut stalled, Side::Server),
            before + taken,
            "{size}"
        );
    }
}

/// Proves: rfc9000 8.1 client-initials-are-full
/// Proves: rfc9000 14.1 server-initials-are-full
#[test]
fn initials_fill_their_datagrams() {
    for seed in 0..20 {
        let network = Network::new(seed).loss(one_in(4));
        let (client, server) = (crate::duo::client, crate::duo::server);
        let config = hybriq::TransportConfig::new;
        let mut world = hybriq_sim::World::new(network, server(config()));
        world.connect(&client(config()), hybriq_sim::Idle);
        world.run_for(hybriq_sim::ms(5000));
        for record in world.trace().sent(Side::Server) {
            assert!(!record.has(PacketKind::Initial) || record.size >= 1200);
        }
        let address = world.client_host(0).address;
        for (_, initial) in world.trace().initials(Side::Server, address) {
            let quiet = initial.frames.iter().all(|frame| {
                matches!(
                    frame,
                    InitialFrame::Ack(_) | InitialFrame::Padding(_) | InitialFrame::Close(_)
                )
            });
            assert!(quiet || initial.datagram_size >= 1200);
        }
    }
}
