//! RFC 9000 §9: connections that move.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

use hybriq::{ConnectionError, TransportConfig, error::MigrateError, tls::Side};
use hybriq_proto::endpoint::Setup;
use hybriq_sim::{Answer, Ask, Fetch, Network, SERVER_ADDRESS, Serve, World, ms};

use crate::{
    duo::{client, early_pair, server},
    pathtap::{PathTap, Sighting},
};

const LIMIT: Duration = Duration::from_secs(120);

const PREFERRED: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1), 443);

fn elsewhere() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], 40_000))
}

/// A download from this server, the handshake confirmed.
fn download(network: Network, (client, server): (&Setup, &Setup), bytes: usize) -> World {
    let mut world = World::new(network.delay(ms(10)), server.clone());
    world.bind_server(PREFERRED.into());
    world
        .server_mut()
        .on_incoming(move |_| Answer::Accept(None, Box::new(Serve::bytes(bytes))));
    world.connect(client, Fetch::bytes(bytes));
    let confirmed = |world: &World| world.client(0).confirmed_at.is_some();
    assert!(world.run_until(LIMIT, confirmed));
    world
}

/// A download from a server that would rather be elsewhere.
fn from_preferred(network: Network, during: impl FnOnce(&mut World)) -> Vec<Sighting> {
    let (tap, config) = PathTap::new();
    let preferring = config.clone().preferred_address(Some(PREFERRED), None);
    let setups = (&client(config), &server(preferring));
    let mut world = download(network, setups, 1 << 20);
    during(&mut world);
    world.run(LIMIT);
    assert!(world.client(0).done_at.is_some());
    tap.sightings(&world)
}

fn at_preferred(seen: &[Sighting], by: Side) -> Vec<&Sighting> {
    let there = seen.iter();
    there
        .filter(|it| it.by == by && it.server == PREFERRED.into())
        .collect()
}

/// Proves: rfc9000 9.6.2 preferred-address-is-validated-first
/// Proves: rfc9000 9.6.2 server-stays-until-the-client-moves
/// Proves: rfc9000 9.6.3 client-moves-to-preferred-address
#[test]
fn nothing_but_probes_goes_to_a_preferred_address_before_it_answered() {
    let seen = from_preferred(Network::new(1), |_| {});
    let by_client = at_preferred(&seen, Side::Client);
    let by_server = at_preferred(&seen, Side::Server);
    let challenge = by_client[0].challenge().unwrap();
    let answered = by_server
        .iter()
        .find(|it| it.response() == Some(challenge))
        .unwrap();
    let moved = by_client.iter().find(|it| !it.is_probing()).unwrap();
    assert_eq!(moved.at, answered.at + ms(10), "at once");
    let first = by_server.iter().find(|it| !it.is_probing()).unwrap();
    assert!(first.at >= moved.at + ms(10), "the server comes after it");
}

/// Proves: rfc9000 21.5.3 preferred-address-gets-probes-only
/// Proves: rfc9000 9.6.1 preferred-address-failing-stays
/// Proves: rfc9000 9.6.2 preferred-address-is-validated-first
#[test]
fn a_preferred_address_that_does_not_answer_gets_probes_only() {
    let victim = SocketAddr::from(PREFERRED);
    let network = Network::new(1)
        .bandwidth(2_000_000, 50_000)
        .drop_if(move |datagram, _| datagram.destination == victim);
    let seen = from_preferred(network, |_| {});
    let by_client = at_preferred(&seen, Side::Client);
    assert!(by_client.len() > 1);
    assert!(by_client.iter().all(|it| it.is_probing()));
    assert!(at_preferred(&seen, Side::Server).is_empty());
    let last = by_client.last().unwrap().at;
    let after = |it: &&Sighting| it.at > last && it.server == SERVER_ADDRESS;
    assert!(seen.iter().filter(after).count() > 10);
}

