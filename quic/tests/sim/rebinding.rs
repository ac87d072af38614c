//! A NAT gives a client another address, and neither of them is told (RFC 9000 §9.3).

use std::{net::SocketAddr, time::Duration};

use hybriq::{ConnectionError, tls::Side};
use hybriq_proto::owners::streams::Direction;
use hybriq_sim::{Answer, Ask, Idle, Network, Progress, World, ms, one_in};

use crate::{
    path_support::{
        Overtaker, Spoofer, Switch, download, elsewhere, finish, port, server_sees, start_download,
    },
    support::{LIMIT, client_with, pair, server_with, transport, world},
};

const MIB: usize = 1024 * 1024;

/// An echo during which the client's address changes once.
fn rebound(network: Network, to: SocketAddr) -> World {
    let (client, server) = pair();
    let mut world = world(network, &client, &server, Ask::streams(1, MIB));
    world.run_for(ms(150));
    world.rebind(0, to);
    let followed = world.run_until(LIMIT, |world| server_sees(world) == Some(to));
    assert!(followed, "the server is with {:?}", server_sees(&world));
    finish(&mut world);
    world
}

/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_transfer_goes_on_when_the_port_changes() {
    for seed in 0..3 {
        rebound(
            Network::new(seed).delay(ms(10)).loss(one_in(50)),
            port(60_000),
        );
    }
}

/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_transfer_goes_on_when_the_address_changes() {
    for seed in 0..3 {
        rebound(
            Network::new(seed).delay(ms(10)).loss(one_in(50)),
            elsewhere(1),
        );
    }
}

/// Returns the share of the link's capacity that an echo over 20 Mbit/s uses while the client's
/// address changes every second for ten seconds. The server could not follow a client that sent
/// nothing.
fn goodput(address: impl Fn(u8) -> SocketAddr) -> f64 {
    const RATE: u64 = 20_000_000;
    let network = Network::new(1).delay(ms(20)).bandwidth(RATE, 100_000);
    let (client, server) = pair();
    let mut world = world(network, &client, &server, Ask::streams(1, 100 * MIB));
    world.expect_bulk(2_000_000);
    world.run_for(Duration::from_secs(1));
    let before = world.client(0).stats().bytes_received;
    for number in 0..10 {
        world.run_for(Duration::from_secs(1));
        world.rebind(0, address(number));
    }
    assert!(world.accepted(0).moves.len() >= 9);
    assert_eq!(world.client(0).close_reason(), None);
    assert_eq!(
        world.client(0).progress(),
        Progress::Busy,
        "what came is right"
    );
    let bytes = world.client(0).stats().bytes_received - before;
    bytes as f64 * 8.0 / (10.0 * RATE as f64)
}

/// Proves: rfc9000 9.4 congestion-state-is-reset
#[test]
fn a_port_that_changes_every_second_costs_little() {
    let used = goodput(|number| port(60_000 + u16::from(number)));
    println!("{used:.2} of the link");
    assert!(used > 0.75, "{used:.2} of the link");
}

#[test]
fn an_address_that_changes_every_second_stops_nothing() {
    let used = goodput(elsewhere);
    println!("{used:.2} of the link");
    assert!(used > 0.5, "{used:.2} of the link");
}

/// A client that only fetches says nothing when all that the server sends is lost behind the NAT:
/// what it sends to keep the connection alive is what the server finds it by.
///
/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_client_that_keeps_its_connection_alive_fetches_whatever_its_nat_does() {
    for seed in 0..3 {
        let network = Network::new(seed)
            .delay(ms(20))
            .bandwidth(20_000_000, 100_000)
            .loss(one_in(100));
        let mut world = World::new(network, server_with(transport()));
        let client = client_with(transport().keep_alive(ms(200)));
        start_download(&mut world, &client, 4 * MIB);
        let mut number = 0;
        while world.client(0).closed.is_none() {
            world.run_for(Duration::from_secs(1));
            number += 1;
            assert!(number < 30, "seed {seed}: no end");
            world.rebind(0, elsewhere(number));
        }
        finish(&mut world);
        assert!(world.accepted(0).moves.len() >= 2);
    }
}

/// Without a keep-alive a client that waits for data makes itself heard after a second of silence.
///
/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_client_that_waits_for_data_is_found_again_by_default() {
    for seed in 0..3 {
        let network = Network::new(seed)
            .delay(ms(20))
            .bandwidth(20_000_000, 100_000);
        let mut world = World::new(network, server_with(transport()));
        start_download(&mut world, &client_with(transport()), 16 * MIB);
        let mut number = 0;
        while world.client(0).closed.is_none() {
            world.run_for(Duration::from_secs(3));
            number += 1;
            assert!(number < 30, "seed {seed}: no end");
            world.rebind(0, elsewhere(number));
        }
        finish(&mut world);
        assert!(world.accepted(0).moves.len() >= 2, "seed {seed}");
    }
}

