//! Every group over every way in which the first datagrams can suffer.

use std::time::Duration;

use hybriq::{Backend, Group, KeyExchange, tls::Side};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{DropNth, Network, World, adversary, ms, one_in};

use crate::support::{
    DELAY, PTO, RTT, answered_after, check, client, exchange, only, plain, server,
};

/// Datagrams whose loss is tried in every combination.
const FIRST: usize = 6;

/// A way to agree on keys.
struct Case {
    name: &'static str,
    client: Setup,
    server: Setup,
    group: Group,
    hello_retry: bool,
}

impl Case {
    fn new(name: &'static str, group: Group, client: Setup, server: Setup) -> Self {
        Self {
            name,
            client,
            server,
            group,
            hello_retry: false,
        }
    }

    fn run(&self, network: Network) -> World {
        let world = exchange(network, &self.client, &self.server);
        let agreed = world.client(0).handshake.clone().unwrap().key_exchange;
        assert_eq!(agreed.group, self.group, "{}", self.name);
        assert_eq!(agreed.hello_retry, self.hello_retry, "{}", self.name);
        world
    }
}

/// The three groups, one share each, with both providers as the server.
fn groups() -> Vec<Case> {
    let mut cases = Vec::new();
    for group in [
        Group::X25519,
        Group::X25519MLKEM768,
        Group::SECP384R1MLKEM1024,
    ] {
        for backend in Backend::ALL {
            let name = group.name().unwrap();
            let client = client(Backend::Rustls, only(group));
            let server = server(backend, KeyExchange::PreferPostQuantum);
            cases.push(Case::new(name, group, client, server));
        }
    }
    cases
}

/// An s2n-tls client, which sends a second, classical share along.
fn s2n_clients() -> Vec<Case> {
    let to = |backend| {
        Case::new(
            "s2n-tls client",
            Group::X25519MLKEM768,
            client(Backend::S2nTls, KeyExchange::PreferPostQuantum),
            server(backend, KeyExchange::PreferPostQuantum),
        )
    };
    Backend::ALL.map(to).into()
}

/// The server asks for another share: because it prefers post-quantum, and because it lacks the
/// group of the first one.
fn hello_retries() -> Vec<Case> {
    let classical_first = [Group::X25519, Group::X25519MLKEM768];
    let unknown_first = [Group::SECP384R1MLKEM1024, Group::X25519MLKEM768];
    let mut cases = Vec::new();
    for backend in Backend::ALL {
        cases.push(Case {
            hello_retry: true,
            ..Case::new(
                "classical share first",
                Group::X25519MLKEM768,
                client(
                    Backend::Rustls,
                    KeyExchange::Exactly(classical_first.into()),
                ),
                server(backend, KeyExchange::PreferPostQuantum),
            )
        });
    }
    cases.push(Case {
        hello_retry: true,
        ..Case::new(
            "share of a group the server lacks",
            Group::X25519MLKEM768,
            client(Backend::Rustls, KeyExchange::Exactly(unknown_first.into())),
            server(Backend::Rustls, only(Group::X25519MLKEM768)),
        )
    });
    cases
}

fn every_case() -> Vec<Case> {
    let mut cases = groups();
    cases.extend(s2n_clients());
    cases.extend(hello_retries());
    cases
}

/// The places in a mask.
fn places(mask: u32) -> impl Iterator<Item = usize> {
    (0..FIRST).filter(move |place| mask >> place & 1 == 1)
}

#[test]
fn every_way_to_agree_works_with_every_provider() {
    for case in every_case() {
        let world = case.run(plain(1));
        let round_trips = if case.hello_retry { 3 } else { 2 };
        assert_eq!(answered_after(&world), RTT * round_trips, "{}", case.name);
    }
}

#[test]
fn any_of_the_first_datagrams_on_the_wire_may_be_lost() {
    for case in every_case() {
        for mask in 0..1 << FIRST {
            case.run(plain(mask.into()).drop_nth(places(mask)));
        }
    }
}

#[test]
fn any_of_the_first_datagrams_of_the_client_may_be_lost() {
    for case in every_case() {
        for mask in 0..1 << FIRST {
            case.run(plain(mask.into()).toward(Side::Server, DropNth::new(places(mask))));
        }
    }
}

