//! Validation of tokens: accepted clients, Retry packets, and refusals of invalid tokens.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq_tls::Side;

use super::{Arrival, Endpoint, Local, Routed, arrival, client_hello, server};
use crate::{
    config::AddressValidation,
    forge::{InitialFrame, open_initials, seal_packet},
    remembered::token,
    testing::{TokenKeys, pn},
    wire::{
        error::Code,
        frame::{Crypto, FrameWriter},
        limits,
        packet::{self, Cid, Decoded, Header, Kind, Version, initial_direction},
    },
};

const SECRET: [u8; 32] = [5; 32];
/// Time of day at which the virtual time begins.
const UNIX: Duration = Duration::from_secs(1_700_000_000);

struct Scene {
    endpoint: Endpoint,
    now: Instant,
    hello: Vec<u8>,
    scid: Cid,
}

/// Result of handling a datagram.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// A Retry, with its source connection id and token.
    Retry(Cid, Vec<u8>),
    /// A CONNECTION_CLOSE.
    Close(u64),
    /// Half of a ClientHello is held.
    Partial,
    Dropped,
}

impl Scene {
    fn new(policy: AddressValidation) -> Self {
        let now = Instant::now();
        let mut endpoint = server();
        endpoint.set_address_validation(TokenKeys::from_secret(SECRET), policy);
        endpoint.set_clock(now, UNIX);
        let (hello, scid) = client_hello(now);
        Self {
            endpoint,
            now,
            hello,
            scid,
        }
    }

    /// One half of the ClientHello.
    fn half(&self, number: u64, dcid: Cid, token: &[u8]) -> Vec<u8> {
        let (head, tail) = self.hello.split_at(self.hello.len() / 2);
        let (offset, data) = [(0, head), (head.len(), tail)][number as usize];
        let header = Header::Long {
            kind: Kind::Initial,
            version: Version::V1,
            dcid,
            scid: self.scid,
            token,
        };
        let keys = initial_direction(Version::V1, &dcid, Side::Client);
        let fill = |out: &mut FrameWriter<'_>| {
            out.write(&Crypto {
                offset: offset as u64,
                data,
            });
            limits::MIN_DATAGRAM
        };
        seal_packet(&header, pn(number), &keys, fill)
    }

    /// Passes half of a ClientHello to the server.
    fn offer(&mut self, from: &Arrival, dcid: Cid, token: &[u8]) -> Outcome {
        let datagram = self.half(0, dcid, token);
        self.give(from, dcid, datagram)
    }

    fn give(&mut self, from: &Arrival, dcid: Cid, mut datagram: Vec<u8>) -> Outcome {
        let partial = self.endpoint.stats().partial_hellos;
        let routed = self.endpoint.on_datagram(self.now, from, &mut datagram);
        let mut out = vec![0; 2048];
        let sent = self.endpoint.poll_transmit(self.now, &mut out);
        let held = self.endpoint.stats().partial_hellos > partial;
        match (routed, sent) {
            (Routed::Consumed, None) if held => Outcome::Partial,
            (Routed::Consumed, Some(sent)) if !held => {
                assert_eq!(sent.peer, from.peer);
                out.truncate(sent.size);
                answer(out, dcid, self.scid)
            }
            (Routed::Dropped(_), None) if !held => Outcome::Dropped,
            other => panic!("{other:?}"),
        }
    }

    /// Lets a client at this address follow a Retry. Returns its new connection id and its token.
    fn retry(&mut self, from: &Arrival) -> (Cid, Vec<u8>) {
        match self.offer(from, first_dcid(), &[]) {
            Outcome::Retry(scid, token) => (scid, token),
            other => panic!("{other:?}"),
        }
    }

    /// Sends the other half of a ClientHello.
    fn complete(&mut self, from: &Arrival, dcid: Cid, token: &[u8]) -> super::super::Incoming {
        let mut datagram = self.half(1, dcid, token);
        match self.endpoint.on_datagram(self.now, from, &mut datagram) {
            Routed::Incoming(incoming) => *incoming,
            other => panic!("{other:?}"),
        }
    }

    fn is_validated(&mut self, from: &Arrival, dcid: Cid, token: &[u8]) -> bool {
        assert_eq!(self.offer(from, dcid, token), Outcome::Partial);
        let incoming = self.complete(from, dcid, token);
        let validated = incoming.is_validated();
        self.endpoint.ignore(incoming);
        validated
    }

    /// Returns true if a client is accepted with a proof of its address, although there may be no
    /// room.
    fn gets_in(&mut self, from: &Arrival, dcid: Cid, token: &[u8]) -> bool {
        let mut head = self.half(0, dcid, token);
        let routed = self.endpoint.on_datagram(self.now, from, &mut head);
        assert!(matches!(routed, Routed::Consumed), "{routed:?}");
        let incoming = self.complete(from, dcid, token);
        let validated = incoming.is_validated();
        self.endpoint.ignore(incoming);
        validated
    }

    fn new_token(&mut self, ip: impl Into<IpAddr>) -> Vec<u8> {
        let Endpoint {
            admission, random, ..
        } = &mut self.endpoint;
        admission.at(self.now);
        let token = admission.new_token(ip.into(), Version::V1.number(), &mut **random);
        token.unwrap().to_vec()
    }
}

