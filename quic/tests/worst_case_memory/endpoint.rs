//! Parts of the worst case that count once for each endpoint.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use hybriq::{Identity, ServerConfig, TransportConfig, stats::WorstCaseMemory, tls::PrivateKeyDer};
use hybriq_proto::{
    config::AddressValidation,
    endpoint::{Arrival, Endpoint, Incoming, Local, Routed, SpentTokens, TokenRecord as _},
    remembered::token::{Binding, Kind, Ring, SEED_LEN},
    wire::{
        limits,
        packet::{Cid, PacketNumber, Version},
    },
};
use hybriq_sim::{InitialFrame, SeededRandom, build_initial_with_token};

use super::{allocated, now, reaches, since};

pub(super) fn server() -> (Endpoint, WorstCaseMemory) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let identity = Identity::from_der(vec![made.cert.der().clone()], key);
    let config = ServerConfig::new(identity)
        .alpn(["sim"])
        .accept_early_data()
        .transport(TransportConfig::new());
    let worst = config.worst_case_memory();
    let random = Box::new(SeededRandom::new(1));
    let mut endpoint = Endpoint::new(0, random, Some(config.setup().unwrap()));
    endpoint.set_address_validation(keys(), AddressValidation::Never);
    (endpoint, worst)
}

fn keys() -> Arc<Ring> {
    Arc::new(Ring::new(&[7; 32]))
}

/// Returns a token that proves the address of a client.
fn proof(client: u32) -> Vec<u8> {
    let binding = Binding::new_token(arrival(client).peer.ip(), Version::V1.number());
    let mut seed = [0; SEED_LEN];
    seed[..4].copy_from_slice(&client.to_be_bytes());
    let token = keys().seal(&binding, seed, 0, &Cid::EMPTY);
    token.unwrap().to_vec()
}

pub(super) fn arrival(client: u32) -> Arrival {
    let [_, a, b, c] = client.to_be_bytes();
    Arrival {
        peer: SocketAddr::from(([10, a, b, c], 443)),
        local: Local::default(),
        ecn: None,
    }
}

fn cid(client: u32) -> Cid {
    Cid::from((u64::from(client) << 20).to_be_bytes())
}

fn send(
    endpoint: &mut Endpoint,
    now: Instant,
    (client, token): (u32, &[u8]),
    number: u32,
    pieces: &[(u64, Vec<u8>)],
) -> Option<Box<Incoming>> {
    let frames: Vec<_> = pieces
        .iter()
        .map(|(offset, data)| InitialFrame::Crypto {
            offset: *offset,
            data: data.clone(),
        })
        .collect();
    let mut datagram = build_initial_with_token(
        token,
        cid(client),
        Cid::EMPTY,
        PacketNumber::from_u32(number),
        &frames,
    );
    match endpoint.on_datagram(now, &arrival(client), &mut datagram) {
        Routed::Incoming(it) => Some(it),
        _ => None,
    }
}

/// Returns the first bytes of a ClientHello that is not whole before 16 KiB.
fn beginning(len: usize) -> Vec<u8> {
    let mut bytes = vec![7; len];
    bytes[..4].copy_from_slice(&[1, 0, 0x3f, 0xff]);
    bytes
}

/// Cuts data into CRYPTO frames of one datagram each.
fn cut(data: &[u8], size: usize) -> Vec<Vec<(u64, Vec<u8>)>> {
    let offsets = (0..).step_by(size);
    let pieces = offsets.zip(data.chunks(size));
    pieces
        .map(|(at, piece)| vec![(at, piece.to_vec())])
        .collect()
}

/// Fills the table of partial ClientHellos: many clients send these datagrams each.
fn fill_hellos(endpoint: &mut Endpoint, clients: u32, datagrams: &[Vec<(u64, Vec<u8>)>]) {
    let now = now();
    for client in 0..clients {
        for (number, frames) in datagrams.iter().enumerate() {
            let number = 2 * number as u32;
            assert!(send(endpoint, now, (client, &[]), number, frames).is_none());
        }
    }
    // Clients beyond the table are asked for a proof of their address.
    send_answers(endpoint);
}

/// Sends all answers that wait.
fn send_answers(endpoint: &mut Endpoint) {
    let mut out = vec![0; 2048];
    while endpoint.poll_transmit(now(), &mut out).is_some() {}
}

#[test]
fn partial_hellos_stay_within_their_worst_case_in_any_shape() {
    let behind_a_gap: Vec<_> = (0..4)
        .map(|at| vec![(1020 * at + 1, vec![7; 1020])])
        .collect();
    let in_reverse: Vec<_> = behind_a_gap.iter().rev().cloned().collect();
    let torn = vec![(0..15).map(|at| (2 * at + 1, vec![7])).collect()];
    for datagrams in [cut(&beginning(4096), 512), behind_a_gap, in_reverse, torn] {
        let (mut endpoint, worst) = server();
        let before = allocated();
        fill_hellos(&mut endpoint, 5000, &datagrams);
        let held = since(before);
        assert!(held <= worst.hellos, "{held} of {} bytes", worst.hellos);
    }
}

