//! Ways to try one number on the wire.

use std::net::SocketAddrV4;

use hybriq::{
    Backend, ConnectionError, Direction, KeyExchange, TransportConfig, error::By,
    events::PacketKind, tls::Side, transport::DatagramConfig,
};
use hybriq_proto::wire::packet::{
    Cid, Header, Kind, PacketBuilder, PacketNumber, Retry, Space, Version, initial_direction,
};
use hybriq_sim::{Datagram, Idle, Network, Raw, SERVER_ADDRESS, World, ms, seal_packet};

use super::Outcome::{self, Closes, Fine, Ignored, Resets};
use crate::{
    duo::{Duo, client, client_with, server},
    forger::{FORGER, client_hello_of, forged_initial, told},
    invariants, parameters,
    rfc9001_04_tls::crypto,
    wiretap::tapped,
};

const BOTH: [Side; 2] = [Side::Client, Side::Server];

/// An integer in its shortest form (RFC 9000 §16).
pub(super) fn varint(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    match value {
        0..=0x3f => bytes[7..].to_vec(),
        0x40..=0x3fff => (value | 0x4000).to_be_bytes()[6..].to_vec(),
        0x4000..=0x3fff_ffff => (value | 0x8000_0000).to_be_bytes()[4..].to_vec(),
        _ => parameters::integer(value).to_vec(),
    }
}

/// A frame: its type and integers, and raw bytes behind them.
pub(super) fn frame(ty: u8, fields: &[u64], rest: &[u8]) -> Vec<u8> {
    let fields = fields.iter().flat_map(|field| varint(*field));
    [ty].into_iter()
        .chain(fields)
        .chain(rest.iter().copied())
        .collect()
}

/// One byte of stream data that ends at `end`.
pub(super) fn byte(stream: u64, end: u64) -> Vec<u8> {
    frame(0x0e, &[stream, end - 1, 1], &[7])
}

/// Returns the outcome for an end that received something.
fn outcome(duo: &Duo, receiver: Side) -> Outcome {
    let (client, server) = (duo.world.client(0), duo.world.accepted(0));
    if [client, server]
        .iter()
        .any(|it| it.close_reason() == Some(&ConnectionError::Reset))
    {
        return Resets;
    }
    duo.verdict(receiver).map_or_else(
        || {
            duo.assert_alive();
            Fine
        },
        |verdict| Closes(verdict.code),
    )
}

/// The one outcome of a thing that is tried on both sides.
fn same(outcomes: [Outcome; 2]) -> Outcome {
    assert_eq!(outcomes[0], outcomes[1], "the sides differ");
    outcomes[0]
}

/// Frames in a 1-RTT packet of one side.
pub(super) fn frames_from(from: Side, frames: &[u8]) -> Outcome {
    let mut duo = Duo::new();
    duo.send_raw(from, frames);
    outcome(&duo, from.peer())
}

/// Frames in a 1-RTT packet of either side.
pub(super) fn frames(frames: &[u8]) -> Outcome {
    same(BOTH.map(|from| frames_from(from, frames)))
}

/// A transport parameter of one side with any bytes.
pub(super) fn value_from(liar: Side, id: u64, value: Vec<u8>) -> Outcome {
    let duo = parameters::duo(liar, move |it| it.set(id, &value));
    outcome(&duo, liar.peer())
}

/// An integer as a transport parameter of either side.
pub(super) fn parameter(id: u64, value: u64) -> Outcome {
    same(BOTH.map(|liar| value_from(liar, id, varint(value))))
}

/// A server's preferred address, where nobody is, with an id and a token of these lengths.
pub(super) fn preferred_address(cid_len: u64, token_len: u64) -> Outcome {
    let address = SocketAddrV4::new([203, 0, 113, 1].into(), 4433);
    let mut value = address.ip().octets().to_vec();
    value.extend(address.port().to_be_bytes());
    // No IPv6 address.
    value.extend([0; 18]);
    value.push(cid_len as u8);
    value.extend(vec![7; (cid_len + token_len) as usize]);
    let config = TransportConfig::new().preferred_address(Some(address), None);
    let server = parameters::changing(server(config), move |it| it.set(0x0d, &value));
    let duo = Duo::between(&client(TransportConfig::new()), server);
    outcome(&duo, Side::Client)
}

/// NEW_CONNECTION_ID with an id of this length, which replaces all others.
pub(super) fn new_cid_of(len: u64) -> Outcome {
    let rest = vec![9; len as usize + 16];
    frames(&frame(0x18, &[9, 9, len], &rest))
}