fn answer(mut datagram: Vec<u8>, dcid: Cid, scid: Cid) -> Outcome {
    if let [initial] = &*open_initials(&datagram, &dcid, Side::Server) {
        assert!(datagram.len() < 200, "far less than what came");
        return match &*initial.frames {
            [InitialFrame::Close(code)] => Outcome::Close(*code),
            other => panic!("{other:?}"),
        };
    }
    match packet::decode(&mut datagram, 8).unwrap().0 {
        Decoded::Retry(retry) => {
            assert!(retry.verify(&dcid));
            assert_eq!(retry.dcid, scid);
            assert_ne!(retry.scid, dcid);
            Outcome::Retry(retry.scid, retry.token.to_vec())
        }
        other => panic!("{other:?}"),
    }
}

fn first_dcid() -> Cid {
    Cid::from(*b"original")
}

fn from(ip: [u8; 4], port: u16) -> Arrival {
    Arrival {
        peer: SocketAddr::from((ip, port)),
        local: Local::default(),
        ecn: None,
    }
}

const INVALID_TOKEN: Outcome = Outcome::Close(Code::INVALID_TOKEN.0);

#[test]
fn nothing_is_held_for_a_client_that_was_sent_away() {
    let mut scene = Scene::new(AddressValidation::Always);
    for index in 0..2 * limits::PARTIAL_HELLOS as u64 {
        let dcid = Cid::from(index.to_be_bytes());
        let from = from([192, 0, 2, index as u8], 1000 + index as u16);
        let outcome = scene.offer(&from, dcid, &[]);
        assert!(matches!(outcome, Outcome::Retry(..)), "{outcome:?}");
    }
    let stats = scene.endpoint.stats();
    assert_eq!(stats.retries_sent, 2 * limits::PARTIAL_HELLOS as u64);
    assert_eq!((stats.partial_hellos, stats.waiting_incoming), (0, 0));
    assert_eq!(scene.endpoint.next_timeout(), None);
}

/// Proves: rfc9000 8.1.3 server-tries-every-token
#[test]
fn a_returned_retry_token_proves_the_address() {
    for policy in [AddressValidation::Always, AddressValidation::Adaptive] {
        let mut scene = Scene::new(AddressValidation::Always);
        let (dcid, token) = scene.retry(&arrival(1));
        scene
            .endpoint
            .admission
            .set(Box::new(TokenKeys::from_secret(SECRET)), policy);
        assert_eq!(scene.offer(&arrival(1), dcid, &token), Outcome::Partial);
        let incoming = scene.complete(&arrival(1), dcid, &token);
        assert!(incoming.is_validated());
        assert!(!incoming.may_retry(), "a client follows one Retry");
        let incoming = scene.endpoint.retry(scene.now, incoming).unwrap_err();
        let (_, connection) = scene.endpoint.accept(scene.now, *incoming, None).unwrap();
        assert!(connection.is_handshaking());
        assert_eq!(scene.endpoint.stats().addresses_validated, 1);
    }
}

/// Proves: rfc9000 8.1.2 invalid-retry-token-is-refused
/// Proves: rfc9000 8.1.4 tokens-cannot-be-forged
/// Proves: security 6 forged-tokens-are-refused
#[test]
fn a_forged_retry_token_ends_the_attempt_with_invalid_token() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, token) = scene.retry(&arrival(1));
    for bit in 0..token.len() * 8 {
        let mut forged = token.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let outcome = scene.offer(&arrival(1), dcid, &forged);
        if bit < 8 {
            assert!(
                matches!(outcome, Outcome::Retry(..)),
                "none of ours any more"
            );
        } else {
            assert_eq!(outcome, INVALID_TOKEN, "bit {bit}");
        }
    }
    assert_eq!(scene.endpoint.stats().partial_hellos, 0);
    assert!(
        scene.is_validated(&arrival(1), dcid, &token),
        "the true one"
    );
}

