//! RFC 9000 §17: what headers say.

use hybriq::{ConnectionError, error::By, tls::Side};
use hybriq_proto::wire::packet::{Decoded, Header, Space, decode};
use hybriq_sim::{Datagram, Forge, InitialFrame, Network, PacketKind, SERVER_ADDRESS, World, ms};

use crate::{
    duo::{Duo, Verdict},
    invariants::{answers, long},
    stalled::{give, heard_initials_only, heard_nothing, ping, received},
};

const PROTOCOL_VIOLATION: u64 = 0x0a;

/// Proves: rfc9000 17.2 long-ids-are-dropped
#[test]
fn ids_of_more_than_20_bytes_are_for_other_versions() {
    for version in [1, 0x6b33_43cf_u32] {
        for [dcid_len, scid_len] in [[21, 8], [8, 21], [255, 255]] {
            let packet = long(version, &vec![1; dcid_len], &vec![2; scid_len], 1200);
            assert!(
                answers(packet).is_empty(),
                "{dcid_len} and {scid_len} bytes"
            );
        }
    }
}

/// Proves: rfc9000 17.2 reserved-bits-close
#[test]
fn reserved_bits_of_1_rtt_packets() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        let packet = duo
            .connection(from)
            .forge_with_reserved_bits(Space::Data, 40);
        duo.put(from, packet);
        let code = PROTOCOL_VIOLATION;
        assert_eq!(duo.verdict(from.peer()), Some(Verdict { code, frame: 0 }));
    }
}

/// Proves: rfc9000 17.2 reserved-bits-close
#[test]
fn reserved_bits_of_handshake_packets() {
    let closed = |reason: Option<&ConnectionError>| match reason {
        Some(ConnectionError::Transport {
            by: By::Local,
            code,
            ..
        }) => code.0,
        other => panic!("{other:?}"),
    };
    for space in [Space::Initial, Space::Handshake] {
        let mut stalled = heard_initials_only();
        let server = stalled.accepted_connection(0);
        let packet = server.forge_with_reserved_bits(space, 1200);
        give(&mut stalled, Side::Client, packet);
        let reason = stalled.client(0).close_reason();
        assert_eq!(closed(reason), PROTOCOL_VIOLATION, "{space:?}");
    }
    let mut stalled = heard_nothing();
    let client = stalled.client_connection(0);
    let packet = client.forge_with_reserved_bits(Space::Initial, 1200);
    give(&mut stalled, Side::Server, packet);
    let reason = stalled.accepted(0).close_reason();
    assert_eq!(closed(reason), PROTOCOL_VIOLATION);
}

/// The first packet of a client decides before there is a connection.
///
/// Proves: rfc9000 17.2 reserved-bits-close
#[test]
fn reserved_bits_of_a_clients_first_packet() {
    let config = hybriq::TransportConfig::new;
    let gone = Network::new(1).drop_if(|_, _| true);
    let mut elsewhere = World::new(gone, crate::duo::server(config()));
    elsewhere.connect(&crate::duo::client(config()), hybriq_sim::Idle);
    elsewhere.run_for(ms(0));
    let packet = elsewhere
        .client_connection(0)
        .forge_with_reserved_bits(Space::Initial, 1200);
    let first = elsewhere.trace().sent(Side::Server).next().unwrap();
    let dcid = first.packets[0].dcid;
    let mut world = World::new(Network::new(1), crate::duo::server(config()));
    let source = ([198, 51, 100, 1], 4000).into();
    world.deliver(Datagram::new(source, SERVER_ADDRESS, packet));
    world.run_for(ms(50));
    let sent = world.trace().sent(Side::Client);
    let answers: Vec<_> = sent
        .flat_map(|record| hybriq_sim::open_initials(&record.payload, &dcid, Side::Server))
        .flat_map(|initial| initial.frames)
        .collect();
    assert!(
        answers.contains(&InitialFrame::Close(PROTOCOL_VIOLATION)),
        "{answers:?}"
    );
}

/// Proves: rfc9000 17.2.2 server-initials-have-no-token
#[test]
fn tokens_in_initials_of_a_server() {
    let mut stalled = heard_initials_only();
    let mut seen = 0;
    for record in stalled.trace().sent(Side::Client) {
        let initials = record.packets.iter();
        for header in initials.filter(|header| header.kind == PacketKind::Initial) {
            let mut bytes = record.payload[header.range.clone()].to_vec();
            let Ok((Decoded::Protected(packet), _)) = decode(&mut bytes, 8) else {
                panic!("no packet")
            };
            assert!(packet.token().is_empty());
            seen += 1;
        }
    }
    assert!(seen > 0);
    let add_token = |header: &mut Header<'_>| {
        if let Header::Long { token, .. } = header {
            *token = b"token";
        }
    };
    let server = stalled.accepted_connection(0);
    let packet = server.forge(Space::Initial, add_token, 1200, ping);
    let before = received(&mut stalled, Side::Client);
    give(&mut stalled, Side::Client, packet);
    assert_eq!(received(&mut stalled, Side::Client), before);
}
