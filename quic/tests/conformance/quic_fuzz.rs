//! The sequences with which QUIC-Fuzz (arXiv 2503.19402) broke servers of other stacks, rebuilt
//! from what the published fixes changed, over both TLS libraries.
//!
//! | finding | fix | what the sequence does |
//! |---|---|---|
//! | CVE-2024-45396, quicly | h2o/quicly 2a958961 | closes in the first Initial and continues; uses
//! other paths before the handshake is acknowledged, until their validation fails |
//! | CVE-2024-45402, picotls | h2o/picotls 9b88159c | sends key shares from which no secret can be made |
//! | xquic, packets without number | alibaba/xquic e7ddb84a | makes the server answer with packets that have no packet number |
//! | xquic, frames before there is state | alibaba/xquic 309e7aac | sends CRYPTO data far ahead, and PATH_CHALLENGEs whose data has no end mark |
//!
//! In every case another client's exchange continues, and the server does not blame itself: no
//! INTERNAL_ERROR is sent.

use std::{net::SocketAddr, time::Duration};

use hybriq::{Backend, KeyExchange, TransportConfig, tls::Side};
use hybriq_proto::{endpoint::Setup, wire::packet::Space};
use hybriq_sim::{
    Answer, Ask, Datagram, Echo, Forge, Idle, Network, Raw, SERVER_ADDRESS, World, ms,
};

use crate::{
    duo::{client_with, server_of},
    forger::{
        FORGER, client_hello_of, extensions, forge_hello, forged_initial, told, with_extension,
    },
    invariants::{Long, UNKNOWN, long},
    rfc9001_04_tls::crypto,
};

const LIMIT: Duration = Duration::from_secs(300);
const INTERNAL_ERRORS: [u64; 2] = [0x01, 0x0150];
const CRYPTO_BUFFER_EXCEEDED: u64 = 0x0d;
const KEY_SHARE: u16 = 51;
const X25519: u16 = 29;

fn client(backend: Backend, key_exchange: KeyExchange) -> Setup {
    client_with(backend, TransportConfig::new(), |it| {
        it.key_exchange(key_exchange)
    })
}

/// A server in the middle of an exchange with a client of good will, client 0.
fn busy_server(backend: Backend) -> World {
    let server = server_of(backend, TransportConfig::new());
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    let good = client(backend, KeyExchange::default());
    world.connect(&good, Ask::streams(4, 100_000));
    world.run_for(ms(15));
    world
}

/// The client of good will gets everything.
fn assert_unharmed(mut world: World) {
    assert!(
        told(&world).is_none_or(|code| !INTERNAL_ERRORS.contains(&code)),
        "the server calls it its own error"
    );
    world.run(LIMIT);
    assert!(world.client(0).done_at.is_some());
    assert_eq!(world.server().live_connections(), 0);
}

fn send(world: &mut World, from: SocketAddr, payload: Vec<u8>) {
    world.inject(Side::Server, Datagram::new(from, SERVER_ADDRESS, payload));
}

/// CONNECTION_CLOSE with NO_ERROR.
const CLOSE: [u8; 4] = [0x1c, 0, 0, 0];

/// Datagrams for the forger.
fn answers(world: &World) -> usize {
    let sent = world.trace().sent(Side::Client);
    sent.filter(|record| record.client == FORGER).count()
}

/// Proves: security 10 quicly-sequence-is-harmless
#[test]
fn a_close_in_the_first_initial_and_packets_behind_it() {
    for backend in Backend::ALL {
        let (hello, scid) = client_hello_of(&client(backend, KeyExchange::OnlyClassical));
        let hello = crypto(0, &hello);
        let whole = |frames: &[&[u8]]| vec![forged_initial(0, scid, &frames.concat(), 1200)];
        let coalesced = |first: &[u8], second: &[u8]| {
            let first = forged_initial(0, scid, first, 0);
            let second = forged_initial(1, scid, second, 1200 - first.len());
            vec![[first, second].concat()]
        };
        for first in [
            whole(&[&hello, &CLOSE]),
            whole(&[&CLOSE, &hello]),
            whole(&[&CLOSE]),
            whole(&[&hello, &CLOSE, &[1], &CLOSE]),
            coalesced(&hello, &CLOSE),
            coalesced(&CLOSE, &hello),
            vec![
                forged_initial(0, scid, &hello, 1200),
                forged_initial(1, scid, &CLOSE, 1200),
            ],
        ] {
            let mut world = busy_server(backend);
            for datagram in first {
                send(&mut world, FORGER, datagram);
            }
            world.run_for(ms(30));
            let before = answers(&world);
            // PING, ACK of packet 0, the ClientHello again, and another close.
            for (number, frames) in (7..).zip([&[1][..], &[2, 0, 0, 0, 0], &hello, &CLOSE]) {
                send(
                    &mut world,
                    FORGER,
                    forged_initial(number, scid, frames, 1200),
                );
                world.run_for(ms(500));
            }
            let after = answers(&world) - before;
            assert!(after <= 4, "{backend:?}: {after} answers after the close");
            assert_unharmed(world);
        }
    }
}

