//! Tests of datagrams that the system refuses to send.

use std::{io, net::IpAddr, time::Duration};

use super::{Pair, Side, client_address, forged::quiet, server_address};
use crate::{
    connection::{Event, RefusalCause, Refused},
    endpoint::{Arrival, Local},
    owners::streams::Direction,
    wire::error::{ConnectionError, SystemError},
};

fn refused(side: &mut Side, cause: RefusalCause) -> Refused {
    let connection = side.connection();
    Refused {
        peer: connection.peer_address(),
        local: connection.local(),
        cause,
        reason: SystemError {
            kind: io::ErrorKind::NetworkUnreachable,
            code: None,
        },
    }
}

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 99));

/// Tells a side its own address with a datagram that arrived there.
fn learn(from: &mut Side, to: &mut Side, now: std::time::Instant) {
    let peer = from.address;
    let id = from.connection().streams().open(Direction::Uni).unwrap();
    from.connection().streams().write(id, b"hello").unwrap();
    let arrival = Arrival {
        peer,
        local: Local {
            ip: Some(HERE),
            ..Local::default()
        },
        ecn: None,
    };
    for mut datagram in from.transmit(now) {
        to.connection().on_datagram(now, &arrival, &mut datagram);
    }
    assert_eq!(to.connection().local().ip, Some(HERE));
}

/// Returns the server's id that the client sends to.
fn used_cid(pair: &mut Pair) -> crate::wire::packet::Cid {
    *pair.client.connection().cids.peer.active()
}

#[test]
fn a_client_whose_address_is_gone_goes_on_from_another() {
    let mut pair = quiet();
    learn(&mut pair.server, &mut pair.client, pair.now);
    pair.run();
    let before = used_cid(&mut pair);
    let gone = refused(&mut pair.client, RefusalCause::OwnAddress);
    pair.client.connection().on_refused(pair.now, gone);
    assert_eq!(pair.client.connection().local().ip, None);
    assert_ne!(used_cid(&mut pair), before, "RFC 9000 §9.5");
    assert!(
        pair.client
            .events()
            .iter()
            .any(|event| matches!(event, Event::PathChanged(_)))
    );
    // A late refusal for the abandoned address changes nothing.
    let now_used = used_cid(&mut pair);
    pair.client.connection().on_refused(pair.now, gone);
    assert_eq!(used_cid(&mut pair), now_used);

    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.write(id, b"still here").unwrap();
    pair.run();
    let id = pair
        .server
        .connection()
        .streams()
        .accept(Direction::Uni)
        .expect("it arrived");
    let mut buffer = [0; 20];
    let read = pair.server.connection().streams().read(id, &mut buffer);
    assert_eq!(&buffer[..read.unwrap()], b"still here");
    assert!(!pair.client.connection().is_closed());
}

#[test]
fn a_server_whose_address_is_gone_ends_with_a_reason_unless_it_comes_back() {
    let mut pair = quiet();
    learn(&mut pair.client, &mut pair.server, pair.now);
    pair.run();
    let gone = refused(&mut pair.server, RefusalCause::OwnAddress);
    pair.server.connection().on_refused(pair.now, gone);
    assert!(!pair.server.connection().is_closed(), "it may come back");

    let streams = pair.server.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.write(id, b"nobody hears this").unwrap();
    for _ in 0..1000 {
        if pair.server.connection().is_closed() {
            break;
        }
        if !pair.server.transmit(pair.now).is_empty() {
            pair.server.connection().on_refused(pair.now, gone);
        }
        pair.now += Duration::from_millis(50);
        pair.server.connection().on_timeout(pair.now);
    }
    assert_eq!(
        pair.server.close_reason(),
        Some(ConnectionError::AddressGone {
            address: HERE,
            reason: gone.reason
        })
    );
}

#[test]
fn a_connect_that_the_system_refuses_to_send_ends_at_once() {
    let mut pair = Pair::without_tickets();
    assert!(!pair.client.transmit(pair.now).is_empty());
    let refused = refused(&mut pair.client, RefusalCause::Peer);
    pair.client.connection().on_refused(pair.now, refused);
    let reason = pair.client.close_reason();
    assert_eq!(
        reason,
        Some(ConnectionError::Unreachable {
            peer: server_address(),
            reason: refused.reason
        })
    );
    let text = reason.unwrap().to_string();
    assert!(text.contains("check its network and routes"), "{text}");
    assert!(!text.contains("port"), "{text}");
}

#[test]
fn a_refusal_changes_nothing_once_the_peer_was_heard_of() {
    let mut pair = Pair::without_tickets();
    while pair.client.connection().stats().datagrams_received == 0 {
        assert!(pair.step());
    }
    for _ in 0..3 {
        let to_server = refused(&mut pair.client, RefusalCause::Peer);
        pair.client.connection().on_refused(pair.now, to_server);
    }
    assert!(!pair.client.connection().is_closed(), "in the handshake");
    pair.run();
    for side in [&mut pair.client, &mut pair.server] {
        let refused = refused(side, RefusalCause::Peer);
        side.connection().on_refused(pair.now, refused);
        assert!(!side.connection().is_closed(), "established");
    }
    assert_eq!(pair.server.connection().peer_address(), client_address());
}

/// Anybody can send reports. Only somebody who has seen the first packet knows its connection id.
#[test]
fn a_report_counts_only_with_the_id_of_the_first_packet() {
    let reported = |kind| SystemError { kind, code: None };
    let closed_port = reported(io::ErrorKind::ConnectionRefused);
    let mut pair = Pair::without_tickets();
    let datagram = pair.client.transmit(pair.now).remove(0);
    let (now, peer) = (pair.now, server_address());
    let mut forged = datagram.clone();
    forged[6] ^= 1;
    let cut_off = &datagram[..10];
    let elsewhere = client_address();
    for (from, quoted) in [
        (peer, &forged[..]),
        (peer, cut_off),
        (peer, &[]),
        (elsewhere, &datagram[..]),
    ] {
        pair.client
            .connection()
            .on_reported(now, from, quoted, closed_port);
        assert!(!pair.client.connection().is_closed());
    }
    let slot = pair.client.endpoint.find_quoted(peer, &datagram[..64]);
    assert_eq!(slot, pair.client.connection.as_ref().map(|it| it.0));
    assert_eq!(pair.client.endpoint.find_quoted(peer, cut_off), None);
    // There may soon be a route to the host.
    let no_way = reported(io::ErrorKind::HostUnreachable);
    let quoted = &datagram[..64];
    pair.client
        .connection()
        .on_reported(now, peer, quoted, no_way);
    assert!(!pair.client.connection().is_closed(), "not at the first");
    pair.client
        .connection()
        .on_reported(now, peer, quoted, closed_port);
    assert_eq!(
        pair.client.close_reason(),
        Some(ConnectionError::Unreachable {
            peer,
            reason: closed_port
        })
    );

    let mut pair = Pair::without_tickets();
    let sent = pair.client.transmit(pair.now);
    for datagram in &sent {
        pair.server
            .receive(pair.now, client_address(), &mut datagram.clone());
    }
    let mut answer = pair.server.transmit(pair.now).remove(0);
    pair.client.receive(pair.now, peer, &mut answer);
    let quoted = &sent[0][..64];
    pair.client
        .connection()
        .on_reported(pair.now, peer, quoted, closed_port);
    assert!(!pair.client.connection().is_closed(), "the server answered");
}
