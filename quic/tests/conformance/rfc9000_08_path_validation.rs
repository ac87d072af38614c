//! RFC 9000 §8.2: whether somebody is where packets come from.

use std::{collections::HashSet, net::SocketAddr, time::Duration};

use hybriq::tls::Side;
use hybriq_proto::wire::frame::PathChallenge;
use hybriq_sim::{Ask, Network, World, ms};

use crate::{
    duo::{Duo, client, server},
    pathtap::{PathTap, Sighting},
};

fn elsewhere() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], 40_000))
}

/// An echo during which the client's address changes: what was sent, and what the server got from
/// the new address until each moment.
fn rebound() -> (Vec<Sighting>, World) {
    let (tap, config) = PathTap::new();
    let mut world = World::new(Network::new(1).delay(ms(10)), server(config.clone()));
    world.connect(&client(config), Ask::streams(1, 500_000));
    world.run_for(ms(90));
    world.rebind(0, elsewhere());
    world.run(Duration::from_secs(120));
    assert!(world.client(0).done_at.is_some());
    (tap.sightings(&world), world)
}

/// Proves: rfc9000 8.2.1 challenge-fills-its-datagram
/// Proves: rfc9000 8.2.1 challenges-are-unpredictable
/// Proves: rfc9000 9 new-address-is-validated
/// Proves: rfc9000 9.3.3 old-path-is-challenged
#[test]
fn a_new_address_is_challenged_by_full_datagrams() {
    let (seen, world) = rebound();
    let by_server = || seen.iter().filter(|it| it.by == Side::Server);
    let mut sent = 0;
    let mut data = HashSet::new();
    for sighting in by_server().filter(|it| it.client == elsewhere()) {
        if let Some(challenge) = sighting.challenge() {
            assert!(data.insert(challenge), "the same data twice");
            let arrived = world.trace().arrived(Side::Server);
            let received: usize = arrived
                .filter(|it| it.client == elsewhere() && it.at <= sighting.at)
                .map(|it| it.size)
                .sum();
            let full = sighting.datagram >= 1200;
            assert!(full || 3 * received < sent + 1200, "{sighting:?}");
        }
        sent += sighting.datagram;
    }
    assert!(!data.is_empty(), "the new address is challenged");
    let first = by_server().find(|it| it.client == elsewhere()).unwrap();
    assert!(first.challenge().is_some(), "and at once");
    let old = by_server().filter(|it| it.client != elsewhere());
    assert!(old.filter_map(Sighting::challenge).count() >= 1);
}

/// Proves: rfc9000 8.2.2 challenge-is-echoed
/// Proves: rfc9000 8.2.2 response-fills-its-datagram
/// Proves: rfc9000 8.2.2 response-takes-the-same-path
#[test]
fn each_challenge_is_answered_once_by_its_data() {
    let (seen, _) = rebound();
    let challenges = seen.iter().filter(|it| it.by == Side::Server);
    let challenges = challenges.filter(|it| it.client == elsewhere());
    for challenge in challenges.filter_map(Sighting::challenge) {
        let answers: Vec<_> = seen
            .iter()
            .filter(|it| it.by == Side::Client && it.response() == Some(challenge))
            .collect();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].client, elsewhere());
        assert!(answers[0].datagram >= 1200);
    }
}

/// Proves: rfc9000 8.2.1 small-challenges-are-taken
/// Proves: rfc9000 8.2.2 challenge-is-echoed
/// Proves: rfc9000 8.2.2 response-fills-its-datagram
#[test]
fn a_challenge_in_a_small_datagram_is_answered_in_a_full_one() {
    for from in [Side::Client, Side::Server] {
        let (tap, config) = PathTap::new();
        let (ours, theirs) = match from {
            Side::Client => (hybriq::TransportConfig::new(), config),
            Side::Server => (config, hybriq::TransportConfig::new()),
        };
        let mut duo = Duo::with(ours, theirs);
        let before = duo.world.trace().sent(from).count();
        duo.send(from, |out| assert!(out.write(&PathChallenge([7; 8]))));
        duo.assert_alive();
        assert_eq!(tap.answers(), [[7; 8]]);
        let answers = duo.world.trace().sent(from).skip(before);
        assert!(answers.take(1).all(|record| record.size >= 1200));
    }
}
