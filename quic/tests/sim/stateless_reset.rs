//! Servers that lost their connections say so, and what else looks like it does no harm
//! (RFC 9000 §10.3).

use std::time::Duration;

use hybriq::{ConnectionError, Direction, fleet::ResetKey, tls::Side};
use hybriq_proto::endpoint::StatelessReset;
use hybriq_sim::{Datagram, Idle, Network, PacketKind, SERVER_ADDRESS, World, ms, one_in};

use crate::support::{LIMIT, RTT, pair, plain};

const SECRET: [u8; 32] = [7; 32];

/// A world whose client has an idle connection to a server with that key.
fn connected(network: Network, secret: [u8; 32]) -> World {
    let (client, server) = pair();
    let mut world = World::new(network, server);
    let endpoint = world.server_mut().endpoint_mut();
    endpoint.set_reset_key(ResetKey::from_secret(secret));
    world.connect(&client, Idle);
    let confirmed = world.run_until(LIMIT, |world| world.client(0).confirmed_at.is_some());
    assert!(confirmed);
    world.run_for(4 * RTT);
    world
}

/// Lets the server forget everything but its key.
fn restart(world: &mut World, secret: [u8; 32]) {
    let endpoint = world.restart_server(pair().1).endpoint_mut();
    endpoint.set_reset_key(ResetKey::from_secret(secret));
}

/// Makes the client send something.
fn speak(world: &mut World) {
    let streams = world.client_connection(0).streams();
    let id = streams.open(Direction::Uni).unwrap();
    let _ = streams.write(id, b"are you there?");
}

/// Proves: rfc9000 10.3.1 reset-drains
/// Proves: rfc9000 10.3.2 reset-tokens-cannot-be-guessed
#[test]
fn a_server_that_lost_its_connections_ends_them_by_the_first_packet() {
    let mut world = connected(plain(1), SECRET);
    restart(&mut world, SECRET);
    speak(&mut world);
    let before = world.now();
    assert!(world.run_until(LIMIT, |world| world.client(0).closed.is_some()));
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::Reset)
    );
    assert_eq!(world.now(), before + RTT);
    assert_eq!(world.server().stats().stateless_resets, 1);
    // Nothing is sent after it, not even a close.
    world.run(LIMIT);
    let last = world.trace().sent(Side::Server).last().unwrap();
    assert!(last.at <= before);
}

#[test]
fn a_server_with_another_key_leaves_the_client_to_its_idle_timeout() {
    let mut world = connected(plain(2), SECRET);
    restart(&mut world, [8; 32]);
    speak(&mut world);
    world.run(LIMIT);
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::TimedOut)
    );
    assert!(world.server().stats().stateless_resets > 1);
}

#[test]
fn a_server_may_be_told_to_say_nothing() {
    let (client, server) = pair();
    let mut world = World::new(plain(3), server);
    let quiet = |world: &mut World| {
        let endpoint = world.server_mut().endpoint_mut();
        endpoint.set_reset_key(ResetKey::from_secret(SECRET));
        endpoint.set_stateless_reset(StatelessReset::Off);
    };
    quiet(&mut world);
    world.connect(&client, Idle);
    world.run_for(4 * RTT);
    world.restart_server(pair().1);
    quiet(&mut world);
    speak(&mut world);
    world.run(LIMIT);
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::TimedOut)
    );
    assert_eq!(world.server().stats().stateless_resets, 0);
}

/// Proves: rfc9000 10.3.1 reset-is-looked-for
#[test]
fn the_ids_of_later_frames_have_tokens_of_the_same_key() {
    let mut world = connected(plain(4), SECRET);
    let now = world.instant();
    assert!(world.client_connection(0).rotate_cids(now));
    world.run_for(4 * RTT);
    restart(&mut world, SECRET);
    speak(&mut world);
    world.run(LIMIT);
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::Reset)
    );
}

