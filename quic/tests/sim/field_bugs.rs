//! Bugs that post-quantum handshakes brought out in other stacks, each a test here.

use std::net::SocketAddr;

use hybriq::{ConnectionError, Group, tls::Side};
use hybriq_proto::wire::{
    error::Code,
    limits::{PARTIAL_HELLO_LIFETIME, PARTIAL_HELLOS},
    packet::{Cid, PacketNumber},
};
use hybriq_sim::{
    Ask, Datagram, DropNth, Header, Idle, InitialFrame, Network, PacketKind, Recut, Rng,
    SERVER_ADDRESS, World, build_initial, join, ms, open_initials,
};

use crate::support::{
    LIMIT, PTO, RTT, answered_after, check, client_with, exchange, pair, plain, server_with,
    transport, world,
};

/// A real ClientHello without the client behind it, and the connection id that it names.
fn client_hello() -> (Vec<u8>, Cid) {
    let (client, server) = pair();
    let mut world = world(Network::new(1), &client, &server, Idle);
    world.run_for(ms(0));
    let sent = world
        .trace()
        .initials(Side::Client, world.client_host(0).address);
    (
        join(sent.iter().map(|(_, initial)| initial)),
        sent[0].1.scid,
    )
}

/// Somebody who builds Initial packets by hand.
struct Forger {
    address: SocketAddr,
    dcid: Cid,
    scid: Cid,
    number: u64,
}

impl Forger {
    fn new(index: u32, scid: Cid) -> Self {
        let [a, b, c, d] = index.to_be_bytes();
        Self {
            address: SocketAddr::from(([172, 16 | a, b, c], 1000 + u16::from(d))),
            dcid: Cid::from([0xf0, 1, 2, 3, a, b, c, d]),
            scid,
            number: 0,
        }
    }

    fn send(&mut self, world: &mut World, frames: &[InitialFrame]) {
        let payload = build_initial(
            self.dcid,
            self.scid,
            PacketNumber::saturating(self.number),
            frames,
        );
        self.number += 1;
        let source = self.address;
        world.inject(Side::Server, Datagram::new(source, SERVER_ADDRESS, payload));
    }

    /// The codes with which the server closed.
    fn close_codes(&self, world: &World) -> Vec<u64> {
        world
            .trace()
            .sent(Side::Client)
            .filter(|record| record.client == self.address)
            .flat_map(|record| open_initials(&record.payload, &self.dcid, Side::Server))
            .flat_map(|initial| initial.frames)
            .filter_map(|frame| match frame {
                InitialFrame::Close(code) => Some(code),
                _ => None,
            })
            .collect()
    }
}

fn empty_world() -> World {
    World::new(Network::new(1), pair().1)
}

fn crypto(hello: &[u8], from: usize, to: usize) -> InitialFrame {
    InitialFrame::Crypto {
        offset: from as u64,
        data: hello[from..to].to_vec(),
    }
}

/// nginx #1616: the ServerHello spans two Initials, one is lost and never sent again.
#[test]
fn a_server_hello_over_two_initials_survives_the_loss_of_either() {
    let (client, server) = pair();
    let lossless = exchange(plain(1), &client, &server);
    let with_hello = lossless
        .trace()
        .initials(Side::Server, lossless.client_host(0).address)
        .iter()
        .filter(|(_, initial)| initial.crypto().next().is_some())
        .count();
    assert_eq!(with_hello, 2, "the ServerHello spans two Initials");
    for lost in [vec![0], vec![1], vec![0, 1]] {
        let network = plain(1).toward(Side::Client, DropNth::new(lost));
        let world = exchange(network, &client, &server);
        assert!(answered_after(&world) <= answered_after(&lossless) + PTO + ms(25));
    }
}

