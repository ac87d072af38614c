//! Tests of tokens for the next connection (RFC 9000 §8.1.3, §19.7).

use std::sync::Arc;

use hybriq_tls::{Backend, KeyExchange};

use super::{Pair, client_address, client_setup, forged::pair, server_address};
use crate::{
    config::{AddressValidation, TransportConfig},
    endpoint::Setup,
    remembered::token::Kind,
    testing::{MemoryServers, TokenKeys, write_frames},
    wire::{
        frame::{NewToken, Owner as _},
        limits,
        packet::{Header, Space, Version},
    },
};

/// Returns a client that stores tokens, and a server that issues some.
fn keeping() -> (Pair, MemoryServers) {
    let store = MemoryServers::new();
    let mut pair = pair();
    pair.server
        .endpoint
        .set_address_validation(TokenKeys::from_secret([1; 32]), AddressValidation::Never);
    connect(&mut pair, &store);
    (pair, store)
}

fn connect(pair: &mut Pair, store: &MemoryServers) {
    let setup = Setup {
        transport: Arc::new(store.of(TransportConfig::new())),
        ..client_setup(KeyExchange::default(), Backend::Rustls)
    };
    let endpoint = &mut pair.client.endpoint;
    let started = endpoint.connect(pair.now, &setup, server_address(), "server.test");
    pair.client.connection = Some(started.unwrap());
}

fn tokens(store: &MemoryServers) -> Vec<Vec<u8>> {
    let take = |version| store.with("server.test", |record| record.take_token(version));
    let taken = Version::ALL
        .into_iter()
        .flat_map(|version| std::iter::from_fn(move || take(version)));
    taken.map(|token| token.to_vec()).collect()
}

fn initial_token(pair: &mut Pair) -> Vec<u8> {
    match pair.client.connection().header(Space::Initial) {
        Header::Long { token, .. } => token.to_vec(),
        Header::Short { .. } => panic!("an Initial has a long header"),
    }
}

#[test]
fn a_server_gives_every_client_one_token() {
    let (mut pair, store) = keeping();
    pair.run();
    let tokens = tokens(&store);
    assert_eq!(tokens.len(), 1);
    assert_eq!(Kind::of(&tokens[0]), Some(Kind::New));
    let server = pair.server.connection();
    assert!(!server.memory.tokens.wants_to_send(Space::Data));
    assert_eq!(server.needs_token(), None);
}

#[test]
fn a_server_that_was_not_asked_to_gives_none() {
    let mut pair = pair();
    let store = MemoryServers::new();
    connect(&mut pair, &store);
    pair.run();
    assert!(tokens(&store).is_empty());
}

#[test]
fn a_lost_new_token_is_sent_again() {
    let (mut pair, store) = keeping();
    while pair.server.connection.is_none() || !pair.server.connection().state.is_confirmed() {
        for mut datagram in pair.client.transmit(pair.now) {
            pair.server
                .receive(pair.now, client_address(), &mut datagram);
        }
        let answers = pair.server.transmit(pair.now);
        let confirmed = pair.server.connection().state.is_confirmed();
        for mut datagram in answers.into_iter().filter(|_| !confirmed) {
            pair.client
                .receive(pair.now, server_address(), &mut datagram);
        }
    }
    assert_eq!(tokens(&store).len(), 0, "it was in what was lost");
    assert!(
        !pair
            .server
            .connection()
            .memory
            .tokens
            .wants_to_send(Space::Data)
    );
    let server = pair.server.connection();
    pair.now = server.next_timeout().unwrap();
    server.on_timeout(pair.now);
    pair.run();
    assert_eq!(tokens(&store).len(), 1, "after one probe");
}

/// Proves: rfc9000 8.1.4 replay-is-limited
/// Proves: rfc9000 8.1.3 new-token-is-used
#[test]
fn a_token_is_spent_in_every_initial_of_the_next_connection() {
    let (mut pair, store) = keeping();
    pair.run();
    pair.server.connection = None;
    connect(&mut pair, &store);
    assert!(tokens(&store).is_empty(), "it was taken");
    let token = initial_token(&mut pair);
    assert_eq!(Kind::of(&token), Some(Kind::New));
    let flight = pair.client.transmit(pair.now);
    assert_eq!(flight.len(), 2);
    for datagram in &flight {
        assert!(datagram.windows(token.len()).any(|bytes| bytes == token));
    }
    for mut datagram in flight {
        pair.server
            .receive(pair.now, client_address(), &mut datagram);
    }
    assert!(pair.server.connection().paths.active().is_validated());
    pair.run();
    assert_eq!(tokens(&store).len(), 1, "one for the next");
}

