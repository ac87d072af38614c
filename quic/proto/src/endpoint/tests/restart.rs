//! Processes that serve one address after another.

use std::time::Duration;

use super::*;
use crate::{
    endpoint::{
        Claim, Generations, Newcomers, Place,
        route::{claims::is_first_flight, ids::Ids},
    },
    owners::cids::QuicLb,
    wire::packet::Kind,
};

const LIFETIME: Duration = Duration::from_secs(60);

fn place(generation: u8, worker: u8) -> Place {
    Place { generation, worker }
}

fn only(generation: u8) -> Generations {
    let mut only = Generations::default();
    only.insert(generation);
    only
}

/// A worker of a process that has two workers.
fn worker(index: u8, generation: u8, earlier: Generations) -> Endpoint {
    let mut endpoint = server();
    endpoint.ids = Ids::new(index, ResetKey::from_secret([1; 32]));
    let key = ResetKey::from_secret([1; 32]);
    endpoint.set_cid_generator(RandomCids::default().keyed(&key).expect("a key"));
    endpoint.set_reset_key(key);
    endpoint.set_workers(2);
    endpoint.set_generation(generation, earlier);
    endpoint
}

fn short(cid: &Cid) -> Vec<u8> {
    [&[0x41], cid.as_bytes(), &[0; 60]].concat()
}

#[test]
fn an_id_leads_to_the_worker_of_its_process() {
    let now = Instant::now();
    let mut newest = worker(0, 5, only(3));
    for (index, generation) in [(0, 3), (1, 3)] {
        let cid = worker(index, generation, Generations::default()).issue().0;
        let mut datagram = short(&cid);
        let routed = newest.on_datagram(now, &arrival(1), &mut datagram);
        assert!(
            matches!(routed, Routed::Earlier(to, _) if to == place(generation, index)),
            "{routed:?}"
        );
    }
    let cid = worker(1, 5, Generations::default()).issue().0;
    let routed = |endpoint: &mut Endpoint| {
        let mut datagram = short(&cid);
        format!(
            "{:?}",
            endpoint.on_datagram(now, &arrival(1), &mut datagram)
        )
    };
    assert!(routed(&mut newest).starts_with("Foreign(1"));
    // Packets of a process that has ended are answered.
    let lost = worker(1, 3, Generations::default()).issue().0;
    newest.forget_generation(3);
    let mut datagram = short(&lost);
    newest.on_datagram(now, &arrival(1), &mut datagram);
    assert_eq!(newest.stats().stateless_resets, 1);
}

#[test]
fn a_packet_that_may_be_a_reset_is_shown_to_earlier_processes() {
    let now = Instant::now();
    let mut newest = worker(0, 1, only(0));
    newest.set_workers(1);
    newest.set_generation(1, only(0));
    let own = newest.issue().0;
    let routed = newest
        .on_datagram(now, &arrival(1), &mut short(&own))
        .is_stray();
    assert!(routed);
    newest.forget_generation(0);
    let routed = newest
        .on_datagram(now, &arrival(1), &mut short(&own))
        .is_stray();
    assert!(!routed, "there is nobody to show it to");
}

impl Routed<'_> {
    fn is_stray(&self) -> bool {
        matches!(self, Self::Stray(_))
    }
}

