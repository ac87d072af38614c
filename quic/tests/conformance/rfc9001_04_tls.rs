//! RFC 9001 §4: what TLS says, where it says it, and how long its keys are kept.

use std::sync::Arc;

use hybriq::{events::PacketKind, tls::Side};
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{
    Datagram, DropNth, Forge, Idle, Network, Raw, SERVER_ADDRESS, World, join, ms, one_in,
};

use crate::{
    duo::{Duo, Verdict, client, server, verdict_on},
    wiretap::{Packet, Seen, Wiretap, exchange, tapped},
};

const PROTOCOL_VIOLATION: u64 = 0x0a;
const CRYPTO: u64 = 0x06;

const BOTH: [Side; 2] = [Side::Client, Side::Server];

/// A CRYPTO frame.
pub(crate) fn crypto(offset: u16, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap() | 0x4000;
    let offset = offset | 0x4000;
    let head = [&[0x06][..], &offset.to_be_bytes(), &len.to_be_bytes()].concat();
    [&head, data].concat()
}

/// A NewSessionTicket that may or may not limit early data.
pub(crate) fn ticket(early_data: Option<u32>) -> Vec<u8> {
    let extension = early_data.map(|size| [&[0, 42, 0, 4][..], &size.to_be_bytes()].concat());
    let extensions = extension.unwrap_or_default();
    let mut body = vec![0, 0, 0x1c, 0x20, 1, 2, 3, 4, 1, 9, 0, 3, b'A', b'B', b'C'];
    body.extend([0, u8::try_from(extensions.len()).unwrap()]);
    body.extend(extensions);
    [&[4, 0, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

/// Two ends in the middle of their handshake.
struct HalfWay {
    duo: Duo,
    tap: Arc<Wiretap>,
}

impl HalfWay {
    fn new(until: impl Fn(&World) -> bool) -> Self {
        let (tap, config) = tapped();
        let network = Network::new(1).delay(ms(10));
        let mut world = World::new(network, server(config.clone()));
        world.connect(&client(config), Idle);
        assert!(world.run_until(ms(2000), until));
        let duo = Duo { world };
        Self { duo, tap }
    }

    /// A padded PING.
    fn ping(&mut self, from: Side, space: Space) -> Vec<u8> {
        let ping = Raw(&[1]);
        let connection = self.duo.connection(from);
        connection.forge(space, |_| (), 1200, |out| assert!(out.write(&ping)))
    }

    fn send(&mut self, from: Side, space: Space, frame: &[u8]) {
        let connection = self.duo.connection(from);
        let payload = connection.forge(space, |_| (), 1200, |out| assert!(out.write(&Raw(frame))));
        self.duo.put(from, payload);
    }

    fn opened(&self, side: Side, kind: PacketKind) -> usize {
        let packets = self.tap.packets();
        let mut opened = packets.iter().filter(|it| it.side == side && !it.sent);
        opened.by_ref().filter(|it| it.kind == kind).count()
    }

    /// Puts a packet on the wire that finds no keys.
    fn finds_no_keys(&mut self, from: Side, kind: PacketKind, packet: Vec<u8>) {
        let before = self.opened(from.peer(), kind);
        self.duo.put(from, packet);
        assert_eq!(self.opened(from.peer(), kind), before);
        self.duo.assert_alive();
    }

    /// Returns the end of the CRYPTO stream that this end wrote at a level.
    fn end_of_crypto(&self, writer: Side, kind: PacketKind) -> u64 {
        let packets = self.tap.packets();
        let sent = packets
            .iter()
            .filter(|it| it.side == writer && it.sent && it.kind == kind);
        let ends = sent
            .flat_map(pieces)
            .map(|(from, data)| from + data.len() as u64);
        ends.max().unwrap()
    }
}

fn pieces(packet: &Packet) -> impl Iterator<Item = (u64, &[u8])> {
    packet.frames.iter().filter_map(|frame| match frame {
        Seen::Crypto { offset, data } => Some((*offset, &data[..])),
        _ => None,
    })
}

fn accepted(world: &World) -> bool {
    world.server().peers().len() == 1
}

fn complete(world: &World) -> bool {
    world.client(0).handshake.is_some()
}

/// The type of the first message of each level (RFC 8446 §4).
const FIRST_MESSAGE: [(Side, PacketKind, u8); 4] = [
    (Side::Client, PacketKind::Initial, 1),
    (Side::Server, PacketKind::Initial, 2),
    (Side::Server, PacketKind::Handshake, 8),
    (Side::Client, PacketKind::Handshake, 20),
];

/// Proves: rfc9001 4 crypto-keeps-its-keys
/// Proves: rfc9001 4.9 new-data-uses-the-highest-level
#[test]
fn every_message_leaves_and_leaves_again_under_the_keys_of_its_level() {
    for place in 0..8 {
        let packets = exchange(Network::new(1).drop_nth([place]));
        for packet in packets.iter().filter(|packet| packet.sent) {
            for (_, data) in pieces(packet).filter(|(offset, _)| *offset == 0) {
                let told = (packet.side, packet.kind, data[0]);
                assert!(FIRST_MESSAGE.contains(&told), "{told:?}");
            }
            let early = packet.kind != PacketKind::OneRtt;
            let data = packet
                .frames
                .iter()
                .any(|it| matches!(it, Seen::Stream { .. }));
            assert!(!(early && data), "stream data under {:?} keys", packet.kind);
        }
    }
}

/// Proves: rfc9001 4.1.2 handshake-done-at-once
#[test]
fn handshake_done_leaves_with_the_answer_to_the_finished() {
    let packets = exchange(Network::new(1));
    let mut ours = packets.iter().filter(|it| it.side == Side::Server);
    let finished =
        |it: &&Packet| !it.sent && it.kind == PacketKind::Handshake && pieces(it).count() > 0;
    assert!(ours.by_ref().find(finished).is_some());
    let mut sent = ours.skip_while(|it| !it.sent).take_while(|it| it.sent);
    assert!(sent.any(|it| it.frames.contains(&Seen::HandshakeDone)));
}

/// Proves: rfc9001 4.1.3 unconsumed-data-closes
/// Proves: rfc9001 4.1.3 old-levels-do-not-grow
#[test]
fn more_handshake_data_at_a_level_that_is_over() {
    let cases = [
        (Side::Client, Space::Initial, PacketKind::Initial),
        (Side::Server, Space::Handshake, PacketKind::Handshake),
    ];
    for (from, space, kind) in cases {
        let mut half = HalfWay::new(if from.is_client() { accepted } else { complete });
        let end = half.end_of_crypto(from, kind);
        half.send(from, space, &crypto(u16::try_from(end).unwrap(), &[4, 0]));
        let code = half.duo.verdict(from.peer()).map(|verdict| verdict.code);
        assert_eq!(code, Some(PROTOCOL_VIOLATION), "{kind:?}");
    }
}

/// Proves: rfc9001 4.1.3 old-levels-do-not-grow
#[test]
fn more_handshake_data_for_a_client_whose_tls_is_done() {
    let mut half = HalfWay::new(complete);
    let end = half.end_of_crypto(Side::Server, PacketKind::Handshake);
    let whole = crypto(0, &ticket(None));
    let server = half.duo.connection(Side::Server);
    let last = server.forge(
        Space::Data,
        |_| (),
        0,
        |out| assert!(out.write(&Raw(&whole))),
    );
    let address = half.duo.world.client_host(0).address;
    let datagram = Datagram::new(SERVER_ADDRESS, address, last);
    half.duo.world.inject(Side::Client, datagram);
    let frame = crypto(u16::try_from(end).unwrap(), &[4, 0]);
    half.send(Side::Server, Space::Handshake, &frame);
    let code = half.duo.verdict(Side::Client).map(|verdict| verdict.code);
    assert_eq!(code, Some(PROTOCOL_VIOLATION));
}

#[test]
fn a_crypto_frame_without_data_after_the_handshake() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        duo.send_raw(from, &crypto(0, &[]));
        duo.assert_alive();
    }
}

/// Proves: rfc9001 4.4 no-post-handshake-authentication
#[test]
fn a_certificate_request_after_the_handshake() {
    let request = [13, 0, 0, 3, 0, 0, 0];
    // TLS is still there for a ticket, and it is gone.
    for before in [&[][..], &ticket(None)] {
        let frame = crypto(0, &[before, &request].concat());
        let code = verdict_on(Side::Server, &frame).map(|verdict| verdict.code);
        assert_eq!(code, Some(PROTOCOL_VIOLATION));
        let mut duo = Duo::new();
        duo.send_raw(Side::Server, &crypto(0, before));
        duo.assert_alive();
        let offset = u16::try_from(before.len()).unwrap();
        duo.send_raw(Side::Server, &crypto(offset, &request));
        let code = duo.verdict(Side::Client).map(|verdict| verdict.code);
        assert_eq!(code, Some(PROTOCOL_VIOLATION));
    }
}

/// Proves: rfc9001 4.6.1 early-data-size-is-fixed
#[test]
fn a_ticket_with_another_early_data_size() {
    for size in [0, 1, 0x4000, u32::MAX - 1] {
        for before in [&[][..], &ticket(None)] {
            let frame = crypto(0, &[before, &ticket(Some(size))].concat());
            let expected = Verdict {
                code: PROTOCOL_VIOLATION,
                frame: CRYPTO,
            };
            assert_eq!(verdict_on(Side::Server, &frame), Some(expected));
        }
    }
    for size in [None, Some(u32::MAX)] {
        let mut duo = Duo::new();
        duo.send_raw(Side::Server, &crypto(0, &ticket(size).repeat(3)));
        duo.assert_alive();
    }
}

/// Proves: rfc9001 4.9.1 client-discards-initial-keys
#[test]
fn an_initial_for_a_client_that_sent_a_handshake_packet() {
    let mut half = HalfWay::new(|world| {
        let mut sent = world.trace().sent(Side::Server);
        sent.any(|record| record.has(hybriq_sim::PacketKind::Handshake))
    });
    let packet = half.ping(Side::Server, Space::Initial);
    half.finds_no_keys(Side::Server, PacketKind::Initial, packet);
}

/// Proves: rfc9001 4.9.1 server-discards-initial-keys
#[test]
fn an_initial_for_a_server_that_opened_a_handshake_packet() {
    let mut half = HalfWay::new(accepted);
    let packet = half.ping(Side::Client, Space::Initial);
    let tap = half.tap.clone();
    let opened = |packet: &Packet| {
        packet.side == Side::Server && !packet.sent && packet.kind == PacketKind::Handshake
    };
    let done = half
        .duo
        .world
        .run_until(ms(2000), |_| tap.packets().iter().any(opened));
    assert!(done);
    half.finds_no_keys(Side::Client, PacketKind::Initial, packet);
}

/// Proves: rfc9001 4.9.2 handshake-keys-are-discarded
#[test]
fn a_handshake_packet_after_the_handshake_is_confirmed() {
    for from in BOTH {
        let mut half = HalfWay::new(complete);
        let packet = half.ping(from, Space::Handshake);
        half.duo.world.run_for(ms(1000));
        half.finds_no_keys(from, PacketKind::Handshake, packet);
    }
}

/// Proves: rfc9001 5.7 1rtt-waits-for-the-handshake
#[test]
fn no_server_opens_a_1rtt_packet_before_the_finished() {
    for place in 0..6 {
        let network = Network::new(1).toward(Side::Server, DropNth::new([place]));
        let network = network.reorder(one_in(3), ms(5));
        let packets = exchange(network);
        let ours = |packet: &&Packet| packet.side == Side::Server && !packet.sent;
        let first = |kind| {
            packets
                .iter()
                .filter(ours)
                .position(|it| it.kind == kind)
                .unwrap()
        };
        assert!(first(PacketKind::Handshake) < first(PacketKind::OneRtt));
    }
}

/// The ClientHello of an exchange.
pub(crate) fn client_hello() -> Vec<u8> {
    let world = HalfWay::new(accepted).duo.world;
    let address = world.client_host(0).address;
    let initials = world.trace().initials(Side::Client, address);
    join(initials.iter().map(|(_, initial)| initial))
}
