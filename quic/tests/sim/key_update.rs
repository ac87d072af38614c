//! Key updates in the middle of everything else (RFC 9001 §6).

use hybriq::{Backend, TransportConfig, transport::Version};
use hybriq_sim::{Ask, Network, Peer, Progress, World, ms, one_in};

use crate::support::{LIMIT, check, client_with, pair, server_with, transport, world};

/// Bytes of a transfer that takes half a second and more each way.
const BYTES: usize = 1 << 18;

fn link(seed: u64) -> Network {
    Network::new(seed)
        .bandwidth(4_000_000, 32_000)
        .delay(ms(10))
}

fn updates(world: &World) -> [u64; 2] {
    [world.client(0), world.accepted(0)].map(|end| end.stats().key_updates)
}

fn often(version: Version) -> TransportConfig {
    transport().versions([version]).key_update_after(20)
}

/// Proves: rfc9001 6.2 update-is-followed
#[test]
fn keys_that_both_ends_update_all_the_time_carry_a_transfer_over_a_bad_network() {
    for version in Version::ALL {
        for seed in 0..4 {
            let network = link(seed)
                .loss(one_in(30))
                .reorder(one_in(10), ms(8))
                .duplicate(one_in(10), ms(3))
                .corrupt(one_in(50));
            let (client, server) = (client_with(often(version)), server_with(often(version)));
            let mut world = world(network, &client, &server, Ask::streams(2, BYTES));
            world.run(10 * LIMIT);
            check(&world);
            let [ours, theirs] = updates(&world);
            assert!(ours >= 5 && ours.abs_diff(theirs) <= 1, "{ours} {theirs}");
        }
    }
}

#[test]
fn updates_that_both_ends_start_at_once_are_one() {
    for seed in 0..8 {
        let network = link(seed).loss(one_in(20)).reorder(one_in(5), ms(15));
        let (client, server) = pair();
        let mut world = world(network, &client, &server, Ask::streams(2, BYTES));
        for count in 1..=2 {
            world.run_for(ms(250));
            world.client_connection(0).request_key_update();
            world.accepted_connection(0).request_key_update();
            let both = |world: &World| updates(world).iter().all(|done| *done >= count);
            assert!(world.run_until(LIMIT, both), "{:?}", updates(&world));
        }
        world.run(10 * LIMIT);
        check(&world);
        let [ours, theirs] = updates(&world);
        assert!((2..=4).contains(&ours) && ours.abs_diff(theirs) <= 1);
    }
}

/// Proves: rfc9001 6.1 no-update-before-the-last-is-acknowledged
#[test]
fn updates_are_no_more_frequent_than_three_pto() {
    let often = || often(Version::V2);
    let (client, server) = (client_with(often()), server_with(often()));
    let mut world = world(link(1), &client, &server, Ask::streams(2, BYTES));
    assert!(world.run_until(LIMIT, |world| world.server().peers().len() == 1));
    let mut last = None;
    while world.client(0).progress() == Progress::Busy {
        let [before, _] = updates(&world);
        let more = |world: &World| {
            updates(world)[0] > before || world.client(0).progress() != Progress::Busy
        };
        assert!(world.run_until(LIMIT, more));
        if updates(&world)[0] > before {
            let now = world.now();
            // At least three round trips, which are less than three PTO.
            let since = last.map(|at| now.saturating_sub(at));
            assert!(since.is_none_or(|since| since >= ms(60)), "{since:?}");
            last = Some(now);
        }
    }
    let closed = |peer: &Peer| peer.close_reason().is_some();
    assert!(world.run_until(LIMIT, |world| closed(world.client(0))));
    assert!(updates(&world)[0] >= 3);
}

#[test]
fn every_provider_pair_survives_key_updates() {
    use crate::support::{client, server};
    for ours in Backend::ALL {
        for theirs in Backend::ALL {
            let policy = hybriq::KeyExchange::default;
            let with = |mut setup: hybriq_proto::endpoint::Setup| {
                setup.transport = transport().key_update_after(20).into();
                setup
            };
            let (client, server) = (client(ours, policy()), server(theirs, policy()));
            let app = Ask::streams(2, BYTES);
            let mut world = world(link(3), &with(client), &with(server), app);
            world.run(LIMIT);
            check(&world);
            assert!(updates(&world)[0] >= 2);
        }
    }
}