/// Returns a whole ClientHello of 16 KiB with the lists that take most memory.
fn largest_hello() -> Vec<u8> {
    let vector = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let extension = |kind: u16, body: &[u8]| [&kind.to_be_bytes(), &vector(body)[..]].concat();
    let numbers = |count: u16| -> Vec<u8> { (0..count).flat_map(u16::to_be_bytes).collect() };
    let shares: Vec<u8> = (0..256_u16)
        .flat_map(|group| [&group.to_be_bytes()[..], &[0, 1, 7]].concat())
        .collect();
    let mut extensions = [
        extension(10, &vector(&numbers(256))),
        extension(13, &vector(&numbers(256))),
        extension(51, &vector(&shares)),
    ]
    .concat();
    let fixed = [&[3, 3][..], &[7; 32], &[0], &vector(&numbers(256)), &[1, 0]].concat();
    let left = limits::PARTIAL_HELLO_BYTES - 4 - fixed.len() - 2 - extensions.len() - 4;
    extensions.extend(extension(0xff00, &vec![0; left]));
    let body = [fixed, vector(&extensions)].concat();
    let len = (body.len() as u32).to_be_bytes();
    [&[1], &len[1..], &body].concat()
}

/// Lets as many clients wait as may, and returns them.
fn fill_waiting(endpoint: &mut Endpoint, first: u32) -> Vec<Incoming> {
    let (datagrams, now) = (cut(&largest_hello(), 1100), now());
    let mut waiting = Vec::with_capacity(limits::WAITING_INCOMING);
    for client in (first..).take(limits::WAITING_INCOMING) {
        // Half of the places are for clients with a proof of their address.
        let token = proof(client);
        for (number, frames) in datagrams.iter().enumerate() {
            let whole = send(endpoint, now, (client, &token), number as u32, frames);
            waiting.extend(whole.map(|incoming| *incoming));
        }
    }
    assert_eq!(waiting.len(), limits::WAITING_INCOMING);
    waiting
}

/// Returns a 0-RTT packet of noise.
fn early(client: u32, len: usize) -> Vec<u8> {
    // Type 0-RTT, version 1, both ids, and a length of four bytes.
    let mut packet = vec![0xd3, 0, 0, 0, 1, 8];
    packet.extend_from_slice(cid(client).as_bytes());
    packet.push(0);
    let rest = len - packet.len() - 4;
    packet.extend_from_slice(&(0x8000_0000 | rest as u32).to_be_bytes());
    packet.resize(len, 7);
    packet
}

/// Sends 0-RTT packets: this many for each of this many clients, of this size.
fn fill_early(endpoint: &mut Endpoint, (clients, packets, len): (u32, u32, usize)) {
    let now = now();
    for client in 0..clients {
        for _ in 0..packets {
            endpoint.on_datagram(now, &arrival(client), &mut early(client, len));
        }
    }
}

/// Clients whose few, large 0-RTT packets take most.
const LARGE_PACKETS: (u32, u32, usize) = (300, 1, 15_700);

#[test]
fn early_packets_stay_within_their_worst_case_in_any_shape() {
    for flood in [
        (10_000, 1, 40),
        (5000, 5, 40),
        (300, 60, 40),
        (300, 11, 1200),
    ] {
        let (mut endpoint, worst) = server();
        let before = allocated();
        fill_early(&mut endpoint, flood);
        let held = since(before);
        assert!(
            held <= worst.early_packets,
            "{held} of {} bytes",
            worst.early_packets
        );
    }
}

/// Lets answers wait: to packets of a version that nobody speaks, with the longest ids.
fn fill_answers(endpoint: &mut Endpoint) {
    let now = now();
    for client in 0..2 * limits::WAITING_ANSWERS as u32 {
        let mut datagram = vec![0xc0, 0x1a, 0x1a, 0x1a, 0x1b, 255];
        datagram.extend([7; 255]);
        datagram.push(255);
        datagram.resize(limits::MIN_DATAGRAM, 7);
        endpoint.on_datagram(now, &arrival(client), &mut datagram);
    }
}

/// Returns a record that spent tokens of both kinds, of this period and the last one.
fn fill_tokens() -> SpentTokens {
    let mut tokens = SpentTokens::default();
    for (kind, lifetime) in [
        (Kind::Retry, limits::RETRY_TOKEN_LIFETIME),
        (Kind::New, limits::NEW_TOKEN_LIFETIME),
    ] {
        for period in 20_000..20_002 {
            assert!(tokens.spend(kind, period * lifetime, &[7; SEED_LEN]));
        }
    }
    tokens
}

#[test]
fn a_whole_endpoint_reaches_its_worst_case_and_each_of_its_parts() {
    const FIRST: u32 = 100_000;
    let (mut endpoint, worst) = server();
    let start = allocated();
    let waiting = fill_waiting(&mut endpoint, FIRST);
    reaches("hellos that wait", since(start), worst.waiting);
    let before = allocated();
    fill_answers(&mut endpoint);
    reaches("answers", since(before), worst.answers);
    send_answers(&mut endpoint);
    let before = allocated();
    // More than there are places.
    fill_hellos(&mut endpoint, 9000, &cut(&beginning(4096), 1024));
    reaches("partial hellos", since(before), worst.hellos);
    let before = allocated();
    fill_early(&mut endpoint, LARGE_PACKETS);
    reaches("early packets", since(before), worst.early_packets);
    fill_answers(&mut endpoint);
    let before = allocated();
    let tokens = fill_tokens();
    reaches("spent tokens", since(before), worst.tokens);
    reaches("an endpoint", since(start), worst.per_endpoint(1));
    assert_eq!(
        worst.total(3, 2),
        worst.per_endpoint(3) + 2 * worst.per_connection()
    );
    drop((endpoint, waiting, tokens));
}