/// The answer takes long, and meanwhile the NAT forgets the client, whose request was acknowledged
/// long ago. The silence before a PING doubles, so the answer comes at most as late again as it took.
///
/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_client_that_waits_long_for_an_answer_is_found_again_by_default() {
    for (before, moves_after, answered_after) in
        [(0, 1500, 2000), (10_000, 4000, 5000), (300, 8000, 13_000)]
    {
        let (client, server) = pair();
        let mut world = World::new(Network::new(1).delay(ms(20)), server);
        let server = world.server_mut();
        server.on_incoming(|_| Answer::Accept(None, Box::new(Idle)));
        world.connect(&client, Idle);
        world.run_for(ms(500 + before));
        let streams = world.client_connection(0).streams();
        let id = streams.open(Direction::Bidi).unwrap();
        streams.write(id, b"request").unwrap();
        world.run_for(ms(moves_after));
        world.rebind(0, elsewhere(1));
        world.run_for(ms(answered_after - moves_after));
        let streams = world.accepted_connection(0).streams();
        assert_eq!(streams.accept(Direction::Bidi), Some(id));
        streams.write(id, b"answer").unwrap();
        world.run_for(ms(answered_after + 1000));
        let streams = world.client_connection(0).streams();
        let read = streams.read(id, &mut [0; 10]);
        assert_eq!(
            read,
            Ok(6),
            "asked after {before} ms, answered after {answered_after} ms"
        );
    }
}

/// Proves: rfc9000 9.3.3 old-path-is-challenged
/// Proves: security 8 off-path-attackers-redirect-nobody
#[test]
fn copies_that_come_first_from_elsewhere_redirect_nobody_for_good() {
    for seed in 0..3 {
        let switch = Switch::default();
        let attacker = Overtaker {
            switch: switch.clone(),
            source: elsewhere(66),
            lead: ms(1),
        };
        let network = Network::new(seed)
            .delay(ms(10))
            .toward(Side::Server, attacker);
        let mut world = download(network, 4 * MIB);
        world.run_for(ms(50));
        switch.set(true);
        world.run_for(ms(500));
        assert!(
            world
                .accepted(0)
                .moves
                .iter()
                .any(|(_, path)| path.peer == elsewhere(66)),
            "the attack worked at all"
        );
        switch.set(false);
        let client = world.client_host(0).address;
        assert!(world.run_until(ms(1500), |world| server_sees(world) == Some(client)));
        finish(&mut world);
    }
}

/// Nothing comes back from the address, so no more than three times what arrived is sent there: the
/// world checks that. In the end the server remembers where it was.
///
/// Proves: rfc9000 8 three-times-what-came
/// Proves: security 8 spoofed-addresses-get-little
/// Proves: rfc9000 9.3.2 failed-validation-reverts
#[test]
fn a_spoofed_address_gets_little_and_keeps_nothing() {
    for seed in 0..3 {
        let switch = Switch::default();
        let spoofer = Spoofer {
            switch: switch.clone(),
            source: elsewhere(99),
        };
        let network = Network::new(seed)
            .delay(ms(10))
            .toward(Side::Server, spoofer);
        let mut world = download(network, 2 * MIB);
        world.run_for(ms(50));
        switch.set(true);
        assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(99))));
        world.run_for(ms(20));
        switch.set(false);
        let client = world.client_host(0).address;
        let back = world.run_until(LIMIT, |world| server_sees(world) == Some(client));
        assert!(back, "seed {seed}");
        finish(&mut world);
    }
}

/// Proves: rfc9000 9.3.2 failed-validation-reverts
#[test]
fn a_client_that_fell_silent_at_a_spoofed_address_is_found_where_it_was() {
    let switch = Switch::default();
    let spoofer = Spoofer {
        switch: switch.clone(),
        source: elsewhere(99),
    };
    let network = Network::new(1)
        .delay(ms(10))
        .toward(Side::Server, spoofer)
        // Datagrams that the client sends afterwards are lost: only the timer can help.
        .toward(Side::Server, {
            let switch = switch.clone();
            let mut moved = false;
            hybriq_sim::DropIf(move |datagram: &hybriq_sim::Datagram, _: Side| {
                moved |= datagram.source == elsewhere(99);
                moved && switch.is_on() && datagram.source != elsewhere(99)
            })
        });
    let mut world = download(network, 4 * MIB);
    world.run_for(ms(50));
    switch.set(true);
    assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(elsewhere(99))));
    let client = world.client_host(0).address;
    assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(client)));
    let failed: Vec<_> = world.accepted(0).failed_paths.iter().collect();
    assert!(matches!(failed[..], [(_, path)] if path.peer == elsewhere(99)));
    switch.set(false);
    finish(&mut world);
}

/// Proves: rfc9000 9 disabled-migration-is-no-reset
#[test]
fn where_moving_is_not_allowed_only_a_port_may_change() {
    let mut world = World::new(
        Network::new(1).delay(ms(10)).bandwidth(10_000_000, 50_000),
        server_with(transport().without_migration().idle_timeout(Some(ms(5000)))),
    );
    start_download(&mut world, &client_with(transport()), 40 * MIB);
    world.rebind(0, port(60_000));
    assert!(world.run_until(LIMIT, |world| server_sees(world) == Some(port(60_000))));
    world.run_for(ms(300));
    world.rebind(0, elsewhere(1));
    world.run_for(Duration::from_secs(20));
    let moves = &world.accepted(0).moves;
    assert!(moves.iter().all(|(_, path)| path.peer == port(60_000)));
    assert_eq!(
        world.accepted(0).close_reason(),
        Some(&ConnectionError::TimedOut)
    );
}
