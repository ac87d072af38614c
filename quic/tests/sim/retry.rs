//! Clients that prove their address before anything is spent on them (RFC 9000 §8.1).

use std::net::SocketAddr;

use hybriq::{
    Backend, KeyExchange,
    fleet::{AddressValidation, TokenKeys},
    memory::ServerMemory,
    tls::Side,
};
use hybriq_proto::{
    endpoint::Setup,
    wire::{
        limits,
        packet::{Cid, PacketNumber, Version},
    },
};
use hybriq_sim::{
    Answer, Ask, Datagram, DropNth, Echo, InitialFrame, Network, PacketKind, Progress, Record,
    SERVER_ADDRESS, World, build_initial, join, ms, one_in, open_initials,
};

use crate::support::{
    LIMIT, RTT, answered_after, check, client, client_with, pair, plain, remembering, server,
    transport,
};

fn keys() -> TokenKeys {
    TokenKeys::from_secret([3; 32])
}

fn world(network: Network, client: &Setup, server: &Setup, policy: AddressValidation) -> World {
    let mut world = World::new(network, server.clone());
    world.server_mut().validate_addresses(keys(), policy);
    world.connect(client, Ask::one_byte());
    world
}

fn run(network: Network, policy: AddressValidation) -> World {
    let (client, server) = pair();
    let mut world = world(network, &client, &server, policy);
    world.run(LIMIT);
    check(&world);
    world
}

/// The token of the first Initial in a datagram.
fn token_of(record: &Record) -> Option<Vec<u8>> {
    let packet = record.packets.first()?;
    if packet.kind != PacketKind::Initial {
        return None;
    }
    let at = 1 + 4 + 1 + packet.dcid.len() + 1 + packet.scid.len();
    let (len, start) = match record.payload[at] {
        len @ 0..0x40 => (usize::from(len), at + 1),
        high => {
            let low = usize::from(record.payload[at + 1]);
            (usize::from(high & 0x3f) << 8 | low, at + 2)
        }
    };
    Some(record.payload[start..start + len].to_vec())
}

/// Proves: rfc9000 17.2.5.1 retry-changes-the-id
/// Proves: rfc9000 7.3 ids-are-confirmed
#[test]
fn a_retry_costs_one_round_trip_and_the_connection_is_the_same() {
    for backend in Backend::ALL {
        let (client, server) = (
            client(backend, KeyExchange::default()),
            server(backend, KeyExchange::default()),
        );
        let mut world = world(plain(1), &client, &server, AddressValidation::Always);
        world.run(LIMIT);
        check(&world);
        assert_eq!(answered_after(&world), 3 * RTT);
        let stats = world.server().stats();
        assert_eq!(stats.retries_sent, 2, "one for each datagram");
        assert_eq!((stats.addresses_validated, stats.tokens_rejected), (1, 0));
    }
}

