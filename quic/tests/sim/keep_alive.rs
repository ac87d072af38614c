//! Idle timeouts as both ends agree on them, and connections that are kept alive (RFC 9000 §10.1).

use std::time::Duration;

use hybriq::{ConnectionError, TransportConfig, tls::Side};
use hybriq_sim::{Idle, World, one_in};

use crate::support::{LIMIT, RTT, client_with, plain, server_with, transport};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A world with one connection that nobody uses.
fn idle(client: TransportConfig, server: TransportConfig) -> World {
    let mut world = World::new(plain(1), server_with(server));
    world.connect(&client_with(client), Idle);
    world.run_for(6 * RTT);
    assert!(world.client(0).confirmed_at.is_some());
    world
}

/// Proves: rfc9000 10.1 idle-timeout-is-the-smaller
#[test]
fn the_smaller_idle_timeout_counts_for_both() {
    let cases = [
        (Some(20), Some(8), 8),
        (Some(8), Some(20), 8),
        (None, Some(9), 9),
        (Some(9), None, 9),
    ];
    for (ours, theirs, expected) in cases {
        let timeout = |seconds: Option<u64>| transport().idle_timeout(seconds.map(secs));
        let mut world = idle(timeout(ours), timeout(theirs));
        world.run(LIMIT);
        for peer in [world.client(0), world.accepted(0)] {
            let (at, reason) = peer.closed.as_ref().unwrap();
            assert_eq!(*reason, ConnectionError::TimedOut);
            let late = at.saturating_sub(peer.complete_at.unwrap());
            assert!(
                (secs(expected)..secs(expected) + 6 * RTT).contains(&late),
                "{late:?}"
            );
        }
        // The connection ends silently.
        let last = world.trace().sent(Side::Server).last().unwrap().at;
        assert!(last < secs(2));
    }
}

#[test]
fn without_idle_timeouts_a_connection_waits_for_ever() {
    let forever = || transport().idle_timeout(None);
    let mut world = idle(forever(), forever());
    world.run_for(secs(1_000_000));
    assert!(world.client(0).closed.is_none() && world.accepted(0).closed.is_none());
    world.close_client(0, 0);
    world.run(LIMIT);
}

/// Proves: rfc9000 10.1 idle-timeout-has-a-floor
#[test]
fn an_idle_timeout_is_three_probe_timeouts_at_least() {
    let hasty = transport().idle_timeout(Some(Duration::from_millis(1)));
    let mut world = World::new(plain(1), server_with(transport()));
    world.connect(&client_with(hasty), Idle);
    let confirmed = world.run_until(LIMIT, |world| world.client(0).confirmed_at.is_some());
    assert!(confirmed, "{:?}", world.client(0).close_reason());
    world.run(LIMIT);
    let (at, _) = world.client(0).closed.clone().unwrap();
    let confirmed_at = world.client(0).confirmed_at.unwrap();
    assert!(at >= confirmed_at + 3 * RTT);
}

#[test]
fn either_end_keeps_a_connection_alive() {
    let keeps = || transport().keep_alive(secs(10));
    for (client, server) in [
        (keeps(), transport()),
        (transport(), keeps()),
        (keeps(), keeps()),
    ] {
        let mut world = idle(client, server);
        let before = world.trace().sent(Side::Server).count();
        world.run_for(secs(3600));
        assert!(world.client(0).closed.is_none() && world.accepted(0).closed.is_none());
        let packets = world.trace().sent(Side::Server).count() - before;
        assert!((350..=370).contains(&packets), "{packets} in 360 intervals");
        world.close_client(0, 0);
        world.run(LIMIT);
    }
}

#[test]
fn half_the_idle_timeout_is_the_longest_interval() {
    let eager = transport().keep_alive(secs(3600));
    let mut world = idle(eager, transport().idle_timeout(Some(secs(4))));
    world.run_for(secs(1000));
    assert!(world.client(0).closed.is_none());
    world.close_client(0, 0);
    world.run(LIMIT);
}

#[test]
fn a_lost_sign_of_life_is_asked_for_again() {
    for seed in 0..10 {
        let network = plain(seed).loss(one_in(5));
        let mut world = World::new(network, server_with(transport()));
        let eager = transport().keep_alive(secs(5));
        world.connect(&client_with(eager), Idle);
        world.run_for(secs(600));
        let peers = [world.client(0), world.accepted(0)];
        for peer in peers {
            assert_eq!(peer.closed, None, "seed {seed}");
        }
        world.close_client(0, 0);
        world.run(LIMIT);
    }
}

#[test]
fn a_peer_that_is_gone_is_not_kept_alive() {
    let (from, to) = (secs(5), secs(100_000));
    let network = plain(1).blackout([(from, to)]);
    let mut world = World::new(network, server_with(transport()));
    world.connect(&client_with(transport().keep_alive(secs(3))), Idle);
    world.run(LIMIT);
    let (at, reason) = world.client(0).closed.clone().unwrap();
    assert_eq!(reason, ConnectionError::TimedOut);
    // From the first question that stayed without an answer.
    assert!(at < from + secs(3) + secs(31), "{at:?}");
}

/// Proves: rfc9000 10.1 idle-timeout-has-a-floor
#[test]
fn a_peer_with_a_tiny_idle_timeout_is_not_asked_without_pause() {
    let hasty = transport().idle_timeout(Some(Duration::from_millis(1)));
    let mut world = World::new(plain(1), server_with(hasty));
    world.connect(&client_with(transport().keep_alive(secs(10))), Idle);
    let confirmed = world.run_until(LIMIT, |world| world.client(0).confirmed_at.is_some());
    assert!(confirmed, "{:?}", world.client(0).close_reason());
    let before = world.trace().sent(Side::Client).count();
    world.run_for(secs(100));
    assert!(world.client(0).closed.is_none(), "it is kept alive");
    let sent = world.trace().sent(Side::Client).count() - before;
    let round_trips = secs(100).as_nanos() / RTT.as_nanos();
    assert!((sent as u128) < round_trips, "{sent} datagrams");
    world.close_client(0, 0);
    world.run(LIMIT);
}
