//! Tests of Retry at a client (RFC 9000 §17.2.5).

use hybriq_tls::Side;

use super::{Pair, forged::pair, server_address};
use crate::{
    forge::{join, open_initials},
    wire::{
        error::{Code, ConnectionError},
        limits,
        packet::{Cid, Header, Retry, Space, Version},
        params::Params,
    },
};

const TOKEN: &[u8] = b"come back with this";

pub(super) fn retry(pair: &mut Pair, scid: Cid) -> Vec<u8> {
    let client = pair.client.connection();
    let local = client.cids().local().next().unwrap();
    let mut buffer = vec![0; limits::MIN_DATAGRAM];
    let retry = Retry::new(client.version(), local, scid, TOKEN);
    let size = retry.encode(&client.id(), 0, &mut buffer);
    buffer.truncate(size.unwrap());
    buffer
}

fn client_hello(datagrams: &[Vec<u8>], dcid: &Cid) -> Vec<u8> {
    let initials: Vec<_> = datagrams
        .iter()
        .flat_map(|datagram| open_initials(datagram, dcid, Side::Client))
        .collect();
    assert!(datagrams.iter().all(|datagram| datagram.len() == 1200));
    assert!(initials.iter().all(|initial| initial.dcid == *dcid));
    join(&initials)
}

fn token_of(pair: &mut Pair) -> Vec<u8> {
    match pair.client.connection().header(Space::Initial) {
        Header::Long { token, .. } => token.to_vec(),
        Header::Short { .. } => panic!("an Initial has a long header"),
    }
}

/// Proves: rfc9000 17.2.5.3 hello-stays-after-retry
/// Proves: rfc9000 17.2.5.2 one-retry-per-attempt
/// Proves: rfc9000 8.1.2 retry-token-is-repeated
/// Proves: security 6 hellos-are-equal-after-retry
#[test]
fn a_retry_is_answered_with_its_token_and_the_same_client_hello() {
    let mut pair = pair();
    let original = pair.client.connection().id();
    let before = client_hello(&pair.client.transmit(pair.now), &original);
    let scid = Cid::from(*b"retry id");
    let mut datagram = retry(&mut pair, scid);
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    let flight = pair.client.transmit(pair.now);
    assert_eq!(flight.len(), 2, "at once, not after a PTO");
    assert_eq!(client_hello(&flight, &scid), before);
    assert_eq!(token_of(&mut pair), TOKEN);
    assert!(
        flight
            .iter()
            .all(|datagram| { datagram.windows(TOKEN.len()).any(|bytes| bytes == TOKEN) })
    );
    // A client follows at most one Retry.
    let mut second = retry(&mut pair, Cid::from(*b"other id"));
    pair.client.receive(pair.now, server_address(), &mut second);
    assert_eq!(*pair.client.connection().cids.peer.active(), scid);
    assert!(pair.client.transmit(pair.now).is_empty());
}

/// Proves: rfc9000 17.2.5.2 forged-retry-is-dropped
/// Proves: rfc9000 17.2.5.1 retry-changes-the-id
/// Proves: security 6 forged-retry-is-no-weapon
/// Proves: rfc9000 17.2.5.1 retry-with-the-same-id-is-dropped
#[test]
fn a_retry_that_is_not_genuine_is_dropped() {
    let mut pair = pair();
    pair.client.transmit(pair.now);
    let original = pair.client.connection().id();
    let mut forged = retry(&mut pair, Cid::from(*b"retry id"));
    *forged.last_mut().unwrap() ^= 1;
    // Its source id must differ from the one that the client chose.
    let same = retry(&mut pair, original);
    for mut datagram in [forged, same] {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
        assert!(pair.client.transmit(pair.now).is_empty());
        assert!(token_of(&mut pair).is_empty());
    }
}

/// Proves: rfc9000 17.2.5.2 one-retry-per-attempt
/// Proves: security 6 forged-retry-is-no-weapon
#[test]
fn a_retry_after_the_servers_first_initial_is_dropped() {
    let mut pair = pair();
    for mut datagram in pair.client.transmit(pair.now) {
        pair.server
            .receive(pair.now, super::client_address(), &mut datagram);
    }
    let mut flight = pair.server.transmit(pair.now).into_iter();
    let mut first = flight.next().unwrap();
    pair.client.receive(pair.now, server_address(), &mut first);
    let mut late = retry(&mut pair, Cid::from(*b"retry id"));
    pair.client.receive(pair.now, server_address(), &mut late);
    assert!(token_of(&mut pair).is_empty());
    for mut datagram in flight {
        pair.client
            .receive(pair.now, server_address(), &mut datagram);
    }
    assert!(pair.client.connection().handshake().is_some());
}

