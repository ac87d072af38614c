//! Handshake bytes in every slicing, and bytes that are wrong.

use bytes::BytesMut;
use hybriq_tls::{Alert, KeyExchange, Level, PerLevel, Side, Status};
use proptest::prelude::*;

use crate::support::{
    CONTENDERS, Contender, End, Failure, Pair, Slices, options, options_for, pairings, server_start,
};

#[test]
fn handshake_bytes_arrive_in_any_slicing() {
    let prefer = KeyExchange::PreferPostQuantum;
    let retry = KeyExchange::Exactly(vec![hybriq_tls::Group::SECP384R1]);
    for pairing in pairings() {
        for server in [&prefer, &retry] {
            for len in [1, 2, 3, 5, 38, 100, 1000] {
                let mut pair = Pair::of(pairing, &options_for(prefer.clone(), server.clone()));
                pair.run(Slices::Of(len))
                    .unwrap_or_else(|failure| panic!("{len}: {failure:?}"));
                pair.assert_agree();
            }
        }
    }
}

fn server_end(contender: &Contender) -> End {
    let server = (contender.server)(&options().1).expect("a server");
    End::new(
        server
            .session(server_start(None).into())
            .expect("a session"),
    )
}

#[track_caller]
fn refused(end: &mut End, bytes: &[u8], alert: Alert) {
    end.inbox.initial = BytesMut::from(bytes);
    let error = end.drive().expect_err("bytes that are wrong");
    assert_eq!(error.alert, alert, "{error}");
    assert_eq!(end.sent, PerLevel::default());
    let again = end.drive().expect_err("still refused");
    assert_eq!(again, error);
}

#[test]
fn a_malformed_client_hello_is_alert_50() {
    let garbage: [&[u8]; 4] = [
        &[1, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8],
        &[1, 0, 0, 0],
        &[1, 0xff, 0xff, 0xff],
        &[1, 1, 0, 1],
    ];
    for contender in CONTENDERS {
        for bytes in garbage {
            refused(&mut server_end(contender), bytes, Alert::DECODE_ERROR);
        }
    }
}

#[test]
fn another_message_than_a_client_hello_is_alert_10() {
    for contender in CONTENDERS {
        for kind in [0, 2, 8, 11, 20, 24, 255] {
            let bytes = [kind, 0, 0, 4, 1, 2, 3, 4];
            refused(
                &mut server_end(contender),
                &bytes,
                Alert::UNEXPECTED_MESSAGE,
            );
        }
    }
}

/// The first flight of a client that fits `options()` of the server.
fn first_flight(client: &Contender) -> BytesMut {
    let mut pair = Pair::of((client, client), &options());
    pair.client.drive().expect("a ClientHello");
    pair.client.outbox.crypto.initial.split()
}

/// Renames an extension of a ClientHello, which makes it one without.
fn without_extension(hello: &mut [u8], extension: [u8; 2], body: &[u8]) {
    let header = [&extension[..], &(body.len() as u16).to_be_bytes(), body].concat();
    let at = hello
        .windows(header.len())
        .position(|window| window == header)
        .expect("there");
    hello[at..at + 2].copy_from_slice(&[0xfa, 0xfa]);
}

/// Proves: rfc9001 8.2 parameters-are-required
#[test]
fn a_client_hello_without_transport_parameters_is_alert_109() {
    for (client, server) in pairings() {
        let mut hello = first_flight(client);
        without_extension(&mut hello, [0, 57], crate::support::CLIENT_PARAMS);
        refused(&mut server_end(server), &hello, Alert::MISSING_EXTENSION);
    }
}

/// Proves: rfc9001 4.2 tls-1.3-only
#[test]
fn a_client_hello_without_tls13_is_alert_70() {
    for (client, server) in pairings() {
        let mut hello = first_flight(client).to_vec();
        let versions = [0x03, 0x04];
        // The type alone may also occur in a key share, which is random.
        let is_extension = |window: &[u8]| matches!(window, [0, 43, 0, len, list, 3, _] if *len == list + 1 && list % 2 == 0);
        let at = hello
            .windows(7)
            .position(is_extension)
            .expect("supported_versions");
        let found = hello[at..]
            .windows(2)
            .position(|window| window == versions)
            .expect("TLS 1.3");
        hello[at + found + 1] = 0x03;
        refused(&mut server_end(server), &hello, Alert(70));
    }
}

/// Proves: rfc9001 4.1.3 unconsumed-data-closes
#[test]
fn bytes_left_at_a_lower_level_are_a_protocol_violation() {
    // The side that gets a byte too many, at which level, in which turn.
    let cases = [
        (Side::Server, Level::Initial, 0),
        (Side::Client, Level::Initial, 1),
        (Side::Client, Level::Handshake, 1),
        (Side::Server, Level::Handshake, 1),
    ];
    for pairing in pairings() {
        for (side, level, turn) in cases {
            let mut pair = Pair::of(pairing, &options());
            for _ in 0..turn {
                pair.turn(Slices::Whole).expect("a turn");
            }
            let failure = pair
                .turn_with(side, level, &[8])
                .expect_err("a byte too many");
            assert_eq!((failure.side, failure.error.code()), (side, 0x0a));
        }
    }
}