/// Proves: rfc9000 8.1.2 invalid-retry-token-is-refused
#[test]
fn a_retry_token_is_of_no_use_to_anybody_else() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, token) = scene.retry(&from([192, 0, 2, 1], 1));
    for elsewhere in [from([192, 0, 2, 2], 1), from([192, 0, 2, 1], 2)] {
        assert_eq!(scene.offer(&elsewhere, dcid, &token), INVALID_TOKEN);
    }
    let here = from([192, 0, 2, 1], 1);
    assert_eq!(scene.offer(&here, first_dcid(), &token), INVALID_TOKEN);
    assert_eq!(scene.endpoint.stats().tokens_rejected, 3);
    assert!(scene.is_validated(&here, dcid, &token));
}

/// Proves: rfc9000 8.1.4 replay-is-limited
#[test]
fn tokens_expire() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, token) = scene.retry(&arrival(1));
    scene.now += Duration::from_secs(limits::RETRY_TOKEN_LIFETIME);
    assert!(scene.is_validated(&arrival(1), dcid, &token));
    scene.now += Duration::from_secs(1);
    assert_eq!(scene.offer(&arrival(1), dcid, &token), INVALID_TOKEN);

    let token = scene.new_token([192, 0, 2, 1]);
    let later = scene.new_token([192, 0, 2, 1]);
    scene.now += Duration::from_secs(limits::NEW_TOKEN_LIFETIME);
    assert!(scene.is_validated(&arrival(1), first_dcid(), &token));
    scene.now += Duration::from_secs(1);
    let outcome = scene.offer(&arrival(1), first_dcid(), &later);
    assert!(matches!(outcome, Outcome::Retry(..)), "{outcome:?}");
}

#[test]
fn clocks_may_differ_by_seconds() {
    let mut here = Scene::new(AddressValidation::Always);
    let mut there = Scene::new(AddressValidation::Always);
    let skew = Duration::from_secs(limits::CLOCK_SKEW);
    there.endpoint.set_clock(there.now, UNIX + skew);
    let (dcid, token) = there.retry(&arrival(1));
    assert!(here.is_validated(&arrival(1), dcid, &token));
    there
        .endpoint
        .set_clock(there.now, UNIX + skew + Duration::from_secs(1));
    let (dcid, token) = there.retry(&arrival(1));
    assert_eq!(here.offer(&arrival(1), dcid, &token), INVALID_TOKEN);
}

#[test]
fn a_fleet_shares_and_rotates_its_keys() {
    let mut here = Scene::new(AddressValidation::Always);
    let mut there = Scene::new(AddressValidation::Always);
    let keys = TokenKeys::from_secret([6; 32]);
    there
        .endpoint
        .set_address_validation(keys.clone(), AddressValidation::Always);
    let (dcid, token) = here.retry(&arrival(1));
    assert_eq!(there.offer(&arrival(1), dcid, &token), INVALID_TOKEN);
    keys.also_accept(SECRET);
    assert!(there.is_validated(&arrival(1), dcid, &token));
    // Clones have the same keys.
    keys.clone().rotate_to(SECRET);
    let (dcid, token) = there.retry(&arrival(2));
    assert!(here.is_validated(&arrival(2), dcid, &token));
}

/// The server cannot even know that the token was damaged on the way: the packet is not authentic.
#[test]
fn a_packet_that_was_damaged_is_not_held_against_the_client() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, token) = scene.retry(&arrival(1));
    let datagram = scene.half(0, dcid, &token);
    let start = datagram
        .windows(token.len())
        .position(|bytes| bytes == token)
        .unwrap();
    for at in 1..token.len() {
        let mut damaged = datagram.clone();
        damaged[start + at] ^= 1;
        assert_eq!(scene.give(&arrival(1), dcid, damaged), Outcome::Dropped);
    }
    assert!(scene.is_validated(&arrival(1), dcid, &token));
}