/// Proves: rfc9000 7.3 ids-are-confirmed
/// Proves: rfc9000 7.3 missing-id-parameters-close
#[test]
fn both_ends_must_have_seen_the_retry() {
    let mut pair = pair();
    pair.client.transmit(pair.now);
    let original = pair.client.connection().id();
    let scid = Cid::from(*b"retry id");
    let mut datagram = retry(&mut pair, scid);
    pair.client
        .receive(pair.now, server_address(), &mut datagram);
    let params = |retry_scid| Params {
        original_dcid: Some(original),
        initial_scid: Some(scid),
        retry_scid,
        ..Params::default()
    };
    let client = pair.client.connection();
    let followed = client.opening.retried().map(|retried| retried.scid);
    let check = |params| client.cids.check(client.side, &params, followed);
    assert_eq!(check(params(Some(scid))), Ok(()));
    for wrong in [None, Some(original)] {
        let error = check(params(wrong)).unwrap_err();
        assert_eq!(error.code(), Code::TRANSPORT_PARAMETER_ERROR);
    }
    // An attacker sends a Retry that the server knows nothing of.
    pair.run_until_closed();
    let closed = pair.client.close_reason();
    assert!(
        matches!(
            closed,
            Some(ConnectionError::Transport {
                code: Code::TRANSPORT_PARAMETER_ERROR,
                ..
            })
        ),
        "{closed:?}"
    );
}

/// A Retry that leaves no room for the ClientHello only allows giving up.
#[test]
fn a_retry_token_that_fills_a_datagram_breaks_nothing() {
    for len in [1000, 1100, 1150] {
        let mut pair = pair();
        pair.client.transmit(pair.now);
        let client = pair.client.connection();
        let local = client.cids().local().next().unwrap();
        let token = vec![7; len];
        let mut buffer = vec![0; 2 * limits::MIN_DATAGRAM];
        let retry = Retry::new(Version::V1, local, Cid::from(*b"retry id"), &token);
        let size = retry.encode(&client.id(), 0, &mut buffer).unwrap();
        buffer.truncate(size);
        pair.client.receive(pair.now, server_address(), &mut buffer);
        for _ in 0..100 {
            let flight = pair.client.transmit(pair.now);
            assert!(flight.len() <= 100 && flight.iter().all(|datagram| datagram.len() == 1200));
            let Some(at) = pair.client.connection().next_timeout() else {
                break;
            };
            pair.now = pair.now.max(at);
            pair.client.connection().on_timeout(pair.now);
            if !pair.client.endpoint_keeps() {
                break;
            }
        }
        assert_eq!(
            pair.client.close_reason(),
            Some(ConnectionError::HandshakeTimedOut)
        );
    }
}

/// Proves: rfc9000 17.2.5 unused-bits-of-retry-are-ignored
#[test]
fn the_unused_bits_of_a_retry_mean_nothing() {
    for unused in 0..16 {
        let mut pair = pair();
        pair.client.transmit(pair.now);
        let client = pair.client.connection();
        let local = client.cids().local().next().unwrap();
        let mut buffer = vec![0; limits::MIN_DATAGRAM];
        let retry = Retry::new(Version::V1, local, Cid::from(*b"retry id"), TOKEN);
        let size = retry.encode(&client.id(), unused, &mut buffer);
        buffer.truncate(size.unwrap());
        pair.client.receive(pair.now, server_address(), &mut buffer);
        assert_eq!(token_of(&mut pair), TOKEN);
    }
}

/// Proves: rfc9000 17.2.5.2 empty-retry-token-is-dropped
/// Proves: security 6 forged-retry-is-no-weapon
#[test]
fn a_retry_without_a_token_is_dropped() {
    let mut pair = pair();
    pair.client.transmit(pair.now);
    let client = pair.client.connection();
    let local = client.cids().local().next().unwrap();
    let mut buffer = vec![0; limits::MIN_DATAGRAM];
    let retry = Retry::new(Version::V1, local, Cid::from(*b"retry id"), &[]);
    let size = retry.encode(&client.id(), 0, &mut buffer);
    buffer.truncate(size.unwrap());
    pair.client.receive(pair.now, server_address(), &mut buffer);
    assert!(pair.client.transmit(pair.now).is_empty());
    assert_ne!(
        *pair.client.connection().cids.peer.active(),
        Cid::from(*b"retry id")
    );
}

#[test]
fn what_only_the_opening_needs_goes_with_it() {
    let mut pair = super::forged::pair();
    assert!(!pair.client.connection().opening.is_over());
    pair.run();
    assert!(pair.client.connection().opening.is_over());
    assert!(pair.server.connection().opening.is_over());
}