/// A client whose request fills the window may still have to repeat its Finished: the request is
/// neither acknowledged nor timed before that came.
#[test]
fn a_lost_finished_does_not_wait_behind_the_request() {
    let (client, server) = pair();
    for lost in 1..5 {
        let mut seen = 0;
        let network = plain(1).drop_if(move |datagram, toward| {
            let finished =
                |packet: &Header| packet.kind == PacketKind::Handshake && packet.range.len() > 60;
            let carries = toward.is_server() && datagram.packets().iter().any(finished);
            seen += usize::from(carries);
            carries && seen <= lost
        });
        let mut world = world(network, &client, &server, Ask::streams(1, 100_000));
        world.run(LIMIT);
        check(&world);
    }
}

/// ngtcp2 #2244: more CRYPTO data than fits was dropped without a word.
/// Proves: rfc9000 7.5 crypto-overflow-closes
/// Proves: security 5 crypto-overflow-closes
#[test]
fn too_much_crypto_data_is_crypto_buffer_exceeded() {
    let mut world = empty_world();
    let (hello, scid) = client_hello();
    let mut forger = Forger::new(1, scid);
    forger.send(&mut world, &[crypto(&hello, 0, 100)]);
    forger.send(
        &mut world,
        &[InitialFrame::Crypto {
            offset: 70_000,
            data: vec![0; 10],
        }],
    );
    world.run_for(ms(10));
    assert_eq!(forger.close_codes(&world), [Code::CRYPTO_BUFFER_EXCEEDED.0]);
    assert_eq!(
        world.server().stats().partial_hellos,
        0,
        "and it is forgotten"
    );
}

/// The same once the connection exists.
/// Proves: rfc9000 7.5 crypto-overflow-closes
/// Proves: security 5 crypto-overflow-closes
#[test]
fn too_much_crypto_data_closes_a_connection() {
    let mut world = empty_world();
    let (hello, scid) = client_hello();
    let mut forger = Forger::new(1, scid);
    let half = hello.len() / 2;
    forger.send(&mut world, &[crypto(&hello, 0, half)]);
    forger.send(&mut world, &[crypto(&hello, half, hello.len())]);
    world.run_for(ms(10));
    assert_eq!(world.server().peers().len(), 1);
    forger.send(
        &mut world,
        &[InitialFrame::Crypto {
            offset: 700_000,
            data: vec![0; 10],
        }],
    );
    world.run(LIMIT);
    let Some(ConnectionError::Transport { code, .. }) = world.accepted(0).close_reason() else {
        panic!("closed with {:?}", world.accepted(0).close_reason());
    };
    assert_eq!(*code, Code::CRYPTO_BUFFER_EXCEEDED);
}

/// A ClientHello that comes in more pieces than are kept is refused, not held.
///
/// Proves: security 5 hellos-in-pieces-are-bounded
#[test]
fn a_client_hello_in_too_many_pieces_is_refused() {
    let mut world = empty_world();
    let (hello, scid) = client_hello();
    let mut forger = Forger::new(1, scid);
    let pieces: Vec<_> = (1..150).map(|n| crypto(&hello, 4 * n, 4 * n + 1)).collect();
    forger.send(&mut world, &pieces);
    world.run_for(ms(10));
    assert_eq!(forger.close_codes(&world), [Code::CRYPTO_BUFFER_EXCEEDED.0]);
}

/// Runs a handshake whose ClientHello is split differently on its way.
fn recut(cut: impl FnMut(&[u8]) -> Vec<Vec<InitialFrame>> + Send + 'static) -> World {
    let (client, server) = pair();
    exchange(
        plain(1).toward(Side::Server, Recut::new(2, cut)),
        &client,
        &server,
    )
}

/// Chrome: the first packet has the start and the end, the second one the middle.
#[test]
fn a_client_hello_may_come_head_and_tail_first() {
    let world = recut(|hello| {
        let (head, tail) = (70, hello.len() - 400);
        vec![
            vec![
                crypto(hello, tail, hello.len()),
                InitialFrame::Ping,
                crypto(hello, 0, head),
            ],
            vec![crypto(hello, head, tail)],
        ]
    });
    assert_eq!(answered_after(&world), 2 * RTT);
}