/// Proves: rfc9000 8.1.4 replay-is-limited
/// Proves: security 6 tokens-are-spent-once
#[test]
fn a_retry_token_begins_one_connection_and_proves_nothing_afterwards() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, token) = scene.retry(&arrival(1));
    // Until it is accepted, the client may have to send it again.
    for _ in 0..2 {
        assert!(scene.is_validated(&arrival(1), dcid, &token));
    }
    assert_eq!(scene.offer(&arrival(1), dcid, &token), Outcome::Partial);
    let incoming = scene.complete(&arrival(1), dcid, &token);
    let (slot, mut connection) = scene.endpoint.accept(scene.now, incoming, None).unwrap();
    assert_eq!(scene.endpoint.stats().handshaking, 1);

    // While the connection exists, a copy leads to it.
    let mut copy = scene.half(0, dcid, &token);
    let routed = scene
        .endpoint
        .on_datagram(scene.now, &arrival(1), &mut copy);
    assert!(matches!(routed, Routed::Connection(it, _) if it == slot));

    connection.close(scene.now, 0, Bytes::new());
    while scene.endpoint.service(slot, &mut connection) {
        scene.now = connection.next_timeout().unwrap().max(scene.now);
        connection.on_timeout(scene.now);
    }
    assert_eq!(scene.endpoint.stats().handshaking, 0);
    assert!(!scene.is_validated(&arrival(1), dcid, &token));
    assert_eq!(scene.endpoint.stats().tokens_replayed, 1);
}

/// Proves: rfc9000 8.1.3 server-tries-every-token
#[test]
fn a_new_token_proves_an_ip_address_from_any_port() {
    for policy in [AddressValidation::Always, AddressValidation::Never] {
        let mut scene = Scene::new(policy);
        let token = scene.new_token([192, 0, 2, 1]);
        let here = from([192, 0, 2, 1], 4242);
        assert_eq!(scene.offer(&here, first_dcid(), &token), Outcome::Partial);
        let incoming = scene.complete(&here, first_dcid(), &token);
        assert!(incoming.is_validated());
        assert!(incoming.may_retry(), "the application may insist");
        scene.endpoint.retry(scene.now, incoming).unwrap();
        assert_eq!(scene.endpoint.stats().retries_sent, 1);
    }
}

/// Proves: rfc9000 8.1.3 unusable-new-token-is-as-none
/// Proves: rfc9000 8.1.4 new-token-knows-the-address
/// Proves: rfc9000 8.1.4 replay-is-limited
#[test]
fn a_new_token_that_is_not_good_is_as_if_there_was_none() {
    let mut scene = Scene::new(AddressValidation::Never);
    let mut attempt = 0_u64;
    let mut is_validated = |scene: &mut Scene, from: &Arrival, token: &[u8]| {
        attempt += 1;
        scene.is_validated(from, Cid::from(attempt.to_be_bytes()), token)
    };
    let token = scene.new_token([192, 0, 2, 1]);
    let elsewhere = from([192, 0, 2, 7], 1);
    assert!(!is_validated(&mut scene, &elsewhere, &token));
    for bit in 0..token.len() * 8 {
        let mut forged = token.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_validated(&mut scene, &arrival(1), &forged), "bit {bit}");
    }
    let foreign = b"a token of a server with another mind, and as long as it may be";
    assert!(!is_validated(&mut scene, &arrival(1), foreign));
    assert!(is_validated(&mut scene, &arrival(1), &token));
    // Once only.
    assert!(!is_validated(&mut scene, &arrival(1), &token));
    assert!(!is_validated(&mut scene, &arrival(2), &token));
    assert_eq!(scene.endpoint.stats().tokens_replayed, 2);
}

/// Proves: rfc9000 8.1.3 new-tokens-are-unique
#[test]
fn no_two_tokens_have_anything_in_common_that_differs_from_others() {
    let mut scene = Scene::new(AddressValidation::Always);
    let one = scene.new_token([192, 0, 2, 1]);
    let other = scene.new_token([192, 0, 2, 1]);
    let elsewhere = scene.new_token([198, 51, 100, 9]);
    let common = 5;
    for (a, b) in [(&one, &other), (&one, &elsewhere)] {
        assert_eq!(a[..common], b[..common], "kind and key");
        let same = a.iter().zip(b).skip(common).filter(|(a, b)| a == b);
        assert!(same.count() < 5, "{a:?} {b:?}");
    }
}

