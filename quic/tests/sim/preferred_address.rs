//! Servers that would rather be elsewhere (RFC 9000 §9.6).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use hybriq::{TransportConfig, error::MigrateError};
use hybriq_sim::{Network, SERVER_ADDRESS, Stage, World, ms, per_mille};

use crate::{
    path_support::{Switch, elsewhere, finish, server_sees, start_download},
    support::{LIMIT, client_with, server_with, transport},
};

const MIB: usize = 1024 * 1024;

const PREFERRED: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 443);

fn preferring() -> TransportConfig {
    transport().preferred_address(Some(PREFERRED), None)
}

/// A download from a server with a preferred address.
fn download(network: Network, server: TransportConfig, bytes: usize) -> World {
    let mut world = World::new(network, server_with(server));
    world.bind_server(PREFERRED.into());
    start_download(&mut world, &client_with(transport()), bytes);
    world
}

fn client_sees(world: &World) -> Option<SocketAddr> {
    let moved = world.client(0).moves.last();
    moved.map(|(_, path)| path.peer)
}

fn server_moved(world: &World) -> bool {
    let (client, server) = (world.client(0), world.accepted(0));
    let ours = server.moves.last().map(|(_, path)| path.local.socket.0);
    client.moves.len() == 1 && ours == Some(1)
}

/// Proves: rfc9000 9.6.3 client-moves-to-preferred-address
/// Proves: rfc9000 9.6.2 server-stays-until-the-client-moves
#[test]
fn both_ends_move_to_the_preferred_address() {
    for seed in 0..4 {
        for loss in [0, 20, 100] {
            let network = Network::new(seed).delay(ms(10)).loss(per_mille(loss));
            let mut world = download(network, preferring(), MIB);
            let moved = world.run_until(LIMIT, server_moved);
            assert!(moved, "seed {seed}, {loss} per mille");
            assert_eq!(client_sees(&world), Some(PREFERRED.into()));
            finish(&mut world);
        }
    }
}

#[test]
fn a_client_that_has_nothing_to_send_moves_too() {
    let network = Network::new(1).delay(ms(10));
    let mut world = World::new(network, server_with(preferring()));
    world.bind_server(PREFERRED.into());
    world.connect(&client_with(transport()), hybriq_sim::Idle);
    world.run_for(ms(30));
    assert!(world.run_until(LIMIT, server_moved));
}

/// Proves: rfc9000 9.6.1 preferred-address-failing-stays
#[test]
fn a_client_stays_if_nobody_answers_at_the_preferred_address() {
    let switch = Switch::default();
    switch.set(true);
    let network = Network::new(1)
        .delay(ms(10))
        .bandwidth(10_000_000, 50_000)
        .node(switch.cuts(PREFERRED.into()));
    let mut world = download(network, preferring(), 4 * MIB);
    let failed = |world: &World| !world.client(0).failed_paths.is_empty();
    assert!(world.run_until(LIMIT, failed));
    finish(&mut world);
    assert!(world.client(0).moves.is_empty() && world.accepted(0).moves.is_empty());
}

/// Proves: rfc9000 9.6.3 client-moves-to-preferred-address
#[test]
fn a_client_moves_although_the_old_path_is_dead() {
    for seed in 0..4 {
        for loss in [0, 50] {
            let switch = Switch::default();
            let network = Network::new(seed)
                .delay(ms(10))
                .loss(per_mille(loss))
                .node(switch.cuts(SERVER_ADDRESS));
            let mut world = download(network, preferring(), MIB);
            switch.set(true);
            let moved = world.run_until(LIMIT, server_moved);
            assert!(moved, "seed {seed}, {loss} per mille");
            finish(&mut world);
        }
    }
}

/// Proves: rfc9000 18.2 disable-active-migration-ends-at-the-preferred-address
#[test]
fn a_client_that_must_stay_may_go_to_the_preferred_address_and_on_from_there() {
    let network = Network::new(1).delay(ms(10)).bandwidth(10_000_000, 50_000);
    let mut world = download(network, preferring().without_migration(), 4 * MIB);
    let local = world.bind_client(0, elsewhere(1));
    assert_eq!(world.migrate(0, local), Err(MigrateError::Disabled));
    assert!(world.run_until(LIMIT, server_moved));
    world.run_for(ms(300));
    assert_eq!(world.migrate(0, local), Ok(()));
    assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(1))));
    assert_eq!(client_sees(&world), Some(PREFERRED.into()));
    finish(&mut world);
}

/// Proves: rfc9000 9.6.3 client-moves-to-preferred-address
#[test]
fn a_client_that_moves_on_its_way_to_the_preferred_address_arrives_there() {
    for dead in [false, true] {
        let switch = Switch::default();
        switch.set(dead);
        let network = Network::new(1)
            .delay(ms(10))
            .bandwidth(10_000_000, 50_000)
            .node(switch.cuts(PREFERRED.into()));
        let mut world = download(network, preferring(), 4 * MIB);
        let local = world.bind_client(0, elsewhere(1));
        // The spare ids are on their way, the answer from the preferred address is not here yet.
        let mut outcome = world.migrate(0, local);
        while outcome == Err(MigrateError::NoConnectionId) {
            world.run_for(ms(1));
            outcome = world.migrate(0, local);
        }
        assert_eq!(outcome, Ok(()));
        assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(1))));
        world.run_for(ms(100));
        let there = if dead {
            SERVER_ADDRESS
        } else {
            PREFERRED.into()
        };
        assert_eq!(client_sees(&world), Some(there));
        finish(&mut world);
    }
}

/// Proves: rfc9000 9.6.2 server-stays-until-the-client-moves
#[test]
fn a_server_that_moved_sends_nothing_more_from_where_it_was() {
    let network = Network::new(1).delay(ms(10)).bandwidth(10_000_000, 50_000);
    let mut world = download(network, preferring(), 2 * MIB);
    assert!(world.run_until(LIMIT, server_moved));
    let (at, _) = world.accepted(0).moves[0];
    finish(&mut world);
    let sent = world.trace().records().iter().filter(|record| {
        let by_server = record.stage == Stage::Sent && !record.toward.is_server();
        by_server && record.at > at && record.server == SERVER_ADDRESS
    });
    // The server may ask if the client is still where it was (RFC 9000 §9.3.3).
    assert!(sent.count() <= 4);
}

/// Proves: rfc9000 9 unknown-servers-are-dropped
#[test]
fn a_client_takes_nothing_from_where_it_knows_no_server() {
    let stranger = SocketAddr::from(([203, 0, 113, 66], 443));
    let network = Network::new(1).delay(ms(10)).toward(
        hybriq::tls::Side::Client,
        hybriq_sim::adversary::spoof(20, stranger),
    );
    let mut world = download(network, transport(), MIB);
    finish(&mut world);
    assert!(world.client(0).stats().packets_dropped >= 1);
    assert!(world.accepted(0).stats().packets_lost >= 1);
}