/// RETIRE_CONNECTION_ID of either side for this number.
pub(super) fn retired(sequence: u64) -> Outcome {
    same(BOTH.map(|from| {
        let mut duo = Duo::new();
        duo.send_raw(from, &frame(0x19, &[sequence], &[]));
        // A new id replaces the retired one, and is one too many for who did not retire it.
        let sender = match from {
            Side::Client => duo.world.client(0),
            Side::Server => duo.world.accepted(0),
        };
        match sender.close_reason() {
            Some(&ConnectionError::Transport {
                by: By::Peer, code, ..
            }) => Closes(code.0),
            _ => Fine,
        }
    }))
}

/// Ids of a client, including its first, of which the server allows this many to be active.
pub(super) fn active_cids(count: u64) -> Outcome {
    // The client is told that it may issue two, and does.
    let mut duo = parameters::duo(Side::Server, |it| it.set(0x0e, &[2]));
    for sequence in 2..count {
        let rest = [sequence as u8; 8 + 16];
        duo.send_raw(Side::Client, &frame(0x18, &[sequence, 0, 8], &rest));
    }
    outcome(&duo, Side::Server)
}

/// Answers to a datagram of somebody whom the server does not know.
pub(super) fn stranger(payload: Vec<u8>) -> Outcome {
    if invariants::answers(payload).is_empty() {
        Ignored
    } else {
        Fine
    }
}

/// A client's first Initial of a version, with ids of these lengths.
pub(super) fn first_initial(version: Version, dcid_len: u64, scid_len: u64) -> Outcome {
    let id = |len: u64| Cid::new(&[1; 255][..len as usize]);
    let (Some(dcid), Some(scid)) = (id(dcid_len), id(scid_len)) else {
        let [dcid, scid] = [dcid_len, scid_len].map(|len| vec![1; len as usize]);
        return stranger(invariants::long(version.number(), &dcid, &scid, 1200));
    };
    stranger(begun_hello(version, dcid, scid))
}

/// An Initial packet with the begin of a ClientHello.
fn begun_hello(version: Version, dcid: Cid, scid: Cid) -> Vec<u8> {
    let header = Header::Long {
        kind: Kind::Initial,
        version,
        dcid,
        scid,
        token: &[],
    };
    let keys = initial_direction(version, &dcid, Side::Client);
    seal_packet(&header, PacketNumber::ZERO, &keys, |out| {
        assert!(out.write(&Raw(&crypto(0, &[1, 0, 5, 0]))));
        1200
    })
}

/// Place of the Length field in an Initial packet with ids of eight bytes and no token.
const LENGTH: std::ops::Range<usize> = 24..26;

/// The Length of an Initial packet that fills a datagram.
pub(super) const WHOLE_LENGTH: u64 = 1200 - LENGTH.end as u64;

/// A client's first Initial whose Length field has this value.
pub(super) fn length_field(length: u64) -> Outcome {
    let mut packet = begun_hello(Version::V1, Cid::from([1; 8]), Cid::from([2; 8]));
    assert_eq!(packet[LENGTH], varint(WHOLE_LENGTH));
    packet[LENGTH].copy_from_slice(&varint(length));
    stranger(packet)
}

/// A whole ClientHello in a datagram of this size.
fn hello_in(size: usize) -> Vec<u8> {
    let classical = client_with(Backend::Rustls, TransportConfig::new(), |it| {
        it.key_exchange(KeyExchange::OnlyClassical)
    });
    let (hello, scid) = client_hello_of(&classical);
    forged_initial(0, scid, &crypto(0, &hello), size)
}

/// The first datagram of a client has this size.
pub(super) fn first_datagram(size: u64) -> Outcome {
    stranger(hello_in(size as usize))
}

/// A client sends one datagram of this size and nothing else: the server sends three times as
/// much at most.
pub(super) fn amplification(size: u64) -> Outcome {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    let hello = hello_in(size as usize);
    world.inject(Side::Server, Datagram::new(FORGER, SERVER_ADDRESS, hello));
    world.run_for(ms(60_000));
    let sent = world.trace().sent(Side::Client);
    let spent: u64 = sent.map(|record| record.size as u64).sum();
    assert!(spent <= 3 * size, "{spent} bytes for {size}");
    if spent == 0 { Ignored } else { Fine }
}

/// The last byte of a client's CRYPTO data in Initial packets, before the others, ends here.
pub(super) fn initial_crypto(end: u64) -> Outcome {
    let mut world = World::new(Network::new(1), server(TransportConfig::new()));
    let frame = frame(0x06, &[end - 1, 1], &[7]);
    let payload = forged_initial(0, Cid::from([5; 8]), &frame, 1200);
    world.inject(Side::Server, Datagram::new(FORGER, SERVER_ADDRESS, payload));
    world.run_for(ms(50));
    told(&world).map_or(Fine, Closes)
}