#[test]
fn any_of_the_first_datagrams_of_the_server_may_be_lost() {
    for case in every_case() {
        for mask in 0..1 << FIRST {
            case.run(plain(mask.into()).toward(Side::Client, DropNth::new(places(mask))));
        }
    }
}

/// The timeout in force when a datagram of the handshake is lost is at most three initial round
/// trips, and 25 ms of acknowledgement delay more for 1-RTT packets. What follows from it takes at
/// most the round trip that the lost datagram would have been part of.
#[test]
fn one_lost_datagram_costs_at_most_one_pto() {
    let bound = PTO + ms(25) + DELAY / 10;
    let mut worst = Duration::ZERO;
    for case in every_case() {
        let lossless = answered_after(&case.run(plain(0)));
        for side in [Side::Server, Side::Client] {
            for place in 0..2 * FIRST {
                let network = plain(0).toward(side, DropNth::new([place]));
                let world = case.run(network);
                let cost = answered_after(&world).saturating_sub(lossless);
                assert!(
                    cost <= bound,
                    "{}: losing datagram {place} to the {side:?} cost {cost:?}, more than {bound:?}",
                    case.name
                );
                worst = worst.max(cost);
            }
        }
    }
    assert!(
        worst >= PTO,
        "nothing was lost: the worst cost was {worst:?}"
    );
}

#[test]
fn every_single_datagram_may_come_late() {
    for case in every_case() {
        for place in 0..2 * FIRST {
            for wait in [ms(1), ms(10), RTT, 2 * PTO] {
                case.run(plain(0).delay_nth([place], wait));
            }
        }
    }
}

#[test]
fn datagrams_may_come_in_any_order() {
    for case in every_case() {
        for seed in 0..40 {
            case.run(plain(seed).jitter(DELAY));
            case.run(plain(seed).reorder(one_in(3), 2 * DELAY));
        }
    }
}

#[test]
fn every_datagram_may_come_twice() {
    for case in every_case() {
        for wait in [ms(0), ms(1), RTT, 2 * PTO] {
            let world = case.run(plain(0).duplicate(one_in(1), wait));
            assert!(answered_after(&world) <= 3 * RTT, "{}", case.name);
        }
    }
}

#[test]
fn any_datagram_may_be_truncated() {
    for case in every_case() {
        for side in [Side::Server, Side::Client] {
            for place in 0..FIRST {
                for len in [0, 1, 5, 20, 50, 600, 1199] {
                    case.run(plain(0).toward(side, adversary::truncate(place, len)));
                }
            }
        }
    }
}

#[test]
fn any_datagram_may_be_corrupted() {
    for case in every_case() {
        for side in [Side::Server, Side::Client] {
            for place in 0..FIRST {
                for bit in [0, 7, 9, 45, 55, 150, 1000, 4000] {
                    case.run(plain(0).toward(side, adversary::flip_bit(place, bit)));
                }
            }
        }
    }
}

#[test]
fn the_halves_of_a_client_hello_may_be_swapped() {
    for case in every_case() {
        let swapped = || plain(0).toward(Side::Server, adversary::Swap::new(0));
        case.run(swapped());
        for len in [0, 30, 1199] {
            case.run(swapped().toward(Side::Server, adversary::truncate(0, len)));
            case.run(swapped().toward(Side::Server, adversary::truncate(1, len)));
        }
    }
}

#[test]
fn handshakes_fit_every_mtu() {
    for case in every_case() {
        for mtu in [1200, 1280, 1500] {
            let world = case.run(plain(0).mtu(mtu));
            assert!(answered_after(&world) <= 3 * RTT, "{} at {mtu}", case.name);
        }
    }
}

#[test]
fn a_bad_network_delays_and_breaks_nothing() {
    for case in every_case() {
        for seed in 0..40 {
            let network = plain(seed)
                .bandwidth(2_000_000, 20_000)
                .loss(one_in(5))
                .corrupt(one_in(20))
                .duplicate(one_in(10), ms(3))
                .jitter(ms(20));
            let world = case.run(network);
            check(&world);
        }
    }
}
