//! Clients that move to another of their addresses by themselves (RFC 9000 §9.2).

use std::net::SocketAddr;

use hybriq::{error::MigrateError, tls::EarlyData};
use hybriq_proto::endpoint::{Local, SocketId};
use hybriq_sim::{Ask, Network, Progress, Stage, World, ms, one_in, per_mille};

use crate::{
    path_support::{Switch, download, elsewhere, finish, server_sees, start_download},
    support::{LIMIT, client_with, early_pair, server_with, transport},
};

const MIB: usize = 1024 * 1024;

/// A download during which the client moves; `during` says what else happens meanwhile.
fn moved(network: Network, during: impl Fn(&mut World)) -> World {
    let mut world = download(network, MIB);
    let local = world.bind_client(0, elsewhere(1));
    world.run_for(ms(100));
    migrate(&mut world, local);
    during(&mut world);
    let there = |world: &World| server_sees(world) == Some(elsewhere(1));
    assert!(world.run_until(LIMIT, there), "{:?}", server_sees(&world));
    finish(&mut world);
    assert_eq!(client_is_at(&world), Some(elsewhere(1).ip()));
    world
}

/// Starts to move; the server's spare connection ids may still be in flight.
fn migrate(world: &mut World, local: Local) {
    let mut outcome = Err(MigrateError::NoConnectionId);
    for _ in 0..100 {
        outcome = world.migrate(0, local);
        if outcome != Err(MigrateError::NoConnectionId) {
            break;
        }
        world.run_for(ms(50));
    }
    assert_eq!(outcome, Ok(()));
}

fn client_is_at(world: &World) -> Option<std::net::IpAddr> {
    let (_, path) = world.client(0).moves.last()?;
    path.local.ip
}

#[test]
fn a_transfer_goes_on_at_the_clients_other_address() {
    let world = moved(Network::new(1).delay(ms(10)), |_| {});
    let (client, server) = (world.client(0), world.accepted(0));
    assert_eq!((client.moves.len(), server.moves.len()), (1, 1));
    assert!(client.failed_paths.is_empty() && server.failed_paths.is_empty());
    let (at, _) = client.moves[0];
    let late = world.trace().records().iter().filter(|record| {
        let sent = record.stage == Stage::Sent;
        let from_old = record.toward.is_server() && record.client != elsewhere(1);
        let full_of_data = record.size < 1200;
        sent && record.at > at && from_old && full_of_data
    });
    assert_eq!(late.count(), 0, "nothing but probes from the old address");
}

#[test]
fn loss_and_key_updates_do_not_keep_a_client_from_moving() {
    for seed in 0..4 {
        for loss in [10, 50, 100] {
            for updates in [0, 1, 3] {
                let network = Network::new(seed).delay(ms(10)).loss(per_mille(loss));
                moved(network, |world| {
                    for number in 0..updates {
                        if world.client(0).close_reason().is_none() {
                            world.client_connection(0).update_keys();
                        }
                        if number % 2 == 1 && world.accepted(0).close_reason().is_none() {
                            world.accepted_connection(0).update_keys();
                        }
                        world.run_for(ms(30));
                    }
                });
            }
        }
    }
}

#[test]
fn a_client_leaves_a_path_that_is_dead_already() {
    let old = SocketAddr::from(([10, 0, 0, 0], 50_000));
    for seed in 0..3 {
        let switch = Switch::default();
        let network = Network::new(seed)
            .delay(ms(10))
            .loss(one_in(50))
            .node(switch.cuts(old));
        let mut world = download(network, MIB);
        assert_eq!(world.client_host(0).address, old);
        let local = world.bind_client(0, elsewhere(1));
        world.run_for(ms(100));
        switch.set(true);
        world.run_for(ms(50));
        migrate(&mut world, local);
        assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(1))));
        finish(&mut world);
    }
}

/// Proves: rfc9000 8.2.4 validation-is-abandoned
#[test]
fn a_client_stays_where_it_is_if_the_new_path_is_dead() {
    let switch = Switch::default();
    let network = Network::new(1)
        .delay(ms(10))
        .bandwidth(10_000_000, 50_000)
        .node(switch.cuts(elsewhere(1)));
    let mut world = download(network, 8 * MIB);
    switch.set(true);
    let local = world.bind_client(0, elsewhere(1));
    world.run_for(ms(100));
    migrate(&mut world, local);
    let failed = |world: &World| !world.client(0).failed_paths.is_empty();
    assert!(world.run_until(LIMIT, failed));
    assert!(world.client(0).moves.is_empty() && world.accepted(0).moves.is_empty());
    assert!(!world.client_connection(0).uses(local.socket));
    finish(&mut world);
}