/// Proves: rfc9000 17.2.5.3 hello-stays-after-retry
/// Proves: rfc9000 17.2.5.3 numbers-go-on-after-retry
/// Proves: rfc9000 8.1.2 retry-token-is-repeated
/// Proves: security 6 hellos-are-equal-after-retry
#[test]
fn after_a_retry_the_client_says_the_same_with_the_token_in_every_initial() {
    let world = run(plain(1), AddressValidation::Always);
    let sent: Vec<_> = world.trace().sent(Side::Server).collect();
    let initials: Vec<_> = sent
        .iter()
        .filter(|record| token_of(record).is_some())
        .collect();
    let dcid = |index: usize| initials[index].packets[0].dcid;
    let open = |index: usize, dcid: &Cid| {
        open_initials(&initials[index].payload, dcid, Side::Client).remove(0)
    };
    let before = [open(0, &dcid(0)), open(1, &dcid(0))];
    let after = [open(2, &dcid(2)), open(3, &dcid(2))];
    assert_eq!(join(&before), join(&after));
    assert_ne!(dcid(0), dcid(2));
    let numbers: Vec<_> = before.iter().chain(&after).map(|it| it.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let token = token_of(initials[2]).unwrap();
    assert!(!token.is_empty());
    for (index, initial) in initials.iter().enumerate() {
        let expected = if index < 2 { &[][..] } else { &token };
        assert_eq!(token_of(initial).unwrap(), expected, "{index}");
    }
}

#[test]
fn any_of_the_first_datagrams_may_be_lost_around_a_retry() {
    for backend in Backend::ALL {
        let client = client(backend, KeyExchange::default());
        for other in Backend::ALL {
            let server = server(other, KeyExchange::default());
            for place in 0..8 {
                for seed in 0..4 {
                    let network = plain(seed).drop_nth([place]);
                    let mut world = world(network, &client, &server, AddressValidation::Always);
                    world.run(LIMIT);
                    check(&world);
                    assert_eq!(world.server().stats().tokens_rejected, 0);
                }
            }
        }
    }
}

#[test]
fn any_two_of_the_first_datagrams_may_be_lost_around_a_retry() {
    for first in 0..8 {
        for second in first + 1..8 {
            for side in [Side::Client, Side::Server] {
                let network = plain(9).toward(side, DropNth::new([first, second]));
                run(network, AddressValidation::Always);
            }
        }
    }
}

/// Proves: rfc9000 8.1.3 new-token-is-used
#[test]
fn a_client_with_a_token_needs_no_retry() {
    let client = client_with(remembering(transport(), &ServerMemory::new()));
    let (_, server) = pair();
    let mut world = world(plain(1), &client, &server, AddressValidation::Always);
    world.run(LIMIT);
    check(&world);
    for round in 1..4 {
        world.connect_again(0, &client, Ask::one_byte());
        let began = world.now();
        world.run(LIMIT);
        let peer = &world.client_host(0).peers()[round];
        assert_eq!(peer.done_at.unwrap(), began + 2 * RTT);
        let stats = world.server().stats();
        assert_eq!((stats.retries_sent, stats.tokens_replayed), (2, 0));
        assert_eq!(stats.addresses_validated, 1 + round as u64);
    }
}

#[test]
fn an_application_may_ask_for_a_retry() {
    for backend in Backend::ALL {
        for place in 0..8 {
            let (client, server) = (
                client(backend, KeyExchange::default()),
                server(backend, KeyExchange::default()),
            );
            let network = plain(2).drop_nth([place]);
            let mut world = world(network, &client, &server, AddressValidation::Never);
            world.server_mut().on_incoming(|incoming| {
                if incoming.may_retry() {
                    assert!(!incoming.is_validated());
                    return Answer::Retry;
                }
                Answer::Accept(None, Box::new(Echo::new()))
            });
            world.run(LIMIT);
            check(&world);
            // A client whose partial ClientHello was acknowledged would no longer follow it.
            let expected = u64::from(place > 1);
            let stats = world.server().stats();
            assert!(stats.retries_sent >= expected, "{place}");
            assert_eq!(stats.waiting_incoming, 0);
        }
    }
}

/// Half a ClientHello of somebody who does not exist.
fn spoofed(index: u32, hello: &[u8]) -> Datagram {
    let [a, b, c, d] = index.to_be_bytes();
    let source = SocketAddr::from(([198, 18 + a, b, c], 1024 + u16::from(d)));
    let [dcid, scid] = [0, 1].map(|end| Cid::from(u64::from(2 * index + end).to_be_bytes()));
    let frame = InitialFrame::Crypto {
        offset: 0,
        data: hello.to_vec(),
    };
    Datagram::new(
        source,
        SERVER_ADDRESS,
        build_initial(dcid, scid, PacketNumber::ZERO, &[frame]),
    )
}

/// Proves: security 9 handshake-floods-get-a-retry
#[test]
fn a_flood_of_forged_addresses_holds_nothing_and_stops_nobody() {
    const FLOOD: u32 = 20_000;
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    world
        .server_mut()
        .validate_addresses(keys(), AddressValidation::Adaptive);
    // Connected before, and busy all the time.
    world.connect(&client, Ask::streams(1, 2_000_000));
    world.run_for(RTT * 5);
    assert!(world.client(0).confirmed_at.is_some());
    assert_eq!(world.server().stats().retries_sent, 0);

    let hello = vec![1, 0, 8, 0, 3, 3, 0, 0, 0, 0];
    let mut most = 0;
    for index in 0..FLOOD {
        world.deliver(spoofed(index, &hello));
        most = most.max(world.server().stats().partial_hellos);
        if index % 20 == 0 {
            world.run_for(ms(1));
        }
        if index == FLOOD / 2 {
            // A client that is real comes through the flood.
            world.connect(&client, Ask::one_byte());
        }
    }
    let stats = world.server().stats();
    assert_eq!(most, limits::RETRY_AT as u64, "of {FLOOD}");
    assert_eq!(stats.retrying, 1);
    assert!(stats.retries_sent > u64::from(FLOOD) * 8 / 10);
    assert!(stats.datagrams_dropped < u64::from(FLOOD) / 100);
    assert_eq!(world.client(1).progress(), Progress::Done);
    assert_eq!(stats.addresses_validated, 1);

    world.run(LIMIT);
    assert_eq!(world.client(0).progress(), Progress::Done);
    assert_eq!(world.server().stats().partial_hellos, 0);
    // The flood is over, and soon forgotten.
    world.run_for(RTT * 20);
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    let after = world.server().stats();
    assert_eq!((after.retrying, after.addresses_validated), (0, 1));
}

/// A client's packets that were underway when the Retry came start nothing that is not forgotten.
#[test]
fn a_retry_survives_a_bad_network() {
    for seed in 0..60 {
        let network = plain(seed)
            .loss(one_in(6))
            .corrupt(one_in(20))
            .duplicate(one_in(5), ms(3))
            .jitter(ms(30));
        let (client, server) = pair();
        let mut world = world(network, &client, &server, AddressValidation::Always);
        world.run(LIMIT);
        check(&world);
        assert_eq!(world.server().stats().tokens_rejected, 0);
    }
}

/// Proves: rfc9369 4.1 retry-stays-in-the-original-version
#[test]
fn a_retry_is_in_the_version_that_the_client_began_with() {
    for first in Version::ALL {
        for place in 0..8 {
            let (_, server) = pair();
            let client = client_with(transport().first_version(first));
            let network = plain(1).drop_nth([place]);
            let mut world = world(network, &client, &server, AddressValidation::Always);
            world.run(LIMIT);
            check(&world);
            let mut retries = world.trace().sent(Side::Client).peekable();
            assert!(retries.peek().is_some());
            for retry in retries.filter(|record| record.has(PacketKind::Retry)) {
                assert_eq!(retry.payload[1..5], first.number().to_be_bytes());
            }
        }
    }
}
