use std::time::Duration;

use super::{
    Pair, client_address,
    forged::{forge, pair},
    server_address,
};
use crate::{
    connection::Connection,
    owners::{handshake::OneRtt, streams::Direction},
    testing::pns,
    wire::{
        error::{By, Code, ConnectionError},
        frame::{FrameWriter, PathChallenge},
        packet::{PacketBuilder, PacketNumber, Space},
    },
};

fn keys(connection: &mut Connection) -> &mut OneRtt {
    connection.handshake.keys_mut().one_rtt_mut().unwrap()
}

/// Returns a 1-RTT packet with the test's number, sealed with the current keys.
fn seal(from: &Connection, pn: u64, fill: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 1200];
    let header = from.header(Space::Data);
    let mut packet =
        PacketBuilder::begin(&mut buffer, &header, PacketNumber::saturating(pn), None).unwrap();
    let mut frames = packet.frames();
    fill(&mut frames);
    let len = frames.len();
    let size = packet.finish(len, from.handshake.sealing_keys(Space::Data).unwrap());
    buffer.truncate(size);
    buffer
}

fn ping(out: &mut FrameWriter<'_>) {
    assert!(out.ping());
}

impl Pair {
    fn deliver(&mut self, datagram: &[u8]) {
        self.server
            .receive(self.now, client_address(), &mut datagram.to_vec());
    }

    #[track_caller]
    fn expect_violation(&mut self) {
        let closed = self.server.close_reason();
        let Some(ConnectionError::Transport { by, code, .. }) = closed else {
            panic!("{closed:?}")
        };
        assert_eq!((by, code), (By::Local, Code::KEY_UPDATE_ERROR));
        let now = self.now;
        assert!(!self.server.transmit(now).is_empty(), "it says so");
    }
}

/// Proves: rfc9001 6.4 numbers-and-keys-rise-together
/// Proves: security 7 key-phase-abuse-closes
#[test]
fn old_keys_with_a_higher_number_close_the_connection() {
    let mut pair = pair();
    pair.run();
    let client = pair.client.connection();
    let (overtaken, violating) = (seal(client, 199, ping), seal(client, 201, ping));
    keys(client).update();
    let (new, newest) = (seal(client, 200, ping), seal(client, 202, ping));
    pair.deliver(&new);
    pair.deliver(&overtaken);
    pair.deliver(&newest);
    assert!(!pair.server.connection().is_closed());
    pair.deliver(&violating);
    pair.expect_violation();
}

/// Proves: rfc9001 6.2 update-too-early-closes
/// Proves: security 7 key-phase-abuse-closes
#[test]
fn two_updates_without_an_acknowledgement_close_the_connection() {
    for acknowledged in [true, false] {
        let mut pair = pair();
        pair.run();
        for pn in [200, 201] {
            keys(pair.client.connection()).update();
            let datagram = seal(pair.client.connection(), pn, ping);
            pair.deliver(&datagram);
            if acknowledged {
                pair.now += Duration::from_millis(100);
                let now = pair.now;
                pair.server.connection().on_timeout(now);
                assert!(!pair.server.transmit(now).is_empty());
            }
        }
        if acknowledged {
            assert_eq!(pair.server.connection().key_updates(), 2);
            assert!(!pair.server.connection().is_closed());
        } else {
            pair.expect_violation();
        }
    }
}

/// Proves: rfc9001 6.2 update-is-followed
#[test]
fn an_acknowledgement_beside_a_path_response_allows_the_next_update() {
    let mut pair = pair();
    pair.run();
    for pn in [200, 201] {
        keys(pair.client.connection()).update();
        let datagram = seal(pair.client.connection(), pn, |out| {
            assert!(out.write(&PathChallenge([7; 8])));
        });
        pair.deliver(&datagram);
        let now = pair.now;
        assert_eq!(pair.server.transmit(now).len(), 1);
        assert!(!pair.server.connection().acks.is_pending(Space::Data));
    }
    assert_eq!(pair.server.close_reason(), None);
    assert_eq!(pair.server.connection().key_updates(), 2);
}

/// Proves: rfc9001 6.1 no-update-before-confirmation
/// Proves: security 7 key-phase-abuse-closes
#[test]
fn an_update_before_the_handshake_is_confirmed_closes_the_connection() {
    let mut pair = pair();
    while pair.client.connection().state.is_handshaking() {
        assert!(pair.step());
    }
    assert!(
        !pair.client.connection().update_keys(),
        "it is not confirmed"
    );
    let finished = pair.client.transmit(pair.now);
    keys(pair.client.connection()).update();
    let early = seal(pair.client.connection(), 200, ping);
    for datagram in finished {
        pair.deliver(&datagram);
    }
    assert!(pair.server.connection().state.is_confirmed());
    pair.deliver(&early);
    pair.expect_violation();
}

/// Proves: security 7 key-phase-abuse-closes
#[test]
fn an_acknowledgement_under_old_keys_of_a_packet_under_new_ones_closes_the_connection() {
    let mut pair = pair();
    pair.run();
    let server = pair.server.connection();
    assert!(server.update_keys());
    let streams = server.streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.finish(id).unwrap();
    let number = server.recovery.next_number(Space::Data);
    let now = pair.now;
    assert!(!pair.server.transmit(now).is_empty());
    let datagram = seal(pair.client.connection(), 200, |out| {
        assert!(
            out.ack(0, std::iter::once(PacketNumber::ZERO..=number), None)
                .is_some()
        );
    });
    pair.deliver(&datagram);
    pair.expect_violation();
}

