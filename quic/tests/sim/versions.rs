//! Which version is spoken, whatever the network does to the choice (RFC 9368, RFC 9369 §4).

use hybriq::{
    TransportConfig, Version,
    sim::{PacketKind, World},
    tls::Side,
};

use crate::support::{
    RTT, answered_after, client_with, exchange, pair, plain, server_with, transport,
};

/// The versions of the long headers that an end sent, by packet type, without repetitions.
fn versions_sent(world: &World, writer: Side) -> Vec<(PacketKind, Option<Version>)> {
    let sent = world.trace().sent(writer.peer());
    let packets = sent.flat_map(|record| &record.packets);
    let mut versions: Vec<_> = packets
        .filter(|packet| packet.kind != PacketKind::OneRtt)
        .map(|packet| (packet.kind, Version::from_number(packet.version)))
        .collect();
    versions.dedup();
    versions
}

fn agreed(world: &World) -> [Version; 2] {
    [world.client(0), world.accepted(0)]
        .map(|end| end.handshake.as_ref().expect("complete").version)
}

fn speaking(versions: &[Version]) -> TransportConfig {
    transport().versions(versions.iter().copied())
}

/// Proves: rfc9369 4 compatible-negotiation-takes-no-round-trip
/// Proves: rfc9369 4.1 handshake-packets-in-the-negotiated-version
#[test]
fn both_ends_move_to_version_2_without_a_further_round_trip() {
    let (client, server) = pair();
    let world = exchange(plain(1), &client, &server);
    assert_eq!(agreed(&world), [Version::V2; 2]);
    assert_eq!(answered_after(&world), 2 * RTT);
    let server = versions_sent(&world, Side::Server);
    assert!(
        server
            .iter()
            .all(|(_, version)| *version == Some(Version::V2)),
        "{server:?}"
    );
    let client = versions_sent(&world, Side::Client);
    let (v1, v2) = (Some(Version::V1), Some(Version::V2));
    assert_eq!(client[0], (PacketKind::Initial, v1));
    assert!(
        client[1..].iter().all(|(_, version)| *version == v2),
        "{client:?}"
    );
}

#[test]
fn an_end_that_speaks_version_1_only_is_spoken_to_in_version_1() {
    let both = speaking(&[Version::V2, Version::V1]);
    let one = speaking(&[Version::V1]);
    for (client, server) in [(one.clone(), both.clone()), (both, one)] {
        let world = exchange(plain(1), &client_with(client), &server_with(server));
        assert_eq!(agreed(&world), [Version::V1; 2]);
        assert_eq!(answered_after(&world), 2 * RTT);
    }
}