/// Proves: rfc9000 8.1.3 retry-token-is-not-kept
/// Proves: rfc9000 8.1.3 new-token-is-used
#[test]
fn a_retry_token_takes_the_place_of_another_and_is_not_kept() {
    let (mut pair, store) = keeping();
    pair.run();
    pair.server.connection = None;
    let keys = TokenKeys::from_secret([2; 32]);
    let endpoint = &mut pair.server.endpoint;
    endpoint.set_address_validation(keys, AddressValidation::Always);
    connect(&mut pair, &store);
    let spent = initial_token(&mut pair);
    pair.step();
    pair.step();
    let token = initial_token(&mut pair);
    assert_eq!(Kind::of(&spent), Some(Kind::New));
    assert_eq!(Kind::of(&token), Some(Kind::Retry));
    pair.run();
    assert!(pair.client.connection().handshake().is_some());
    let kept = tokens(&store);
    assert_eq!(kept.len(), 1);
    assert_eq!(Kind::of(&kept[0]), Some(Kind::New));
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_token_is_spent_in_the_version_that_its_connection_spoke() {
    let (mut pair, store) = keeping();
    pair.run();
    let client = pair.client.connection();
    assert_eq!(client.original_version(), Version::V1);
    assert_eq!(client.version(), Version::V2, "the server preferred it");
    pair.server.connection = None;
    let setup = |transport: TransportConfig| Setup {
        transport: Arc::new(store.of(transport)),
        ..client_setup(KeyExchange::default(), Backend::Rustls)
    };
    let mut start = |setup: &Setup| {
        let endpoint = &mut pair.client.endpoint;
        let started = endpoint.connect(pair.now, setup, server_address(), "server.test");
        pair.client.connection = Some(started.unwrap());
        let version = pair.client.connection().original_version();
        (version, initial_token(&mut pair).is_empty())
    };
    let first = setup(TransportConfig::new().first_version(Version::V1));
    assert_eq!(start(&first), (Version::V1, true), "not with this one");
    let only = setup(TransportConfig::new().versions([Version::V1]));
    assert_eq!(start(&only), (Version::V1, true), "nor with this");
    let usual = setup(TransportConfig::new());
    assert_eq!(start(&usual), (Version::V2, false));
    pair.run();
    assert!(pair.client.connection().handshake().is_some());
    assert_eq!(pair.server.endpoint.stats().addresses_validated, 1);
}

/// Proves: rfc9000 8.1.3 token-stays-with-its-server
#[test]
fn a_token_is_for_the_server_that_gave_it() {
    let (mut pair, store) = keeping();
    pair.run();
    assert_eq!(store.with("other.test", |record| record.tokens()), 0);
    let setup = Setup {
        transport: Arc::new(store.of(TransportConfig::new())),
        ..client_setup(KeyExchange::default(), Backend::Rustls)
    };
    let endpoint = &mut pair.client.endpoint;
    let started = endpoint.connect(pair.now, &setup, server_address(), "other.test");
    pair.client.connection = Some(started.unwrap());
    assert!(initial_token(&mut pair).is_empty());
    assert_eq!(tokens(&store).len(), 1);
}

#[test]
fn a_token_that_would_crowd_out_the_client_hello_is_not_kept() {
    let (mut pair, store) = keeping();
    let now = pair.now;
    let client = pair.client.connection();
    let longest = vec![1; limits::TOKEN_LEN];
    let longer = vec![1; limits::TOKEN_LEN + 1];
    client
        .memory
        .keep_token(now, Version::V1, &NewToken { token: &longer });
    client
        .memory
        .keep_token(now, Version::V1, &NewToken { token: &longest });
    assert_eq!(tokens(&store), std::slice::from_ref(&longest));
    store.with("server.test", |record| {
        record.put_token(Version::V1, longest.into());
    });
    connect(&mut pair, &store);
    assert_eq!(initial_token(&mut pair).len(), limits::TOKEN_LEN);
    pair.run();
    assert!(pair.client.connection().handshake().is_some());
}

#[test]
fn the_fate_of_an_earlier_token_is_not_taken_for_that_of_a_later_one() {
    let (mut pair, _) = keeping();
    pair.run();
    let Pair { server, now, .. } = &mut pair;
    let ip = std::net::IpAddr::from([192, 0, 2, 77]);
    let token = || Some([7; 50].into_iter().collect());
    let mut buffer = [0; 200];
    let mut issue = |connection: &mut super::Connection| {
        connection.issue_token(ip, token());
        let mut out = crate::wire::frame::FrameWriter::new(&mut buffer);
        write_frames(&mut connection.memory.tokens, &mut out)
    };
    let connection = server.connection();
    let (first, second) = (issue(connection), issue(connection));
    connection.memory.tokens.on_lost(&first);
    assert!(
        !connection.memory.tokens.wants_to_send(Space::Data),
        "another took its place"
    );
    connection.memory.tokens.on_acked(&first);
    connection.memory.tokens.on_lost(&second);
    assert!(connection.memory.tokens.wants_to_send(Space::Data));
    connection.memory.tokens.on_acked(&second);
    assert!(!connection.memory.tokens.wants_to_send(Space::Data));
    let _ = now;
}

/// A probe repeats data in flight, including a token; otherwise nothing may be sent for a long
/// time.
#[test]
fn a_probe_carries_a_token_that_is_not_acknowledged() {
    let (mut pair, _) = keeping();
    pair.run();
    let server = pair.server.connection();
    server.issue_token([192, 0, 2, 77].into(), Some([7; 50].into_iter().collect()));
    let sent = pair.server.transmit(pair.now);
    assert_eq!(sent.len(), 1, "and lost");
    let server = pair.server.connection();
    assert!(!server.memory.tokens.wants_to_send(Space::Data));
    let ptos = server.stats().ptos;
    while server.stats().ptos == ptos {
        pair.now = server.next_timeout().unwrap();
        server.on_timeout(pair.now);
    }
    assert!(server.memory.tokens.wants_to_send(Space::Data));
}
