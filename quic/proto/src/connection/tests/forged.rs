//! Tests of packets with valid keys that break rules or are rare.

use super::{BACKENDS, Pair, client_address, server_address};
use crate::{
    connection::Connection,
    endpoint::Arrival,
    forge::Forge,
    wire::{
        frame::{FrameWriter, PathChallenge},
        limits,
        packet::{Header, PacketNumber, Space},
    },
};

/// Returns a datagram with one packet of `from` and the test's frames, padded to `pad_to` bytes.
pub(super) fn forge(
    from: &mut Connection,
    space: Space,
    pad_to: usize,
    fill: impl FnOnce(&mut FrameWriter<'_>),
) -> Vec<u8> {
    from.forge(space, |_| (), pad_to, fill)
}

pub(super) fn pair() -> Pair {
    Pair::new(
        hybriq_tls::KeyExchange::default(),
        hybriq_tls::KeyExchange::default(),
        [BACKENDS[0]; 2],
    )
}

/// Returns an established pair whose events were taken.
pub(super) fn quiet() -> Pair {
    let mut pair = pair();
    pair.run();
    pair.server.events();
    pair.client.events();
    pair
}

/// Returns a pair whose server has the complete ClientHello and has not answered yet.
pub(super) fn with_client_hello() -> Pair {
    let mut pair = pair();
    for datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram.clone());
    }
    pair
}

fn newest(connection: &Connection, space: Space) -> Option<PacketNumber> {
    connection.acks.largest(space).map(|(pn, _)| pn)
}

/// Proves: rfc9000 14.1 small-initials-are-dropped
#[test]
fn a_server_drops_initials_in_small_datagrams() {
    let mut pair = with_client_hello();
    let before = newest(pair.server.connection(), Space::Initial);
    let ping = |out: &mut FrameWriter<'_>| assert!(out.ping());
    let mut small = forge(
        pair.client.connection(),
        Space::Initial,
        limits::MIN_DATAGRAM - 1,
        ping,
    );
    pair.server.receive(pair.now, client_address(), &mut small);
    assert_eq!(newest(pair.server.connection(), Space::Initial), before);
    let mut full = forge(pair.client.connection(), Space::Initial, 1200, ping);
    pair.server.receive(pair.now, client_address(), &mut full);
    assert_ne!(newest(pair.server.connection(), Space::Initial), before);
}

/// Proves: rfc9000 14.1 small-initials-are-dropped
#[test]
fn a_partial_client_hello_does_not_grow_by_small_datagrams() {
    let mut pair = pair();
    let mut first = pair.client.transmit(pair.now).swap_remove(0);
    pair.server.receive(pair.now, client_address(), &mut first);
    let mut small = forge(pair.client.connection(), Space::Initial, 1199, |out| {
        assert!(out.ping());
    });
    let arrival = Arrival {
        peer: client_address(),
        local: crate::wire::udp::Local::default(),
        ecn: None,
    };
    let endpoint = &mut pair.server.endpoint;
    endpoint.on_datagram(pair.now, &arrival, &mut small);
    assert_eq!(endpoint.stats().datagrams_dropped, 1);
}

/// Proves: rfc9000 17.2.2 server-initials-have-no-token
#[test]
fn a_client_drops_initials_with_a_token() {
    let mut pair = with_client_hello();
    let add_token = |header: &mut Header<'_>| {
        if let Header::Long { token, .. } = header {
            *token = b"token";
        }
    };
    let server = pair.server.connection();
    let mut datagram = server.forge(Space::Initial, add_token, 1200, |out| {
        assert!(out.ping());
    });
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    assert_eq!(newest(pair.client.connection(), Space::Initial), None);
}

/// Proves: rfc9000 12.2 coalesced-packets-share-an-id
#[test]
fn packets_behind_one_with_another_destination_id_are_ignored() {
    let mut pair = with_client_hello();
    for mut datagram in pair.server.transmit(pair.now) {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
    }
    let client = pair.client.connection();
    let original = client.id();
    let misdirect = |header: &mut Header<'_>| {
        if let Header::Long { dcid, .. } = header {
            *dcid = original;
        }
    };
    let ping = |out: &mut FrameWriter<'_>| assert!(out.ping());
    let mut datagram = client.forge(Space::Initial, misdirect, 1150, ping);
    datagram.extend(forge(client, Space::Handshake, 50, ping));
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
    let server = pair.server.connection();
    assert!(server.acks.is_pending(Space::Initial));
    assert_eq!(newest(server, Space::Handshake), None);
}

/// Proves: rfc9000 14.1 server-initials-are-full
#[test]
fn a_server_never_elicits_acknowledgements_by_small_initials() {
    let mut pair = with_client_hello();
    pair.server.transmit(pair.now);
    for _ in 0..100 {
        let next = pair
            .server
            .connection()
            .recovery
            .next_number(Space::Initial);
        let newest = next.checked_sub(1).expect("the server sent an Initial");
        let mut datagram = forge(pair.client.connection(), Space::Initial, 1200, |out| {
            assert!(out.ping());
            assert!(
                out.ack(0, std::iter::once(PacketNumber::ZERO..=newest), None)
                    .is_some()
            );
        });
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
        let sent = pair.server.transmit(pair.now);
        let small = sent.iter().any(|datagram| datagram.len() < 1200);
        let recovery = &pair.server.connection().recovery;
        assert!(!small || !recovery.has_eliciting_in_flight(Space::Initial));
    }
}

#[test]
fn a_path_response_fills_its_datagram() {
    let mut pair = pair();
    pair.run();
    let mut challenge = forge(pair.client.connection(), Space::Data, 0, |out| {
        assert!(out.write(&PathChallenge([7; 8])));
    });
    pair.server
        .receive(pair.now, client_address(), &mut challenge);
    let sizes: Vec<_> = pair
        .server
        .transmit(pair.now)
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [1200]);
}

/// Proves: rfc9000 13.2.5 ack-delay-is-our-own
#[test]
fn packets_kept_for_later_are_taken_as_soon_as_their_keys_are_there() {
    let mut pair = with_client_hello();
    let flight = pair.server.transmit(pair.now);
    let mut early = forge(pair.server.connection(), Space::Data, 0, |out| {
        assert!(out.ping());
    });
    pair.client.receive(pair.now, server_address(), &mut early);
    let came_at = pair.now;
    pair.now += std::time::Duration::from_millis(40);
    for datagram in flight.iter().rev() {
        pair.client
            .receive(pair.now, server_address(), &mut datagram.clone());
    }
    let client = pair.client.connection();
    assert!(!client.state.is_handshaking());
    assert_eq!(
        client.acks.largest(Space::Data).map(|(_, at)| at),
        Some(came_at),
        "without a datagram more, and the wait is told"
    );
}