/// Proves: security 10 quicly-sequence-is-harmless
#[test]
fn other_paths_before_the_handshake_is_acknowledged() {
    for backend in Backend::ALL {
        let mut world = busy_server(backend);
        let hopper = world.connect(&client(backend, KeyExchange::default()), Idle);
        let complete = |world: &World| world.client(1).handshake.is_some();
        assert!(world.run_until(ms(2000), complete));
        // Nobody is at these addresses: nothing that the server asks there is answered.
        for round in 0..4u8 {
            for number in 0..20u8 {
                let frames = [0x1a, 1, 2, 3, 4, 5, 6, round, number, 1];
                let connection = world.client_connection(hopper);
                let packet = connection.forge(
                    Space::Data,
                    |_| (),
                    1200,
                    |out| {
                        assert!(out.write(&Raw(&frames)));
                    },
                );
                send(&mut world, ([172, 16, round, number], 1000).into(), packet);
                world.run_for(ms(1));
            }
            // Longer than three probe timeouts: the validations fail.
            world.run_for(ms(4000));
        }
        assert_eq!(world.client(hopper).close_reason(), None, "{backend:?}");
        let address = world.client_host(hopper).address;
        let connection = world.client_connection(hopper);
        let ping = connection.forge(Space::Data, |_| (), 0, |out| assert!(out.ping()));
        let before = world.client(hopper).stats().packets_received;
        send(&mut world, address, ping);
        world.run_for(ms(1000));
        let received = world.client(hopper).stats().packets_received;
        assert!(received > before, "{backend:?}: the first path still works");
        assert_unharmed(world);
    }
}

/// The entries of a key_share extension: group and share.
fn shares(hello: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = extensions(hello).into_iter();
    let (_, place) = all.find(|(ty, _)| *ty == KEY_SHARE).unwrap();
    let mut rest = &hello[place][6..];
    let mut list = Vec::new();
    while let [g0, g1, l0, l1, behind @ ..] = rest {
        let (share, behind) = behind.split_at(u16::from_be_bytes([*l0, *l1]).into());
        list.push((u16::from_be_bytes([*g0, *g1]), share.to_vec()));
        rest = behind;
    }
    list
}

/// A ClientHello with other key shares.
fn with_shares(hello: &[u8], shares: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let two = |len: usize| u16::try_from(len).unwrap().to_be_bytes();
    let mut entries = Vec::new();
    for (group, share) in shares {
        entries.extend(group.to_be_bytes());
        entries.extend(two(share.len()));
        entries.extend(share);
    }
    let mut extension = KEY_SHARE.to_be_bytes().to_vec();
    extension.extend(two(entries.len() + 2));
    extension.extend(two(entries.len()));
    extension.extend(entries);
    with_extension(hello, KEY_SHARE, &extension)
}