/// Proves: rfc9000 9.6.2 preferred-address-is-for-this-connection
#[test]
fn a_preferred_address_is_forgotten_with_its_connection() {
    let preferring = TransportConfig::new().preferred_address(Some(PREFERRED), None);
    let (client, server) = early_pair(TransportConfig::new(), preferring);
    let mut world = World::new(Network::new(1).delay(ms(10)), server);
    world.bind_server(PREFERRED.into());
    world.connect(&client, Ask::streams(1, 200_000));
    world.run(LIMIT);
    let there = |record: &&hybriq_sim::Record| record.server == PREFERRED.into();
    assert!(world.trace().sent(Side::Server).any(|it| there(&it)));
    for early in [true, false] {
        world.forget_trace();
        let again = Ask::streams(1, 20_000);
        let again = if early { again.early() } else { again };
        let index = world.connect(&client, again);
        world.run(LIMIT);
        let confirmed = world.client(index).confirmed_at.unwrap();
        let first = world.trace().sent(Side::Server).find(there);
        assert!(first.is_none_or(|record| record.at >= confirmed));
    }
}

/// Proves: rfc9000 9.6.3 client-moving-meanwhile-is-validated
#[test]
fn a_client_that_comes_to_the_preferred_address_from_elsewhere_is_challenged_there() {
    let seen = from_preferred(Network::new(1).bandwidth(10_000_000, 50_000), |world| {
        let local = world.bind_client(0, elsewhere());
        let mut outcome = world.migrate(0, local);
        while outcome == Err(MigrateError::NoConnectionId) {
            world.run_for(ms(1));
            outcome = world.migrate(0, local);
        }
        assert_eq!(outcome, Ok(()));
    });
    let challenge = seen
        .iter()
        .filter(|it| it.by == Side::Server && it.client == elsewhere())
        .find_map(Sighting::challenge)
        .unwrap();
    let answer = |it: &&Sighting| it.by == Side::Client && it.response() == Some(challenge);
    assert!(seen.iter().any(|it| answer(&it)));
    let last = seen.iter().rfind(|it| it.by == Side::Client).unwrap();
    assert_eq!(
        (last.client, last.server),
        (elsewhere(), PREFERRED.into()),
        "and both are where they want to be"
    );
}

/// Proves: rfc9000 9 disabled-migration-is-no-reset
#[test]
fn who_moves_though_it_must_not_is_not_reset() {
    let staying = TransportConfig::new()
        .without_migration()
        .idle_timeout(Some(ms(5000)));
    let setups = (&client(TransportConfig::new()), &server(staying));
    let network = Network::new(1).bandwidth(10_000_000, 50_000);
    let mut world = download(network, setups, 10 << 20);
    world.rebind(0, elsewhere());
    world.run(LIMIT);
    assert_eq!(world.server().stats().stateless_resets, 0);
    let answers = world.trace().sent(Side::Client);
    assert_eq!(answers.filter(|it| it.client == elsewhere()).count(), 0);
    for peer in [world.client(0), world.accepted(0)] {
        assert_eq!(peer.close_reason(), Some(&ConnectionError::TimedOut));
    }
}

/// Proves: rfc9000 9 new-address-is-validated
/// Proves: rfc9000 9.1 probing-does-not-migrate
#[test]
fn a_client_that_moves_is_followed_by_its_first_packet_that_is_no_probe() {
    let (tap, config) = PathTap::new();
    let setups = (&client(config.clone()), &server(config));
    let network = Network::new(1).bandwidth(10_000_000, 50_000);
    let mut world = download(network, setups, 1 << 20);
    world.run_for(ms(50));
    let local = world.bind_client(0, elsewhere());
    assert_eq!(world.migrate(0, local), Ok(()));
    world.run(LIMIT);
    let seen = tap.sightings(&world);
    let there = |by: Side| {
        let seen = seen.iter();
        seen.filter(move |it| it.by == by && it.client == elsewhere())
    };
    let moved = there(Side::Client).find(|it| !it.is_probing()).unwrap();
    let before = there(Side::Server).filter(|it| it.at < moved.at + ms(10));
    let mut probes = 0;
    for sighting in before {
        assert!(sighting.is_probing(), "{sighting:?}");
        probes += 1;
    }
    assert!(probes > 0 && there(Side::Server).any(|it| it.challenge().is_some()));
}