/// Proves: rfc9000 17.2.5.1 one-retry-per-datagram
#[test]
fn a_datagram_of_many_initials_is_answered_by_one_retry() {
    let mut scene = Scene::new(AddressValidation::Always);
    let mut datagram = scene.half(0, first_dcid(), &[]);
    datagram.extend(scene.half(1, first_dcid(), &[]));
    let outcome = scene.give(&arrival(1), first_dcid(), datagram);
    assert!(matches!(outcome, Outcome::Retry(..)), "{outcome:?}");
    assert_eq!(scene.endpoint.stats().retries_sent, 1);
    let mut out = vec![0; 2048];
    assert_eq!(scene.endpoint.poll_transmit(scene.now, &mut out), None);
}

/// Proves: rfc9000 8.1.1 tokens-are-told-apart
#[test]
fn no_token_passes_for_one_of_the_other_kind() {
    let mut scene = Scene::new(AddressValidation::Always);
    let (dcid, retry) = scene.retry(&arrival(1));
    let new = scene.new_token([192, 0, 2, 1]);
    assert_eq!(token::Kind::of(&retry), Some(token::Kind::Retry));
    let (mut as_new, mut as_retry) = (retry.clone(), new.clone());
    (as_new[0], as_retry[0]) = (new[0], retry[0]);
    assert_eq!(scene.offer(&arrival(1), dcid, &as_retry), INVALID_TOKEN);
    let outcome = scene.offer(&arrival(1), dcid, &as_new);
    assert!(matches!(outcome, Outcome::Retry(..)), "{outcome:?}");
}

/// Proves: rfc9000 17.2.5.2 one-retry-per-attempt
#[test]
fn a_client_that_heard_of_us_is_not_sent_away() {
    let mut scene = Scene::new(AddressValidation::Never);
    assert_eq!(
        scene.offer(&arrival(1), first_dcid(), &[]),
        Outcome::Partial
    );
    let due = scene.endpoint.next_timeout().unwrap();
    let mut out = vec![0; 2048];
    assert!(scene.endpoint.poll_transmit(due, &mut out).is_some());
    let incoming = scene.complete(&arrival(1), first_dcid(), &[]);
    assert!(!incoming.may_retry());
    let incoming = scene.endpoint.retry(scene.now, incoming).unwrap_err();
    assert_eq!(scene.endpoint.stats().waiting_incoming, 1);
    scene.endpoint.ignore(*incoming);
}