/// xquic #428, and Chrome's chaos protection: pieces in any order, PING and PADDING between them.
///
/// Proves: security 5 any-cut-of-a-hello-is-read
#[test]
fn a_client_hello_may_come_in_chaos() {
    for seed in 0..50 {
        let world = recut(move |hello| {
            let mut rng = Rng::new(seed);
            let mut pieces = Vec::new();
            let mut from = 0;
            while from < hello.len() {
                let to = (from + 40 + rng.below(80) as usize).min(hello.len());
                pieces.push(crypto(hello, from, to));
                from = to;
            }
            for place in (1..pieces.len()).rev() {
                pieces.swap(place, rng.below(place as u64 + 1) as usize);
            }
            let half = pieces.len() / 2;
            let chaos = |frames: &[InitialFrame]| {
                let between = [InitialFrame::Ping, InitialFrame::Padding(3)];
                let joined = frames.iter().zip(between.iter().cycle());
                joined
                    .flat_map(|(frame, between)| [frame.clone(), between.clone()])
                    .collect()
            };
            vec![chaos(&pieces[..half]), chaos(&pieces[half..])]
        });
        assert_eq!(answered_after(&world), 2 * RTT, "seed {seed}");
    }
}

/// neqo: the name is cut in two and the halves swapped, the rest follows.
#[test]
fn a_client_hello_may_overlap_itself() {
    let world = recut(|hello| {
        vec![
            vec![crypto(hello, 200, 900), crypto(hello, 0, 300)],
            vec![crypto(hello, 800, hello.len()), crypto(hello, 250, 260)],
        ]
    });
    assert_eq!(answered_after(&world), 2 * RTT);
}

/// The order of the packets, the order of the pieces in them, and slices of a single byte.
///
/// Proves: security 5 any-cut-of-a-hello-is-read
#[test]
fn a_client_hello_may_be_sliced_byte_by_byte() {
    let (hello, scid) = client_hello();
    let frames: Vec<_> = (0..hello.len())
        .map(|at| crypto(&hello, at, at + 1))
        .collect();
    let mut world = empty_world();
    let mut forger = Forger::new(1, scid);
    for packet in frames.chunks(200) {
        assert_eq!(world.server().peers().len(), 0);
        forger.send(&mut world, packet);
        world.run_for(ms(1));
    }
    assert_eq!(
        world.server().peers().len(),
        1,
        "the last byte completes the ClientHello"
    );
}

/// Proves: security 5 any-cut-of-a-hello-is-read
#[test]
fn a_client_hello_may_be_cut_at_every_byte() {
    let (hello, scid) = client_hello();
    for cut in (1..hello.len()).filter(|cut| *cut < 1100 && hello.len() - cut < 1100) {
        for backwards in [false, true] {
            let mut world = empty_world();
            let mut forger = Forger::new(1, scid);
            let mut halves = [crypto(&hello, 0, cut), crypto(&hello, cut, hello.len())];
            if backwards {
                halves.reverse();
            }
            let [first, second] = halves;
            forger.send(&mut world, &[first]);
            world.run_for(ms(0));
            let stats = world.server().stats();
            assert_eq!(
                (stats.partial_hellos, stats.connections),
                (1, 0),
                "cut at {cut}"
            );
            forger.send(&mut world, &[second]);
            world.run_for(ms(0));
            let stats = world.server().stats();
            assert_eq!(
                (stats.partial_hellos, stats.connections),
                (0, 1),
                "cut at {cut}"
            );
        }
    }
}

