//! Connection ids of every length and origin, changed and used up (RFC 9000 §5.1).

use hybriq::{
    Direction,
    fleet::{QuicLb, RandomCids},
    transport::SystemRandom,
};
use hybriq_proto::owners::cids::ZeroLength;
use hybriq_sim::{Ask, Idle, Network, World, ms, one_in};

use crate::support::{LIMIT, RTT, check, pair, plain};

const KEY: [u8; 16] = [0x1b; 16];

/// One byte there and back, between ends whose ids were set up.
fn exchange(network: Network, set_up: impl Fn(&mut World)) -> World {
    let (client, server) = pair();
    let mut world = World::new(network, server);
    set_up(&mut world);
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    check(&world);
    world
}

fn server_cids(world: &mut World, generator: impl hybriq::fleet::CidGenerator + 'static) {
    let generator = std::sync::Arc::new(generator);
    world
        .server_mut()
        .endpoint_mut()
        .set_cid_generator(generator);
}

#[test]
fn ids_of_every_length_lead_to_their_connection() {
    for len in 8..=20 {
        let world = exchange(plain(len), |world| {
            server_cids(world, RandomCids::of_len(len as usize));
            world.set_client_cids(RandomCids::of_len(28 - len as usize));
        });
        let mut records = world.trace().sent(hybriq::tls::Side::Client);
        let first = records.next().unwrap();
        assert_eq!(first.packets[0].scid.len(), len as usize);
        assert_eq!(first.packets[0].dcid.len(), 28 - len as usize);
    }
}

#[test]
fn ids_that_a_balancer_can_read_lead_to_their_connection() {
    let configs = [
        (3, 4, None),
        (3, 6, Some(KEY)),
        (8, 8, Some(KEY)),
        (10, 9, Some(KEY)),
    ];
    for (id, nonce, key) in configs {
        let id = vec![0x51; id];
        let network = plain(nonce as u64).loss(one_in(20));
        let world = exchange(network, |world| {
            let config = match key {
                Some(key) => QuicLb::encrypted(2, &id, nonce, key, &mut SystemRandom::new()),
                None => QuicLb::plaintext(2, &id, nonce, &mut SystemRandom::new()),
            };
            server_cids(world, config.unwrap());
        });
        let mut records = world.trace().sent(hybriq::tls::Side::Client);
        let scid = records.next().unwrap().packets[0].scid;
        assert_eq!(scid.as_bytes()[0], 2 << 5 | (scid.len() - 1) as u8);
        assert_eq!(scid.as_bytes()[1..].starts_with(&id), key.is_none());
    }
}

#[test]
fn a_client_may_do_without_ids() {
    for seed in 0..20 {
        let network = plain(seed).loss(one_in(10)).reorder(one_in(10), ms(10));
        let world = exchange(network, |world| world.set_client_cids(ZeroLength));
        let first = world
            .trace()
            .sent(hybriq::tls::Side::Client)
            .next()
            .unwrap();
        assert!(first.packets[0].dcid.is_empty());
    }
}

/// An idle connection, a while after its handshake.
fn connected(network: Network, set_up: impl Fn(&mut World)) -> World {
    let (client, server) = pair();
    let mut world = World::new(network, server);
    set_up(&mut world);
    world.connect(&client, Idle);
    let confirmed = world.run_until(LIMIT, |world| world.client(0).confirmed_at.is_some());
    assert!(confirmed);
    world.run_for(6 * RTT);
    world
}

/// Sends something each way and sees that it arrives.
fn speak(world: &mut World) {
    for turn in 0..2 {
        let from = if turn == 0 {
            world.client_connection(0)
        } else {
            world.accepted_connection(0)
        };
        let before = from.stats().packets_lost;
        let id = from.streams().open(Direction::Uni).unwrap();
        let _ = from.streams().write(id, b"still here");
        let _ = from.streams().finish(id);
        world.run_for(4 * RTT);
        let from = if turn == 0 {
            world.client_connection(0)
        } else {
            world.accepted_connection(0)
        };
        assert_eq!(from.stats().packets_lost, before);
        assert!(!from.is_closed());
    }
}

#[test]
fn a_server_issues_nothing_more_to_whom_it_need_not() {
    let mut world = connected(plain(1), |world| world.set_client_cids(ZeroLength));
    let now = world.instant();
    // The client has nothing to rotate, but moves to another id of the server's.
    assert!(!world.client_connection(0).rotate_cids(now));
    speak(&mut world);
    world.close_client(0, 0);
    world.run(LIMIT);
}

/// Proves: rfc9000 5.1.1 issued-ids-work-until-retired
/// Proves: rfc9000 5.1.2 retire-prior-to-is-obeyed
#[test]
fn both_ends_may_change_their_ids_again_and_again() {
    let mut world = connected(plain(2), |_| {});
    for round in 0..50 {
        let now = world.instant();
        let rotating = if round % 2 == 0 {
            world.client_connection(0)
        } else {
            world.accepted_connection(0)
        };
        assert!(rotating.rotate_cids(now), "round {round}");
        assert!(!rotating.rotate_cids(now), "not twice at once");
        speak(&mut world);
    }
    world.close_client(0, 0);
    world.run(LIMIT);
    assert_eq!(world.server().stats().connections, 0);
}

#[test]
fn both_ends_change_their_ids_at_once_under_loss() {
    for seed in 0..30 {
        let network = plain(seed).loss(one_in(5)).reorder(one_in(5), ms(30));
        let mut world = connected(network, |_| {});
        for _ in 0..10 {
            let now = world.instant();
            world.client_connection(0).rotate_cids(now);
            world.accepted_connection(0).rotate_cids(now);
            world.run_for(3 * RTT);
        }
        let lost = [world.client(0), world.accepted(0)];
        assert!(lost.iter().all(|peer| peer.closed.is_none()));
        world.close_client(0, 0);
        world.run(LIMIT);
    }
}

#[test]
fn without_ids_there_is_one_connection_to_an_address() {
    use hybriq_proto::endpoint::StartError;
    let (client, _) = pair();
    let random = Box::new(SystemRandom::new());
    let mut endpoint = hybriq_proto::endpoint::Endpoint::new(0, random, None);
    endpoint.set_cid_generator(std::sync::Arc::new(ZeroLength));
    let world = World::new(plain(1), pair().1);
    let now = world.instant();
    let address = hybriq_sim::SERVER_ADDRESS;
    let mut connect = |address| endpoint.connect(now, &client, address, "localhost");
    assert!(connect(address).is_ok());
    let again = connect(address);
    assert!(matches!(again, Err(StartError::AddressInUse(at)) if at == address));
    assert!(connect(([192, 0, 2, 9], 4433).into()).is_ok());
}
