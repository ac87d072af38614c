//! A whole endpoint: datagrams of clients, attackers and other implementations, in any order, with
//! faults on the path, new keys, restarts and moving clients.
#![expect(clippy::unwrap_used, reason = "a target that cannot go on has failed")]

mod attack;
mod captures;
#[path = "../support/setups.rs"]
mod setups;
mod tap;

use std::panic::AssertUnwindSafe;

use attack::{Attack, Setups, Step};
use hybriq::tls::KeyLog;
use hybriq_sim::{Datagram, Network, SERVER_ADDRESS, World, ms};

fn make_setups() -> AssertUnwindSafe<Setups> {
    AssertUnwindSafe(Setups {
        server: setups::server(["fuzz", "hybriq-interop"]),
        client: setups::client(KeyLog::Off),
    })
}

/// Number of inputs for each one that ends with an honest client, which costs a handshake.
const HONEST: u8 = 8;

/// Several clients and an attacker. The first number chooses the address validation, and decides if
/// an honest client comes at the end.
///
/// Proves: security 11 honest-clients-are-served
#[test]
fn endpoint() {
    let setups = make_setups();
    bolero::check!()
        .with_iterations(400)
        .with_type::<(u8, Vec<Step>)>()
        .for_each(|(choice, steps)| {
            let mut attack = Attack::new(&setups, choice / HONEST);
            attack.run(steps);
            attack.finish(choice % HONEST == 0);
        });
}

/// Datagrams of any bytes from three addresses, to a server without connections. The input begins
/// with flags, like the recorded datagrams in `fuzz/corpus`.
#[test]
fn datagrams_of_any_bytes() {
    let setups = make_setups();
    bolero::check!()
        .with_iterations(10_000)
        .for_each(|input: &[u8]| {
            let Some((flags, datagrams)) = input.split_first() else {
                return;
            };
            let tap = tap::Tap::default();
            let network = Network::new(1).node(tap.clone());
            let mut world = World::new(network, setups.server.clone());
            world.expect_hostile_clients();
            for (number, payload) in captures::split(datagrams).take(20).enumerate() {
                let source = tap::spoofed(number as u8 & flags);
                let datagram = Datagram::new(source, SERVER_ADDRESS, payload.to_vec());
                tap.seen().count_received(&datagram);
                world.deliver(datagram);
                world.run_for(ms((flags >> 4).into()));
            }
            assert!(world.server().stats().connections <= 20);
        });
}

/// Recorded datagrams are what they should be: each first flight holds a ClientHello.
#[test]
fn recorded_clients_are_understood() {
    let setups = make_setups();
    let mut world = World::new(Network::new(1), setups.server.clone());
    world.expect_hostile_clients();
    for datagram in captures::all() {
        let source = tap::spoofed(0);
        world.deliver(Datagram::new(source, SERVER_ADDRESS, datagram.to_vec()));
        world.run_for(ms(0));
    }
    assert_eq!(world.server().peers().len(), 4);
}