/// OpenSSL sends nothing again before a later packet is acknowledged, and its probes are PINGs alone, whose distance
/// doubles: after some losses in a row the next comes late.
#[test]
fn a_hello_is_still_known_when_its_client_probes_late() {
    let (hello, scid) = client_hello();
    let mut world = empty_world();
    let mut forger = Forger::new(1, scid);
    forger.send(&mut world, &[crypto(&hello, 0, 500)]);
    world.run_for(ms(14_000));
    let before = world.trace().sent(Side::Client).count();
    forger.send(&mut world, &[InitialFrame::Ping]);
    world.run_for(ms(10));
    assert_eq!(world.trace().sent(Side::Client).count(), before + 1);
    forger.send(&mut world, &[crypto(&hello, 500, hello.len())]);
    world.run_for(ms(0));
    let stats = world.server().stats();
    assert_eq!((stats.partial_hellos, stats.connections), (0, 1));
}

/// Proves: security 5 hellos-in-pieces-are-bounded
#[test]
fn a_hello_that_is_never_whole_is_forgotten() {
    let (hello, scid) = client_hello();
    let mut world = empty_world();
    Forger::new(1, scid).send(&mut world, &[crypto(&hello, 0, 500)]);
    world.run_for(ms(10));
    assert_eq!(world.server().stats().partial_hellos, 1);
    world.run_for(PARTIAL_HELLO_LIFETIME);
    assert_eq!(world.server().stats().partial_hellos, 0);
    assert!(world.server().peers().is_empty());
}

/// Proves: security 5 hellos-in-pieces-are-bounded
#[test]
fn a_flood_of_partial_hellos_is_bounded_and_lets_honest_clients_in() {
    let (hello, scid) = client_hello();
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    for index in 0..PARTIAL_HELLOS as u32 + 500 {
        Forger::new(index, scid).send(&mut world, &[crypto(&hello, 0, 500)]);
    }
    world.run_for(RTT);
    let stats = world.server().stats();
    assert_eq!(
        (stats.partial_hellos, stats.connections),
        (PARTIAL_HELLOS as u64, 0)
    );
    world.connect(&client, Ask::one_byte());
    world.run_until(LIMIT, |world| world.client(0).done_at.is_some());
    // One round trip more than else: a Retry, while the table is full of addresses without proof.
    assert_eq!(world.client(0).done_at, Some(4 * RTT));
}

/// quicly #639: what is answered before validation comes out of the same allowance.
#[test]
fn acknowledging_a_partial_hello_again_and_again_is_bounded() {
    let (hello, scid) = client_hello();
    let mut world = empty_world();
    let mut forger = Forger::new(1, scid);
    for _ in 0..200 {
        forger.send(&mut world, &[crypto(&hello, 0, 500)]);
        world.run_for(ms(2));
    }
    let sent: usize = world
        .trace()
        .sent(Side::Client)
        .map(|record| record.size)
        .sum();
    assert!(sent < 200 * 60, "{sent} bytes of acknowledgements");
    assert_eq!(world.server().stats().partial_hellos, 1);
}

/// s2n-quic #3295: large datagrams on a path that does not carry them must not cost the first
/// flight.
#[test]
fn the_first_flight_keeps_to_1200_bytes_whatever_the_datagram_size() {
    let transport = transport().datagram_size(1452);
    let (client, server) = (client_with(transport.clone()), server_with(transport));
    let world = world_with_one(&client, &server);
    for record in world
        .trace()
        .sent(Side::Server)
        .chain(world.trace().sent(Side::Client))
    {
        let handshake = record.packets[0].kind != hybriq_sim::PacketKind::OneRtt;
        assert!(!handshake || record.size <= 1200, "{record}");
    }
    check(&world);
    assert_eq!(
        world
            .client(0)
            .handshake
            .as_ref()
            .unwrap()
            .key_exchange
            .group,
        Group::X25519MLKEM768
    );
}

fn world_with_one(
    client: &hybriq_proto::endpoint::Setup,
    server: &hybriq_proto::endpoint::Setup,
) -> World {
    exchange(plain(1), client, server)
}
