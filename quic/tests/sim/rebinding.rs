//! A NAT gives a client another address, and neither of them is told (RFC 9000 §9.3).

use std::net::SocketAddr;

use hybriq::sim::{Ask, Network, World, ms, one_in};

use crate::support::{LIMIT, check, pair, world};

const MIB: usize = 1024 * 1024;

/// Another port of the address that the first client has.
fn port(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 0], number))
}

/// Another address altogether.
fn elsewhere(number: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, number], 40_000))
}

fn transfer(network: Network, bytes: usize) -> World {
    let (client, server) = pair();
    let mut world = world(network, &client, &server, Ask::streams(1, bytes));
    assert!(world.run_until(LIMIT, |world| world.client(0).confirmed_at.is_some()));
    world
}

fn server_sees(world: &World) -> Option<SocketAddr> {
    let connection = world.accepted(0).connection.as_ref();
    connection.map(hybriq::proto::connection::Connection::remote_address)
}

/// Proves: rfc9000 9.3 peer-is-followed-to-its-new-address
#[test]
fn a_transfer_goes_on_when_the_port_changes() {
    for seed in 0..3 {
        let mut world = transfer(Network::new(seed).delay(ms(10)).loss(one_in(50)), MIB);
        world.run_for(ms(100));
        world.rebind(0, port(60_000));
        assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(port(60_000))));
        world.run(LIMIT);
        check(&world);
    }
}

/// Proves: rfc9000 9.3 peer-is-followed-to-its-new-address
#[test]
fn a_transfer_goes_on_when_the_address_changes() {
    for seed in 0..3 {
        let mut world = transfer(Network::new(seed).delay(ms(10)).loss(one_in(50)), MIB);
        world.run_for(ms(100));
        world.rebind(0, elsewhere(1));
        assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(1))));
        world.run(LIMIT);
        check(&world);
    }
}