/// The old process has half of one ClientHello, all of another, and half of a third that the new
/// one does not know about.
#[test]
fn clients_in_the_middle_of_a_handshake_stay_where_they_began() {
    let now = Instant::now();
    let mut old = worker(1, 0, Generations::default());
    let (bytes, scid) = client_hello(now);
    let hello = |id: u8| whole_hello(&bytes, Cid::from([id; 8]), scid);
    let [mut half, rest_of_half] = hello(1);
    let [mut first, mut second] = hello(2);
    assert!(matches!(
        old.on_datagram(now, &arrival(1), &mut half),
        Routed::Consumed
    ));
    old.on_datagram(now, &arrival(2), &mut first);
    let waiting = old.on_datagram(now, &arrival(2), &mut second);
    assert!(matches!(waiting, Routed::Incoming(_)));
    assert_eq!(old.undecided(), 2);

    let claims = old.claims();
    assert_eq!(claims.len(), 4, "two ids of each: {claims:?}");
    let mut new = worker(0, 1, only(0));
    for claim in claims {
        new.add_claim(claim, place(0, 1), now + LIFETIME);
    }
    let to_old = |new: &mut Endpoint, now, port, mut datagram: Vec<u8>| {
        let routed = new.on_datagram(now, &arrival(port), &mut datagram);
        matches!(routed, Routed::Earlier(to, _) if to == place(0, 1))
    };
    assert!(to_old(&mut new, now, 1, rest_of_half.clone()));
    let early = zero_rtt(Cid::from([2; 8]), 100);
    assert!(to_old(&mut new, now, 2, early));
    // The same id from another client, and another id from the same client.
    assert!(!to_old(&mut new, now, 9, rest_of_half.clone()));
    let [other, _] = hello(3);
    assert!(!to_old(&mut new, now, 1, other));
    assert_eq!(new.earlier_claims(now).count(), 4);

    // The old process continues with the first client, and accepts no new one.
    old.set_newcomers(Newcomers::Ignored);
    let mut rest = rest_of_half.clone();
    let whole = old.on_datagram(now, &arrival(1), &mut rest);
    assert!(matches!(whole, Routed::Incoming(_)), "{whole:?}");
    let [mut late, _] = hello(4);
    let dropped = old.on_datagram(now, &arrival(4), &mut late);
    assert!(matches!(dropped, Routed::Dropped(_)), "{dropped:?}");

    // Claims expire, and what they claimed is free again.
    let later = now + LIFETIME;
    assert!(!to_old(&mut new, later, 1, rest_of_half));
    assert_eq!(new.earlier_claims(now).count(), 0);
}

#[test]
fn the_claims_of_a_process_end_with_it() {
    let now = Instant::now();
    let mut new = worker(0, 1, only(0));
    let claim = Claim {
        dcid: Cid::from([1; 8]),
        peer: None,
    };
    new.add_claim(claim, place(0, 1), now + LIFETIME);
    let (bytes, scid) = client_hello(now);
    let [mut first, _] = whole_hello(&bytes, claim.dcid, scid);
    let mut again = first.clone();
    let routed = new.on_datagram(now, &arrival(1), &mut again);
    assert!(matches!(routed, Routed::Earlier(..)), "{routed:?}");
    new.forget_generation(0);
    let routed = new.on_datagram(now, &arrival(1), &mut first);
    assert!(matches!(routed, Routed::Consumed), "{routed:?}");
    assert_eq!(new.stats().partial_hellos, 1);
}

/// A client that chooses an id at random does not belong to an earlier process just because the id
/// matches.
#[test]
fn new_clients_never_go_to_earlier_processes() {
    let now = Instant::now();
    let old = || worker(0, 0, Generations::default()).issue().0;
    let mut new = worker(0, 1, only(0));
    let (bytes, scid) = client_hello(now);
    for _ in 0..32 {
        let [mut first, _] = whole_hello(&bytes, old(), scid);
        let routed = new.on_datagram(now, &arrival(1), &mut first);
        assert!(matches!(routed, Routed::Consumed), "{routed:?}");
    }
    assert_eq!(new.stats().partial_hellos, 32);
    assert!(!is_first_flight(Some(Kind::Handshake)));
}

#[test]
fn generations_are_used_again_but_never_twice_at_once() {
    assert_eq!(Generations::possible(1), 32);
    assert_eq!(Generations::possible(8), 32);
    assert_eq!(Generations::possible(9), 28);
    assert_eq!(Generations::possible(128), 2);
    assert_eq!(Generations::possible(129), 1);
    let mut living = only(0);
    for expected in 1..32 {
        let next = living.next_after(expected - 1, 4).expect("a number");
        assert_eq!(next, expected);
        living.insert(next);
    }
    assert_eq!(living.next_after(31, 4), None);
    living.remove(7);
    assert_eq!(living.next_after(31, 4), Some(7));
    assert_eq!(only(1).next_after(1, 128), Some(0));
    assert_eq!(only(0).next_after(0, 200), None);
    // Numbers that are too large are in no set.
    assert!(only(32).is_empty() && !living.contains(200));
}

/// With the same key, a process finds the worker in unencrypted ids of another process.
#[test]
fn unencrypted_ids_for_balancers_survive_a_restart() {
    let key = ResetKey::from_secret([1; 32]);
    let process = || {
        let plain = QuicLb::plaintext(0, &[1, 2], 6, &mut SystemRandom::new()).unwrap();
        plain.keyed(&key).expect("a key")
    };
    let (first, second) = (process(), process());
    for number in [0, 1, 17, 255] {
        let mut cid = vec![9; first.len()];
        first.generate(number, &mut cid);
        assert_eq!(second.worker(&cid), Some(number));
    }
}