/// A datagram of this size that ends with the server's stateless reset token.
pub(super) fn reset(size: u64) -> Outcome {
    const TOKEN: [u8; 16] = [0x5a; 16];
    let mut duo = parameters::duo(Side::Server, |it| it.set(0x02, &TOKEN));
    let mut payload = vec![0x41; size as usize - TOKEN.len()];
    payload.extend(TOKEN);
    duo.put(Side::Server, payload);
    match outcome(&duo, Side::Client) {
        Fine => Ignored,
        other => other,
    }
}

/// The largest number of the server's 1-RTT packets.
pub(super) fn largest_sent() -> u64 {
    let (tap, config) = tapped();
    let _ = Duo::with(TransportConfig::new(), config);
    let sent = tap.packets().into_iter();
    let numbers = sent
        .filter(|it| it.sent && it.kind == PacketKind::OneRtt)
        .map(|it| it.number.get());
    numbers.max().unwrap()
}

/// A peer that takes datagrams of this size: no larger one leaves, probes of the path included.
pub(super) fn datagrams_sent(size: u64) -> Outcome {
    same(BOTH.map(|liar| {
        let mut duo = parameters::duo(liar, move |it| it.set(0x03, &varint(size)));
        let streams = duo.connection(liar.peer()).streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.write(id, &vec![7; 100_000]).unwrap();
        duo.world.run_for(ms(5000));
        let sent = duo.world.trace().sent(liar);
        let largest = sent.map(|record| record.size as u64).max();
        assert_eq!(largest, Some(size), "what is allowed is used");
        outcome(&duo, liar.peer())
    }))
}

/// A peer that allows this many streams: exactly as many are opened.
pub(super) fn streams_opened(count: u64) -> Outcome {
    same(BOTH.map(|liar| {
        let mut duo = parameters::duo(liar, move |it| it.set(0x09, &varint(count)));
        let streams = duo.connection(liar.peer()).streams();
        let opened = std::iter::from_fn(|| streams.open(Direction::Uni)).count();
        assert_eq!(opened as u64, count);
        outcome(&duo, liar.peer())
    }))
}

/// A peer that allows this many bytes of data with this parameter: exactly as many are sent.
pub(super) fn data_sent(id: u64, bytes: u64) -> Outcome {
    same(BOTH.map(|liar| {
        let mut duo = parameters::duo(liar, move |it| it.set(id, &varint(bytes)));
        let streams = duo.connection(liar.peer()).streams();
        let stream = streams.open(Direction::Uni).unwrap();
        let _ = streams.write(stream, &vec![7; bytes as usize + 100]);
        duo.world.run_for(ms(2000));
        let totals = duo.connection(liar).streams().totals();
        assert_eq!(totals.bytes_received, bytes);
        outcome(&duo, liar.peer())
    }))
}

/// The packet number that a receiver expects in [`far_number`], far from zero so that a number can
/// be below.
const EXPECTED: u64 = (1 << 32) + (1 << 31);

/// A 1-RTT packet whose number is written in `bytes` bytes and is so far above the expected one.
pub(super) fn far_number(bytes: u32, distance: u64) -> Outcome {
    let mut duo = Duo::new();
    let before = duo.connection(Side::Server).stats().packets_received;
    let address = duo.world.client_host(0).address;
    // The number cannot grow by more than half of what four bytes tell apart.
    let steps = [
        (4, (1 << 32) - 1),
        (4, EXPECTED - 1),
        (bytes, EXPECTED + distance),
    ];
    for (bytes, number) in steps {
        let payload = numbered(&mut duo, bytes, number);
        let datagram = Datagram::new(address, SERVER_ADDRESS, payload);
        duo.world.inject(Side::Server, datagram);
        // Before the client hears what it never sent.
        duo.world.run_for(ms(3));
    }
    duo.world.run_for(ms(7));
    let received = duo.connection(Side::Server).stats().packets_received - before;
    assert!((2..=3).contains(&received), "{received} packets");
    if received == 3 { Fine } else { Ignored }
}

/// A client's PING in a packet with this number in this many bytes.
fn numbered(duo: &mut Duo, bytes: u32, number: u64) -> Vec<u8> {
    let (_, header, keys) = duo
        .connection(Side::Client)
        .forge_parts(Space::Data)
        .unwrap();
    let acked = number - (1 << (8 * bytes - 1)) + 1;
    let mut buffer = vec![0; 100];
    let (number, acked) = (
        PacketNumber::saturating(number),
        PacketNumber::saturating(acked),
    );
    let mut packet = PacketBuilder::begin(&mut buffer, &header, number, Some(acked)).unwrap();
    let mut frames = packet.frames();
    assert!(frames.ping());
    let len = frames.len();
    let size = packet.finish_padded(len, 60, keys);
    assert_eq!(size, 60);
    buffer.truncate(size);
    buffer
}