#[test]
fn a_client_may_move_again_and_again() {
    let network = Network::new(1).delay(ms(5)).bandwidth(10_000_000, 50_000);
    let mut world = download(network, 4 * MIB);
    let first = world.client_connection(0).local();
    let second = world.bind_client(0, elsewhere(1));
    for to in [second, first, second, first, second] {
        migrate(&mut world, to);
        let there = |world: &World| world.client(0).moves.last().map(|(_, path)| path.local);
        assert!(world.run_until(LIMIT, |world| there(world) == Some(to)));
        world.run_for(ms(100));
    }
    finish(&mut world);
}

#[test]
fn a_client_that_changes_its_mind_stays_where_it_is() {
    let mut world = download(Network::new(1).delay(ms(20)), MIB);
    let home = world.client_connection(0).local();
    let away = world.bind_client(0, elsewhere(1));
    world.run_for(ms(100));
    migrate(&mut world, away);
    world.run_for(ms(10));
    migrate(&mut world, home);
    finish(&mut world);
    assert!(world.client(0).moves.is_empty());
    let given_up = world.client(0).failed_paths.iter();
    assert_eq!(
        given_up.map(|(_, path)| path.local).collect::<Vec<_>>(),
        [away]
    );
}

/// Proves: rfc9000 9 no-migration-before-confirmation
#[test]
fn nobody_moves_before_the_handshake_is_confirmed() {
    let mut world = World::new(Network::new(1).delay(ms(10)), server_with(transport()));
    world.connect(&client_with(transport()), Ask::one_byte());
    let local = world.bind_client(0, elsewhere(1));
    world.run_for(ms(5));
    assert_eq!(world.migrate(0, local), Err(MigrateError::NotConfirmed));
    world.run(LIMIT);
    let seen = world.trace().records().iter();
    assert_eq!(
        seen.filter(|record| record.client == elsewhere(1)).count(),
        0
    );
}

/// Proves: rfc9000 9 disabled-migration-is-obeyed
#[test]
fn nobody_moves_where_the_server_does_not_want_it() {
    let server = server_with(transport().without_migration());
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    start_download(&mut world, &client_with(transport()), MIB);
    let local = world.bind_client(0, elsewhere(1));
    assert_eq!(world.migrate(0, local), Err(MigrateError::Disabled));
    finish(&mut world);
}

/// Proves: rfc9000 9 only-clients-migrate
#[test]
fn a_server_does_not_move() {
    let mut world = download(Network::new(1).delay(ms(10)), MIB);
    let (now, local) = (
        world.instant(),
        Local {
            socket: SocketId(1),
            ip: None,
        },
    );
    let refused = world.accepted_connection(0).migrate(now, local);
    assert_eq!(refused, Err(MigrateError::Server));
}

#[test]
fn a_connection_that_began_in_0_rtt_moves_despite_loss_and_key_updates() {
    const BYTES: usize = 256 * 1024;
    for seed in 0..3 {
        for loss in [0, 20, 100] {
            for updates in [0, 2] {
                let (client, server) = early_pair(transport(), transport());
                let network = Network::new(seed).delay(ms(10)).loss(per_mille(loss));
                let mut world = World::new(network, server);
                world.connect(&client, Ask::one_byte());
                world.run(LIMIT);
                world.connect(&client, Ask::streams(1, BYTES).early());
                let confirmed = |world: &World| world.client(1).confirmed_at.is_some();
                assert!(world.run_until(LIMIT, confirmed));
                let local = world.bind_client(1, elsewhere(1));
                let mut refused = world.migrate(1, local);
                while refused == Err(MigrateError::NoConnectionId) {
                    world.run_for(ms(10));
                    refused = world.migrate(1, local);
                }
                assert_eq!(refused, Ok(()));
                for _ in 0..updates {
                    if world.client(1).closed.is_none() {
                        world.client_connection(1).update_keys();
                    }
                    world.run_for(ms(30));
                }
                world.run(LIMIT);
                let client = world.client(1);
                let what = format!("seed {seed}, {loss} per mille, {updates} updates");
                assert_eq!(client.progress(), Progress::Done, "{what}");
                assert_eq!(client.moves.len(), 1, "{what}");
                let early = client.handshake.as_ref().map(|it| it.early_data);
                assert_eq!(early, Some(EarlyData::Accepted), "{what}");
            }
        }
    }
}