/// Proves: rfc9001 4.1.3 old-levels-do-not-grow
#[test]
fn late_bytes_at_a_lower_level_are_a_protocol_violation() {
    for pairing in pairings() {
        for level in [Level::Initial, Level::Handshake] {
            let mut pair = Pair::of(pairing, &options()).complete();
            for end in [&mut pair.client, &mut pair.server] {
                end.inbox[level].extend_from_slice(&[0]);
                let error = end.drive().expect_err("a level that is over");
                assert_eq!(error.code(), 0x0a, "{error}");
            }
        }
    }
}

/// Proves: rfc9001 4.4 no-post-handshake-authentication
/// Proves: rfc9001 6 tls-key-update-closes
#[test]
fn only_tickets_come_after_the_handshake() {
    for pairing in pairings() {
        // KeyUpdate, CertificateRequest, EndOfEarlyData.
        for message in [
            &[24, 0, 0, 1, 0][..],
            &[13, 0, 0, 3, 0, 0, 0],
            &[5, 0, 0, 0],
        ] {
            let mut pair = Pair::of(pairing, &options()).complete();
            for (end, is_client) in [(&mut pair.client, true), (&mut pair.server, false)] {
                end.inbox.one_rtt.extend_from_slice(message);
                let asks = message[0] == 13 && is_client;
                let error = end.drive().expect_err("no such message in QUIC");
                assert_eq!(error.code(), if asks { 0x0a } else { 0x010a }, "{error}");
            }
        }
    }
}

#[test]
fn bytes_of_a_later_level_wait() {
    for pairing in pairings() {
        let mut pair = Pair::of(pairing, &options());
        pair.turn(Slices::Whole).expect("a turn");
        let initial = pair.client.inbox.initial.split();
        let waiting = pair.client.inbox.handshake.len();
        assert_eq!(pair.client.drive().expect("nothing yet"), Status::NeedsPeer);
        assert_eq!(pair.client.inbox.handshake.len(), waiting);
        pair.client.inbox.initial = initial;
        pair.run(Slices::Whole).expect("a handshake");
        pair.assert_agree();
    }
}

const CASES: u32 = 256;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// A flipped byte anywhere ends the handshake with an error at one end and never a panic.
    #[test]
    fn a_corrupted_flight_fails_cleanly(
        which in 0_usize..16,
        to_client in any::<bool>(),
        position in any::<prop::sample::Index>(),
        mask in 1_u8..,
    ) {
        let Some(pairing) = pairings().nth(which % pairings().count()) else { return Ok(()) };
        let mut pair = Pair::of(pairing, &options());
        pair.client.drive().expect("a ClientHello");
        if to_client {
            pair.turn(Slices::Whole).expect("a turn");
        }
        let (initial, handshake) = if to_client {
            let PerLevel { initial, handshake, .. } = &mut pair.client.inbox;
            (initial, handshake)
        } else {
            let PerLevel { initial, handshake, .. } = &mut pair.client.outbox.crypto;
            (initial, handshake)
        };
        let at = position.index(initial.len() + handshake.len());
        let len = initial.len();
        if at < len { initial[at] ^= mask } else { handshake[at - len] ^= mask }
        let ran = pair.run(Slices::Whole);
        let done = pair.client.status == Status::Complete && pair.server.status == Status::Complete;
        prop_assert!(ran.is_err() || !done, "a corrupted handshake completed");
        if let Err(Failure { error, .. }) = ran {
            // The peer's fault is never reported as our own.
            prop_assert_ne!(error.alert, Alert::INTERNAL_ERROR, "{}", error);
        }
    }

    #[test]
    fn random_bytes_never_panic(which in 0_usize..8, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let contender = &CONTENDERS[which % CONTENDERS.len()];
        let mut end = server_end(contender);
        end.inbox.initial.extend_from_slice(&[1, 0, (bytes.len() >> 8) as u8, bytes.len() as u8]);
        end.inbox.initial.extend_from_slice(&bytes);
        prop_assert!(end.drive().is_err());
    }
}

/// Proves: rfc9001 5.3 unknown-suites-are-no-error
#[test]
fn a_client_hello_with_an_unknown_suite_is_answered() {
    for (client, server) in pairings() {
        let mut hello = first_flight(client);
        // Header, version, random, an empty session id, the suites behind their length.
        let suites = 4 + 2 + 32 + 1;
        let len = usize::from(u16::from_be_bytes([hello[suites], hello[suites + 1]]));
        assert!(len >= 4, "more suites than one");
        hello[suites + len..suites + len + 2].copy_from_slice(&[0xfa, 0xfa]);
        let mut end = server_end(server);
        end.inbox.initial.extend_from_slice(&hello);
        assert_eq!(end.drive(), Ok(Status::NeedsPeer));
        assert!(!end.outbox.crypto.initial.is_empty());
    }
}
