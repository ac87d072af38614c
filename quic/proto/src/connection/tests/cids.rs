//! Tests of a peer's errors with connection ids, and of their reports (RFC 9000 §5.1, §19.15,
//! §19.16).

use std::time::Duration;

use super::{
    Pair, client_address,
    forged::{forge, quiet},
    server_address,
};
use crate::{
    forge::Forge,
    wire::{
        error::{By, Code, ConnectionError},
        frame::{FrameType, FrameWriter, NewConnectionId, RetireConnectionId},
        limits,
        packet::{Cid, Space},
    },
};

/// Returns the server's close after the client sent these frames.
fn server_closes(
    pair: &mut Pair,
    fill: impl FnOnce(&mut FrameWriter<'_>),
) -> Option<(Code, Option<FrameType>)> {
    let mut datagram = forge(pair.client.connection(), Space::Data, 0, fill);
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
    match pair.server.close_reason()? {
        ConnectionError::Transport {
            by: By::Local,
            code,
            frame,
            ..
        } => Some((code, frame)),
        other => panic!("{other}"),
    }
}

/// Returns the close that the client receives.
fn client_learns(pair: &mut Pair) -> (Code, Option<FrameType>) {
    for mut datagram in pair.server.transmit(pair.now) {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
    }
    match pair.client.close_reason() {
        Some(ConnectionError::Transport {
            by: By::Peer,
            code,
            frame,
            ..
        }) => (code, frame),
        other => panic!("{other:?}"),
    }
}

fn new_cid(sequence: u64, retire_prior_to: u64) -> NewConnectionId {
    NewConnectionId {
        sequence,
        retire_prior_to,
        cid: Cid::from((sequence ^ 0x5eed << 32).to_be_bytes()),
        reset_token: [sequence as u8; 16].into(),
    }
}

/// Proves: rfc9000 5.1.1 more-ids-than-our-limit-close
/// Proves: security 3 cid-limit-violations-close
#[test]
fn an_id_beyond_the_limit_closes_with_connection_id_limit_error() {
    let mut pair = quiet();
    // The client issued as many ids as it may immediately after the handshake.
    let closed = server_closes(&mut pair, |out| {
        assert!(out.write(&new_cid(limits::PEER_CIDS as u64, 0)));
    });
    let expected = (
        Code::CONNECTION_ID_LIMIT_ERROR,
        Some(FrameType::NEW_CONNECTION_ID),
    );
    assert_eq!(closed, Some(expected));
    assert_eq!(client_learns(&mut pair), expected, "on the wire");
}

/// Proves: rfc9000 5.1.2 retired-ids-are-not-forgotten
/// Proves: security 3 retire-prior-to-stuffing-closes
#[test]
fn stuffing_with_retire_prior_to_closes_with_connection_id_limit_error() {
    let mut pair = quiet();
    // Each frame retires the ids before it, and no RETIRE_CONNECTION_ID is acknowledged.
    let mut sequence = limits::PEER_CIDS as u64;
    let mut closed = None;
    for _ in 0..10 {
        closed = server_closes(&mut pair, |out| {
            for _ in 0..20 {
                assert!(out.write(&new_cid(sequence, sequence)));
                sequence += 1;
            }
        });
        if closed.is_some() {
            break;
        }
    }
    assert_eq!(
        closed,
        Some((
            Code::CONNECTION_ID_LIMIT_ERROR,
            Some(FrameType::NEW_CONNECTION_ID)
        ))
    );
    assert!(sequence <= 3 * limits::PENDING_RETIREMENTS as u64);
}

/// Proves: rfc9000 19.15 retire-prior-to-is-checked
/// Proves: rfc9000 19.15 repeated-new-cid-is-fine
/// Proves: rfc9000 19.15 new-cid-length-is-checked
#[test]
fn new_connection_ids_that_make_no_sense_close() {
    let cases: [(&[NewConnectionId], Code); 2] = [
        (&[new_cid(9, 10)], Code::FRAME_ENCODING_ERROR),
        (
            &[
                new_cid(9, 9),
                NewConnectionId {
                    reset_token: [0; 16].into(),
                    ..new_cid(9, 9)
                },
            ],
            Code::PROTOCOL_VIOLATION,
        ),
    ];
    for (frames, code) in cases {
        let mut pair = quiet();
        let closed = server_closes(&mut pair, |out| {
            for frame in frames {
                assert!(out.write(frame));
            }
        });
        assert_eq!(closed, Some((code, Some(FrameType::NEW_CONNECTION_ID))));
    }
    let mut pair = quiet();
    let repeated = server_closes(&mut pair, |out| {
        assert!(out.write(&new_cid(9, 9)) && out.write(&new_cid(9, 9)));
    });
    assert_eq!(repeated, None);
    let mut pair = quiet();
    let empty = NewConnectionId {
        cid: Cid::EMPTY,
        ..new_cid(9, 9)
    };
    let closed = server_closes(&mut pair, |out| {
        assert!(out.write(&empty));
    });
    assert_eq!(
        closed,
        Some((
            Code::FRAME_ENCODING_ERROR,
            Some(FrameType::NEW_CONNECTION_ID)
        ))
    );
}

/// Proves: rfc9000 19.16 retire-of-unknown-closes
/// Proves: rfc9000 19.16 retire-of-own-packet-closes
#[test]
fn retirements_of_what_cannot_be_retired_close() {
    for sequence in [limits::LOCAL_CIDS as u64, 1 << 61, 0] {
        let mut pair = quiet();
        // Packets of the client go to number 0.
        let closed = server_closes(&mut pair, |out| {
            assert!(out.write(&RetireConnectionId { sequence }));
        });
        let expected = (
            Code::PROTOCOL_VIOLATION,
            Some(FrameType::RETIRE_CONNECTION_ID),
        );
        assert_eq!(closed, Some(expected));
        assert_eq!(client_learns(&mut pair), expected, "on the wire");
    }
}

/// Proves: security 3 retire-floods-are-paced
#[test]
fn a_client_that_retires_ids_in_a_hurry_gets_others_at_a_bounded_rate() {
    let mut pair = quiet();
    let issued = |pair: &mut Pair| pair.server.connection().cids().local().count();
    let before = issued(&mut pair);
    let mut newest = limits::LOCAL_CIDS as u64 - 1;
    let mut given = 0;
    for _ in 0..200 {
        // All except the id of its own packets.
        let mut datagram = forge(pair.client.connection(), Space::Data, 0, |out| {
            for sequence in newest.saturating_sub(2).max(1)..=newest {
                assert!(out.write(&RetireConnectionId { sequence }));
            }
        });
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
        assert!(!pair.server.connection().is_closed());
        pair.server.transmit(pair.now);
        let now_known = issued(&mut pair) as u64 - 1;
        given += now_known;
        newest += now_known;
    }
    assert!(given <= limits::CIDS_ISSUED_AT_ONCE as u64, "{given}");
    pair.now += limits::CIDS_ISSUED_INTERVAL + Duration::from_millis(1);
    let now = pair.now;
    pair.server.connection().on_timeout(now);
    pair.server.transmit(now);
    assert_eq!(issued(&mut pair), before);
}

/// Proves: rfc9000 19.15 no-new-cid-for-empty-ids
/// Proves: rfc9000 19.16 no-retire-for-empty-ids
#[test]
fn ends_without_ids_neither_issue_nor_retire_any() {
    let without_ids = || {
        let mut pair = Pair::with_client(|endpoint| {
            endpoint.set_cid_generator(std::sync::Arc::new(crate::owners::cids::ZeroLength));
        });
        pair.run();
        pair.server.events();
        pair.client.events();
        pair
    };
    let mut pair = without_ids();
    let closed = server_closes(&mut pair, |out| {
        assert!(out.write(&new_cid(1, 0)));
    });
    assert_eq!(
        closed,
        Some((Code::PROTOCOL_VIOLATION, Some(FrameType::NEW_CONNECTION_ID)))
    );

    let mut pair = without_ids();
    let mut datagram = forge(pair.server.connection(), Space::Data, 0, |out| {
        assert!(out.write(&RetireConnectionId { sequence: 0 }));
    });
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    assert!(matches!(
        pair.client.close_reason(),
        Some(ConnectionError::Transport {
            code: Code::PROTOCOL_VIOLATION,
            frame: Some(FrameType::RETIRE_CONNECTION_ID),
            ..
        })
    ));
}

/// Proves: rfc9000 17.2 fixed-bit-is-checked
/// Proves: rfc9287 3 greased-packets-are-taken
#[test]
fn packets_without_the_quic_bit_are_taken_by_who_announced_it() {
    use crate::{config::TransportConfig, wire::packet::header_bits::Grease};
    for grease in [Grease::On, Grease::Off] {
        let transport = match grease {
            Grease::On => TransportConfig::new(),
            Grease::Off => TransportConfig::new().without_grease(),
        };
        let mut pair = Pair::with_server_transport(transport);
        pair.run();
        let space = Space::Data;
        let connection = pair.server.connection();
        let before = connection.acks.largest(space);
        let mut datagram = pair.client.connection().forge_without_quic_bit(space);
        assert_eq!(datagram[0] & 0x40, 0);
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
        let after = pair.server.connection().acks.largest(space);
        assert_eq!(after != before, grease == Grease::On);
    }
}

/// Proves: rfc9000 21.11 reset-is-no-oracle
/// Proves: rfc9000 11 no-reset-while-there-is-state
#[test]
fn what_does_not_open_elicits_no_reset_from_who_knows_the_connection() {
    let mut pair = quiet();
    let mut datagram = forge(pair.client.connection(), Space::Data, 100, |out| {
        assert!(out.ping());
    });
    let last = datagram.len() - 1;
    datagram[last] ^= 1;
    pair.server
        .receive(pair.now, client_address(), &mut datagram);
    assert!(pair.server.transmit(pair.now).is_empty());
    assert_eq!(pair.server.endpoint.stats().stateless_resets, 0);
    assert!(!pair.server.connection().is_closed());
}