/// CONNECTION_CLOSE with a reason of this length, and five bytes behind it.
pub(super) fn close_reason(len: u64) -> Outcome {
    same(BOTH.map(|from| {
        let mut duo = Duo::new();
        duo.send_raw(from, &frame(0x1c, &[0, 0, len], &[0; 5]));
        let receiver = match from {
            Side::Client => duo.world.accepted(0),
            Side::Server => duo.world.client(0),
        };
        match receiver.close_reason() {
            Some(ConnectionError::Transport { by: By::Peer, .. }) => Fine,
            Some(ConnectionError::Transport {
                by: By::Local,
                code,
                ..
            }) => Closes(code.0),
            other => panic!("{other:?}"),
        }
    }))
}

/// version_information of this many bytes: version 1 chosen, version 1 available, then zeros.
pub(super) fn version_information(len: u64) -> Outcome {
    let mut value = vec![0, 0, 0, 1, 0, 0, 0, 1];
    value.resize(len as usize, 0);
    value_from(Side::Client, 0x11, value)
}

/// A Retry with a token of this length, as the first answer to a client.
pub(super) fn retry_token(len: u64) -> Outcome {
    let network = Network::new(1).drop_if(|_, toward| toward.is_server());
    let mut world = World::new(network, server(TransportConfig::new()));
    world.connect(&client(TransportConfig::new()), Idle);
    world.run_for(ms(0));
    let first = world.trace().sent(Side::Server).next().unwrap();
    let said = invariants::Long::read(&first.payload);
    let id = |bytes: &[u8]| Cid::new(bytes).unwrap();
    let (chosen, token) = (Cid::from([0x77; 8]), vec![7; len as usize]);
    let version = Version::from_number(said.version).unwrap();
    let retry = Retry::new(version, id(&said.scid), chosen, &token);
    let mut packet = vec![0; 200];
    let size = retry.encode(&id(&said.dcid), 0, &mut packet).unwrap();
    packet.truncate(size);
    let address = world.client_host(0).address;
    world.inject(Side::Client, Datagram::new(SERVER_ADDRESS, address, packet));
    world.run_for(ms(10));
    let mut sent = world.trace().sent(Side::Server);
    if sent.any(|record| record.packets.iter().any(|it| it.dcid == chosen)) {
        Fine
    } else {
        Ignored
    }
}

/// A DATAGRAM frame of this size, its length included, for a peer that takes 100 bytes.
pub(super) fn datagram_to_send(size: u64) -> Outcome {
    let mut duo = parameters::duo(Side::Client, |it| it.set(0x20, &varint(100)));
    // Its type and two bytes of length.
    let data = vec![7; size as usize - 3].into();
    let sent = duo.connection(Side::Server).send_datagram_within(&data);
    duo.world.run_for(ms(200));
    duo.assert_alive();
    let received = duo.connection(Side::Client).datagrams().recv();
    assert_eq!(received.is_some(), sent.is_ok());
    if sent.is_ok() { Fine } else { Ignored }
}

/// A DATAGRAM frame for an end that keeps this number of bytes of datagrams.
pub(super) fn datagram_to_keep(bytes: u64) -> Outcome {
    let small = DatagramConfig::new().receive_buffer(bytes as usize);
    let config = TransportConfig::new().datagrams(small);
    let mut duo = Duo::with(config.clone(), config);
    duo.send_raw(Side::Client, &[0x30, 7]);
    outcome(&duo, Side::Server)
}

/// A stream of the client with this number, counted from one.
pub(super) fn stream(number: u64, kind: u64) -> Outcome {
    frames_from(
        Side::Client,
        &frame(0x0a, &[4 * (number - 1) + kind, 0], &[]),
    )
}

/// A 1-RTT packet that contains only this many bytes of PADDING.
pub(super) fn payload_of(count: u64) -> Outcome {
    let mut duo = Duo::new();
    let connection = duo.connection(Side::Client);
    let (_, header, keys) = connection.forge_parts(Space::Data).unwrap();
    let padding = vec![0; count as usize];
    let packet = seal_packet(&header, PacketNumber::saturating(1 << 24), keys, |out| {
        assert!(out.write(&Raw(&padding)));
        0
    });
    duo.put(Side::Client, packet);
    outcome(&duo, Side::Server)
}