/// Proves: rfc9000 10.3 reset-does-not-amplify
/// Proves: rfc9000 10.3 reset-looks-like-1rtt
/// Proves: rfc9000 10.3 small-packets-are-dropped
#[test]
fn a_reset_is_smaller_than_what_it_answers_and_looks_like_any_packet() {
    let (_, server) = pair();
    for len in 1..1300 {
        let mut world = World::new(plain(len), server.clone());
        let mut payload = vec![0x55; len as usize];
        if let Some(worker) = payload.get_mut(1) {
            *worker = 0;
        }
        let source = ([192, 0, 2, 77], 4000).into();
        let datagram = Datagram::new(source, SERVER_ADDRESS, payload);
        world.deliver(datagram);
        world.run_for(ms(1));
        let answers: Vec<_> = world.trace().sent(Side::Client).collect();
        if len <= 21 {
            assert!(answers.is_empty(), "{len}: too small to be answered");
            continue;
        }
        let [answer] = answers[..] else {
            panic!("{} answers to {len} bytes", answers.len());
        };
        let size = answer.size;
        assert!((21..len as usize).contains(&size), "{size} for {len}");
        assert_eq!(answer.packets[0].kind, PacketKind::OneRtt);
        if len <= 43 {
            assert_eq!(size, len as usize - 1);
        }
    }
}

/// Proves: rfc9000 10.3.3 reset-is-smaller
/// Proves: security 7 resets-do-not-loop
#[test]
fn two_ends_that_both_lost_their_state_fall_silent() {
    let mut world = connected(plain(5), SECRET);
    // The client loses its own: it resets what it does not know.
    restart(&mut world, [9; 32]);
    let stranger = vec![0x41; 1200];
    let mut payload = stranger;
    payload[1] = 0;
    let client = world.client_host(0).address;
    world.deliver(Datagram::new(client, SERVER_ADDRESS, payload));
    let before = world.trace().sent(Side::Client).count();
    world.run_for(Duration::from_secs(10));
    let answers = world.trace().sent(Side::Client).count() - before;
    assert!((1..45).contains(&answers), "{answers}");
}

/// Proves: security 7 resets-do-not-loop
#[test]
fn resets_are_limited_in_rate() {
    let (_, server) = pair();
    let mut world = World::new(plain(6), server);
    let source = ([192, 0, 2, 77], 4000).into();
    let burst = |world: &mut World, count: usize| {
        for _ in 0..count {
            let mut payload = vec![0x41; 100];
            payload[1] = 0;
            world.deliver(Datagram::new(source, SERVER_ADDRESS, payload));
        }
        world.run_for(ms(10));
        world.server().stats().stateless_resets
    };
    assert_eq!(burst(&mut world, 1000), 64);
    assert_eq!(burst(&mut world, 1000), 74);
    world.run_for(ms(1000));
    assert_eq!(burst(&mut world, 1000), 138);
}

#[test]
fn a_reset_is_found_under_loss_and_reordering() {
    for seed in 0..20 {
        let network = plain(seed).loss(one_in(10)).reorder(one_in(10), ms(20));
        let mut world = connected(network, SECRET);
        restart(&mut world, SECRET);
        speak(&mut world);
        world.run(LIMIT);
        assert_eq!(
            world.client(0).close_reason(),
            Some(&ConnectionError::Reset)
        );
    }
}

/// Proves: rfc9000 10.3.1 reset-is-looked-for
#[test]
fn a_client_that_is_gone_resets_what_the_server_still_sends() {
    let (from, to) = (Duration::from_secs(2), Duration::from_secs(3));
    let mut world = connected(plain(7).blackout([(from, to)]), SECRET);
    let now = world.instant();
    // The server moves to an id of the client's of which it knows the token.
    assert!(world.accepted_connection(0).rotate_cids(now));
    world.run_for(from.saturating_sub(world.now()));
    world.close_client(0, 0);
    world.run_for(to.saturating_sub(world.now()));
    assert!(world.client(0).connection.is_none(), "drained");
    let id = world.accepted_connection(0).streams().open(Direction::Uni);
    let streams = world.accepted_connection(0).streams();
    let _ = streams.write(id.unwrap(), b"still there?");
    world.run(LIMIT);
    assert_eq!(
        world.accepted(0).close_reason(),
        Some(&ConnectionError::Reset)
    );
}