#[test]
fn retry_starts_when_too_many_are_unfinished() {
    let mut scene = Scene::new(AddressValidation::Adaptive);
    let mut held = 0;
    for index in 0..2 * limits::RETRY_AT as u64 {
        let dcid = Cid::from(index.to_be_bytes());
        match scene.offer(&arrival(1), dcid, &[]) {
            Outcome::Partial => held += 1,
            Outcome::Retry(..) => assert_eq!(held, limits::RETRY_AT),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(held, limits::RETRY_AT);
    assert_eq!(scene.endpoint.stats().retrying, 1);
    // All of it is forgotten, including the reason.
    scene.now += 2 * limits::PARTIAL_HELLO_LIFETIME;
    scene.endpoint.on_timeout(scene.now);
    assert_eq!(
        scene.offer(&arrival(1), first_dcid(), &[]),
        Outcome::Partial
    );
    assert_eq!(scene.endpoint.stats().retrying, 0);
}

#[test]
fn retry_starts_when_handshakes_take_all_the_time() {
    let mut scene = Scene::new(AddressValidation::Adaptive);
    for _ in 0..50 {
        scene.now += Duration::from_millis(100);
        scene
            .endpoint
            .on_handshake_cost(scene.now, Duration::from_millis(90));
    }
    let (dcid, token) = scene.retry(&arrival(1));
    assert!(scene.is_validated(&arrival(1), dcid, &token));
}

/// An endpoint without keys and without its own policy trusts no token and sends no Retry.
#[test]
fn an_endpoint_without_keys_makes_its_own_for_the_application() {
    let mut scene = Scene::new(AddressValidation::Never);
    scene.endpoint = server();
    assert_eq!(
        scene.offer(&arrival(1), first_dcid(), &[]),
        Outcome::Partial
    );
    let incoming = scene.complete(&arrival(1), first_dcid(), &[]);
    scene.endpoint.retry(scene.now, incoming).unwrap();
    let mut out = vec![0; 2048];
    let sent = scene.endpoint.poll_transmit(scene.now, &mut out).unwrap();
    out.truncate(sent.size);
    let Outcome::Retry(dcid, token) = answer(out, first_dcid(), scene.scid) else {
        panic!("no Retry");
    };
    assert!(scene.is_validated(&arrival(1), dcid, &token));
}

/// Fills a table with clients that forge their addresses, whatever the policy for tokens is.
/// `flood` gives the endpoint one datagram from another forged client each time.
fn honest_clients_get_in(scene: &mut Scene, flood: &mut dyn FnMut(&mut Scene, u32), clients: u32) {
    for client in 0..clients {
        flood(scene, client);
    }
    // Waiting answers are sent before more datagrams arrive.
    let mut out = vec![0; 2048];
    while scene.endpoint.poll_transmit(scene.now, &mut out).is_some() {}

    // One client arrives with a token from an earlier connection.
    let with_token = arrival(60_001);
    let token = scene.new_token(with_token.peer.ip());
    assert!(scene.gets_in(&with_token, Cid::from([0xaa; 8]), &token));
    for client in 0..100 {
        flood(scene, clients + client);
    }
    while scene.endpoint.poll_transmit(scene.now, &mut out).is_some() {}

    // One arrives without a token, is asked for a proof, and gives it.
    let without_token = arrival(60_002);
    let (dcid, token) = scene.retry(&without_token);
    assert!(scene.gets_in(&without_token, dcid, &token));
}

fn forged(client: u32) -> Arrival {
    let [_, a, b, c] = client.to_be_bytes();
    Arrival {
        peer: SocketAddr::from(([10, a, b, c], 443)),
        ..arrival(1)
    }
}

fn forged_cid(client: u32) -> Cid {
    Cid::from((u64::from(client) << 20 | 1).to_be_bytes())
}

/// Sends one half of a ClientHello from a forged address.
fn half_a_hello(scene: &mut Scene, client: u32) {
    let mut datagram = scene.half(0, forged_cid(client), &[]);
    scene
        .endpoint
        .on_datagram(scene.now, &forged(client), &mut datagram);
}

#[test]
fn a_table_full_of_forged_partial_hellos_lets_honest_clients_in() {
    let mut scene = Scene::new(AddressValidation::Never);
    let most = limits::PARTIAL_HELLOS as u32;
    honest_clients_get_in(&mut scene, &mut half_a_hello, most + 50);
    let held = scene.endpoint.stats().partial_hellos;
    assert!(held <= most.into(), "{held}");
}

#[test]
fn proven_partial_hellos_outlive_any_number_of_forged_ones() {
    let mut scene = Scene::new(AddressValidation::Never);
    let client = arrival(60_001);
    let token = scene.new_token(client.peer.ip());
    let dcid = Cid::from([0xaa; 8]);
    assert_eq!(scene.offer(&client, dcid, &token), Outcome::Partial);
    for client in 0..2 * limits::PARTIAL_HELLOS as u32 {
        half_a_hello(&mut scene, client);
    }
    assert!(scene.complete(&client, dcid, &token).is_validated());
}

#[test]
fn a_backlog_full_of_forged_clients_lets_honest_clients_in() {
    let mut scene = Scene::new(AddressValidation::Never);
    scene.endpoint.set_accept_backlog(10);
    let mut waiting = Vec::new();
    let mut flood = |scene: &mut Scene, client: u32| {
        for number in 0..2 {
            let mut datagram = scene.half(number, forged_cid(client), &[]);
            let from = forged(client);
            let routed = scene.endpoint.on_datagram(scene.now, &from, &mut datagram);
            if let Routed::Incoming(incoming) = routed {
                waiting.push(incoming);
            }
        }
    };
    honest_clients_get_in(&mut scene, &mut flood, 50);
    assert_eq!(waiting.len(), 5);
    // Once they are decided on, no client has to prove its address.
    for incoming in waiting {
        scene.endpoint.ignore(*incoming);
    }
    let outcome = scene.offer(&arrival(60_003), first_dcid(), &[]);
    assert_eq!(outcome, Outcome::Partial);
}

#[test]
fn a_crowded_endpoint_asks_for_proofs_from_the_first_packet_on() {
    let mut scene = Scene::new(AddressValidation::Never);
    scene.endpoint.set_crowded(true);
    honest_clients_get_in(&mut scene, &mut half_a_hello, 100);
    assert_eq!(scene.endpoint.stats().partial_hellos, 0);
    scene.endpoint.set_crowded(false);
    let outcome = scene.offer(&arrival(60_003), first_dcid(), &[]);
    assert_eq!(outcome, Outcome::Partial);
}
