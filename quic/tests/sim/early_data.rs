//! 0-RTT over the simulated network (RFC 9001 §4.6, RFC 9000 §7.4.1).

use std::time::Duration;

use hybriq::{
    EarlyData, TransportConfig,
    proto::endpoint::Setup,
    sim::{Ask, Network, Progress, World},
    tls::Side,
};

use crate::support::{DELAY, LIMIT, RTT, early_pair, plain, transport};

/// A world whose first client has been to the server once, and is gone.
fn visited(network: Network, client: &Setup, server: &Setup) -> World {
    let mut world = World::new(network, server.clone());
    world.connect(client, Ask::one_byte());
    world.run(LIMIT);
    assert_eq!(world.client(0).progress(), Progress::Done);
    world
}

/// What it takes a client from its first datagram to its answer.
fn answered_after(world: &World, index: usize) -> Duration {
    let client = world.client(index);
    client.done_at.expect("the client got its answer") - client.began_at
}

fn early_data(world: &World, index: usize) -> [EarlyData; 2] {
    let client = world.client(index).handshake.as_ref().unwrap();
    let server = world.accepted(index).handshake.as_ref().unwrap();
    [client.early_data, server.early_data]
}

/// Proves: rfc9001 4.6 early-data-answered-in-one-round-trip
/// Proves: rfc9000 17.2.3 early-data-in-zero-rtt-packets
#[test]
fn a_request_in_0_rtt_is_answered_after_one_round_trip() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    world.connect(&client, Ask::one_byte().early());
    world.run(LIMIT);
    assert_eq!(early_data(&world, 0), [EarlyData::None; 2]);
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
    assert_eq!(answered_after(&world, 1), RTT);
}