/// Proves: rfc9001 6.5 old-keys-go
#[test]
fn a_packet_that_was_overtaken_by_an_update_is_opened_for_three_pto() {
    let mut pair = pair();
    pair.run();
    let client = pair.client.connection();
    let [first, second] = [198, 199].map(|pn| seal(client, pn, ping));
    keys(client).update();
    let new = seal(client, 200, ping);
    pair.deliver(&new);
    let keep = 3 * pair.server.connection().pto(Space::Data);
    let received = |pair: &mut Pair, datagram: &[u8]| {
        let before = pair.server.connection().stats().packets_received;
        pair.deliver(datagram);
        pair.server.connection().stats().packets_received - before
    };
    pair.now += keep.checked_sub(Duration::from_millis(1)).unwrap();
    assert_eq!(received(&mut pair, &first), 1);
    pair.now += Duration::from_millis(1);
    assert_eq!(received(&mut pair, &second), 0);
    assert!(!pair.server.connection().is_closed());
}

/// Proves: rfc9001 6.6 integrity-limit-closes
/// Proves: security 7 forgeries-are-counted
#[test]
fn forgeries_up_to_the_integrity_limit_end_the_connection() {
    let mut pair = pair();
    pair.run();
    keys(pair.server.connection()).leave_failures(3);
    let mut forgery = seal(pair.client.connection(), 200, ping);
    *forgery.last_mut().unwrap() ^= 1;
    for count in 1..=3 {
        assert!(!pair.server.connection().is_closed(), "{count}");
        pair.deliver(&forgery);
    }
    let closed = pair.server.close_reason();
    let Some(ConnectionError::Transport { by, code, .. }) = closed else {
        panic!("{closed:?}")
    };
    assert_eq!((by, code), (By::Local, Code::AEAD_LIMIT_REACHED));
}

/// Proves: rfc9001 6.1 no-update-before-confirmation
/// Proves: rfc9001 6.1 no-update-before-the-last-is-acknowledged
#[test]
fn an_update_that_was_asked_for_starts_as_soon_as_it_may() {
    let mut pair = pair();
    while pair.client.connection().state.is_handshaking() {
        assert!(pair.step());
    }
    pair.client.connection().request_key_update();
    pair.client.transmit(pair.now);
    assert_eq!(pair.client.connection().key_updates(), 0);
    let mut updates = Vec::new();
    let mut talk = |pair: &mut Pair| {
        let streams = pair.client.connection().streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.finish(id).unwrap();
        pair.run();
        pair.now += 4 * pair.client.connection().pto(Space::Data);
        updates.push(pair.client.connection().key_updates());
    };
    pair.now += Duration::from_secs(1);
    let now = pair.now;
    pair.client.connection().on_timeout(now);
    talk(&mut pair);
    talk(&mut pair);
    pair.client.connection().request_key_update();
    talk(&mut pair);
    talk(&mut pair);
    assert_eq!(updates[3], 2, "{updates:?}: one for each wish");
    assert_eq!(pair.server.connection().key_updates(), 2);
}

/// Proves: rfc9001 6.1 no-update-before-the-last-is-acknowledged
#[test]
fn keys_are_not_updated_again_before_the_peer_acknowledged_the_last_update() {
    let mut pair = pair();
    pair.run();
    assert!(pair.server.connection().update_keys());
    // The client follows, but none of its packets in the new phase arrives.
    for _ in 0..2 {
        let mut datagram = forge(pair.server.connection(), Space::Data, 0, |out| {
            assert!(out.ping());
        });
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
        pair.client.transmit(pair.now);
        pair.now += Duration::from_secs(5);
    }
    assert_eq!(pair.client.connection().key_updates(), 1);
    assert!(!pair.client.connection().update_keys());

    let streams = pair.client.connection().streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.finish(id).unwrap();
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    pair.run();
    let mut datagram = forge(pair.server.connection(), Space::Data, 0, |out| {
        assert!(out.ack(0, std::iter::once(pns(0..=0)), None).is_some());
    });
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    assert!(pair.client.connection().update_keys());
}

/// Proves: rfc9001 6.6 update-before-confidentiality-limit
#[test]
fn keys_that_are_spent_without_an_update_end_the_connection() {
    let mut pair = pair();
    pair.run();
    let now = pair.now;
    let server = pair.server.connection();
    // The update is never followed, so there cannot be another.
    assert!(server.update_keys());
    server.handshake.keys_mut().one_rtt_mut().unwrap().leave(2);
    for packets in 1..=2 {
        assert!(!server.is_closed(), "after {} packets", packets - 1);
        let streams = server.streams();
        let id = streams.open(Direction::Uni).unwrap();
        streams.finish(id).unwrap();
        let mut out = [0; 2048];
        assert!(server.poll_transmit(now, &mut out, 1).is_some());
    }
    let closed = pair.server.close_reason();
    let Some(ConnectionError::Transport { by, code, .. }) = closed else {
        panic!("{closed:?}")
    };
    assert_eq!((by, code), (By::Local, Code::AEAD_LIMIT_REACHED));
    assert!(!pair.server.transmit(now).is_empty(), "it says so");
}

/// Proves: rfc9001 6.6 update-before-confidentiality-limit
#[test]
fn keys_that_are_due_are_updated_and_last() {
    let mut pair = pair();
    pair.run();
    let now = pair.now;
    let server = pair.server.connection();
    server.handshake.keys_mut().one_rtt_mut().unwrap().leave(1);
    let streams = server.streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.finish(id).unwrap();
    let mut out = [0; 2048];
    assert!(server.poll_transmit(now, &mut out, 1).is_some());
    assert_eq!(server.key_updates(), 1);
    assert!(!server.is_closed());
}