/// Points of small order on Curve25519 (RFC 7748 §6.1): each makes the secret zero.
fn small_order() -> [Vec<u8>; 4] {
    let mut one = vec![0; 32];
    one[0] = 1;
    let mut minus_one = vec![0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    let mut prime = minus_one.clone();
    prime[0] = 0xed;
    [vec![0; 32], one, minus_one, prime]
}

/// Shares from which no secret can be made, in place of an honest one.
fn bad_shares(group: u16, honest: &[u8]) -> Vec<Vec<u8>> {
    let len = honest.len();
    let mut bad = vec![vec![0xff; len], Vec::new(), honest[..len - 1].to_vec()];
    bad.push([honest, &[0]].concat());
    if group == X25519 {
        // Every string of 32 bytes is a public key.
        bad.remove(0);
        bad.extend(small_order());
    } else if len == 1184 + 32 {
        bad.extend(small_order().map(|point| [&honest[..1184], &point].concat()));
    } else {
        bad.push(vec![0; len]);
    }
    bad
}

/// Proves: security 10 picotls-sequence-is-harmless
#[test]
fn key_shares_that_make_no_secret() {
    for backend in Backend::ALL {
        for key_exchange in [KeyExchange::OnlyClassical, KeyExchange::default()] {
            let (hello, scid) = client_hello_of(&client(backend, key_exchange));
            let honest = shares(&hello);
            let worst = honest
                .iter()
                .map(|(group, share)| bad_shares(*group, share));
            let most = worst.clone().map(|bad| bad.len()).max().unwrap();
            for which in 0..most {
                let bad: Vec<_> = honest
                    .iter()
                    .zip(worst.clone())
                    .map(|((group, _), bad)| (*group, bad[which % bad.len()].clone()))
                    .collect();
                let mut world = busy_server(backend);
                forge_hello(&mut world, &with_shares(&hello, &bad), scid);
                world.run_for(ms(50));
                let code = told(&world);
                assert!(
                    code.is_some_and(|code| code >> 8 == 1),
                    "{backend:?}: {code:x?} for share {which} of {:?}",
                    honest.iter().map(|(group, _)| *group).collect::<Vec<_>>()
                );
                assert_eq!(answers(&world), 1);
                assert_unharmed(world);
            }
        }
    }
}

/// Proves: security 10 xquic-sequences-are-harmless
#[test]
fn answers_that_have_no_packet_number() {
    for backend in Backend::ALL {
        let (hello, scid) = client_hello_of(&client(backend, KeyExchange::OnlyClassical));
        let hello = crypto(0, &hello);
        let mut world = busy_server(backend);
        world.server_mut().on_incoming(|incoming| {
            if incoming.may_retry() {
                Answer::Retry
            } else {
                Answer::Ignore
            }
        });
        for (number, lens) in (0..).zip([[0, 0], [8, 0], [8, 20], [20, 20], [21, 21], [255, 255]]) {
            let (dcid, scid_bytes) = (vec![1; lens[0]], vec![2; lens[1]]);
            send(&mut world, FORGER, long(UNKNOWN, &dcid, &scid_bytes, 1200));
            // A Retry for the first, and a second as if there had been none.
            for (port, frames) in [(2000, &hello[..]), (3000, &[1])] {
                let from = SocketAddr::new(FORGER.ip(), port + number as u16);
                send(&mut world, from, forged_initial(number, scid, frames, 1200));
            }
            world.run_for(ms(20));
        }
        let sent = world.trace().sent(Side::Client);
        let versions: Vec<_> = sent
            .filter(|record| record.client.ip() == FORGER.ip())
            .map(|record| Long::read(&record.payload).version)
            .collect();
        assert!(versions.contains(&0), "Version Negotiation: {versions:x?}");
        assert!(versions.contains(&1), "Retry: {versions:x?}");
        let accept = |_: &_| Answer::Accept(None, Box::new(Echo::new()));
        world.server_mut().on_incoming(accept);
        assert_unharmed(world);
    }
}

/// Proves: security 10 xquic-sequences-are-harmless
#[test]
fn crypto_data_far_ahead_and_challenges_without_an_end_mark() {
    for backend in Backend::ALL {
        let (hello, scid) = client_hello_of(&client(backend, KeyExchange::OnlyClassical));
        let (begin, whole) = (crypto(0, &hello[..100]), crypto(0, &hello));
        // At 2^20 and at 2^62 - 2.
        for ahead in [
            &[0x06, 0x80, 0x10, 0, 0, 1, 7][..],
            &[0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 1, 7],
        ] {
            // Before there is anything, a ClientHello, or a connection.
            for before in [&[][..], &begin, &whole] {
                let mut world = busy_server(backend);
                for (number, frames) in (0..).zip([before, ahead]) {
                    if !frames.is_empty() {
                        send(
                            &mut world,
                            FORGER,
                            forged_initial(number, scid, frames, 1200),
                        );
                    }
                }
                world.run_for(ms(50));
                assert_eq!(told(&world), Some(CRYPTO_BUFFER_EXCEEDED), "{backend:?}");
                assert_unharmed(world);
            }
        }
        let mut world = busy_server(backend);
        let challenger = world.connect(&client(backend, KeyExchange::default()), Idle);
        world.run_for(ms(500));
        let address = world.client_host(challenger).address;
        for byte in [0xff, b'%', 0] {
            let challenge = [0x1a, byte, byte, byte, byte, byte, byte, byte, byte];
            for times in [1, 100] {
                let connection = world.client_connection(challenger);
                let packet = connection.forge(
                    Space::Data,
                    |_| (),
                    0,
                    |out| {
                        assert!(out.write(&Raw(&challenge.repeat(times))));
                    },
                );
                send(&mut world, address, packet);
                world.run_for(ms(100));
            }
        }
        assert_eq!(world.client(challenger).close_reason(), None);
        assert_unharmed(world);
    }
}
