//! 0-RTT over the simulated network (RFC 9001 §4.6, RFC 9000 §7.4.1).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hybriq::{
    Group, KeyExchange,
    fleet::{AddressValidation, Tickets, TokenKeys},
    tls::{EarlyData, Side},
    transport::Version,
};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    owners::streams::StreamEvent,
};
use hybriq_sim::{
    Answer, App, Ask, Datagram, DelayNth, DropNth, Echo, Hop, Network, Node, PacketKind, Progress,
    Record, World, adversary::Swap, ms,
};

use crate::support::{
    DELAY, LIMIT, RTT, early_client, early_pair, early_server, early_server_of, plain, server_with,
    transport,
};

/// The machine of the client that comes with a ticket.
const SECOND: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    50_000,
);

/// A node that only what one client sends and receives passes: places are counted from its first
/// datagram on.
struct Of<N>(SocketAddr, N);

impl<N: Node> Node for Of<N> {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        if datagram.source == self.0 || datagram.destination == self.0 {
            self.1.on_datagram(datagram, hop);
        } else {
            hop.forward(datagram);
        }
    }

    fn next_timeout(&self, toward: Side) -> Option<Duration> {
        self.1.next_timeout(toward)
    }

    fn on_timeout(&mut self, hop: &mut Hop<'_>) {
        self.1.on_timeout(hop);
    }
}

/// Sends what a client says within its first moment again, later, from somewhere else.
struct Record0Rtt {
    since: Option<Duration>,
    again: Duration,
    source: SocketAddr,
}

impl Node for Record0Rtt {
    fn on_datagram(&mut self, datagram: Datagram, hop: &mut Hop<'_>) {
        let since = *self.since.get_or_insert(hop.now);
        if hop.now == since {
            let mut copy = datagram.clone();
            copy.source = self.source;
            hop.forward_after(self.again, copy);
        }
        hop.forward(datagram);
    }
}

/// Echoes, and notes when the peer opened streams.
struct Noting {
    echo: Echo,
    opened: Arc<Mutex<Vec<usize>>>,
    number: usize,
}

impl App for Noting {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        if let Event::Stream(StreamEvent::Opened(_)) = event {
            self.opened.lock().unwrap().push(self.number);
        }
        self.echo.on_event(now, event, connection);
    }

    fn progress(&self) -> Progress {
        self.echo.progress()
    }
}

/// A world whose first client has been to the server once, and is gone.
fn visited(network: Network, client: &Setup, server: &Setup) -> World {
    let mut world = World::new(network, server.clone());
    world.connect(client, Ask::one_byte());
    world.run(LIMIT);
    assert_eq!(world.client(0).progress(), Progress::Done);
    world
}

/// The server goes by another setup from now on.
fn change(world: &mut World, server: &Setup) {
    let server = server.clone();
    let policy = move |_: &_| Answer::Accept(Some(server.clone()), Box::new(Echo::new()));
    world.server_mut().on_incoming(policy);
}

/// A client that comes again and asks early.
fn come_again(world: &mut World, client: &Setup, app: Ask) {
    world.connect(client, app.early());
    world.run(LIMIT);
    let again = world.client(1);
    assert_eq!(
        again.progress(),
        Progress::Done,
        "{:?}",
        again.close_reason()
    );
}

/// Returns the time from a client's first datagram to its answer.
fn answered_after(world: &World, index: usize) -> Duration {
    let client = world.client(index);
    let done_at = client.done_at.expect("the client got its answer");
    done_at.saturating_sub(client.began_at)
}

fn early_data(world: &World, index: usize) -> [EarlyData; 2] {
    let client = world.client(index).handshake.as_ref().unwrap();
    let server = world.accepted(index).handshake.as_ref().unwrap();
    [client.early_data, server.early_data]
}

/// Returns the datagrams of the second client, in order.
fn second_sent(world: &World) -> impl Iterator<Item = &Record> {
    let sent = world.trace().sent(Side::Server);
    sent.filter(|record| record.client == SECOND)
}

fn kinds(record: &Record) -> Vec<PacketKind> {
    record.packets.iter().map(|packet| packet.kind).collect()
}

/// Proves: rfc9001 8.3 no-end-of-early-data
#[test]
fn a_request_in_0_rtt_is_answered_after_one_round_trip() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    come_again(&mut world, &client, Ask::one_byte());
    assert_eq!(early_data(&world, 0), [EarlyData::None; 2]);
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
    assert_eq!(answered_after(&world, 1), RTT);
    assert_eq!(answered_after(&world, 0), 2 * RTT, "without it takes two");
    let handshake: usize = second_sent(&world)
        .flat_map(|record| &record.packets)
        .filter(|packet| packet.kind == PacketKind::Handshake)
        .map(|packet| packet.range.len())
        .sum();
    // Header and tag, frame header, and a Finished of SHA-256: no room for EndOfEarlyData.
    assert_eq!(handshake, 42 + 3 + 36);
}

/// Proves: rfc9000 8.1 client-initials-are-full
#[test]
fn early_data_leaves_behind_the_whole_client_hello() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    come_again(&mut world, &client, Ask::streams(1, 3000));
    let began = world.client(1).began_at;
    let flight: Vec<_> = second_sent(&world)
        .filter(|record| record.at == began)
        .collect();
    assert_eq!(kinds(flight[0]), [PacketKind::Initial]);
    assert_eq!(
        kinds(flight[1]),
        [PacketKind::Initial, PacketKind::ZeroRtt],
        "the rest of the second datagram is used"
    );
    assert!(
        flight[2..]
            .iter()
            .all(|it| kinds(it) == [PacketKind::ZeroRtt])
    );
    assert!(flight[..2].iter().all(|it| it.size == 1200));
    assert!(flight.len() >= 4, "3000 bytes need more than the rest");
    assert_eq!(answered_after(&world, 1), RTT);
}

/// Proves: rfc9000 17.2.3 no-0rtt-after-1rtt
/// Proves: rfc9001 5.6 no-0rtt-with-1rtt-keys
#[test]
fn a_client_goes_on_in_1_rtt_packets() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    come_again(&mut world, &client, Ask::streams(1, 100_000));
    let complete = world.client(1).complete_at.unwrap();
    let late = second_sent(&world).filter(|it| it.at >= complete && it.has(PacketKind::ZeroRtt));
    assert_eq!(late.count(), 0);
    let early = second_sent(&world).filter(|it| it.has(PacketKind::ZeroRtt));
    assert!(early.count() >= 8, "a first window full");
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
}

#[test]
fn a_restarted_server_refuses_and_the_client_asks_again() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    change(&mut world, &early_server("sim", transport()));
    come_again(&mut world, &client, Ask::streams(3, 2000));
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
    assert_eq!(answered_after(&world, 1), 2 * RTT, "no later than without");
    assert!(!world.client(1).handshake.as_ref().unwrap().resumed);
}

#[test]
fn a_server_that_takes_no_early_data_refuses() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    change(&mut world, &server_with(transport()));
    come_again(&mut world, &client, Ask::one_byte());
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
}

#[test]
fn a_server_that_speaks_another_protocol_refuses() {
    let client = early_client(&["new", "sim"], transport());
    let mut world = visited(plain(1), &client, &early_server("sim", transport()));
    change(&mut world, &early_server("new", transport()));
    come_again(&mut world, &client, Ask::one_byte());
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
    let alpn = |index: usize| world.client(index).handshake.as_ref().unwrap().alpn.clone();
    assert_eq!(
        [alpn(0), alpn(1)],
        [Some(b"sim".into()), Some(b"new".into())]
    );
}

#[test]
fn a_hello_retry_request_refuses() {
    let tickets = Tickets::new();
    let server = |policy| early_server_of("sim", policy, tickets.clone());
    let client = early_client(&["sim"], transport());
    let mut world = visited(plain(1), &client, &server(KeyExchange::default()));
    let other = KeyExchange::Exactly(vec![Group::SECP256R1MLKEM768]);
    change(&mut world, &server(other));
    come_again(&mut world, &client, Ask::streams(2, 5000));
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
    let handshake = world.client(1).handshake.as_ref().unwrap();
    assert!(handshake.key_exchange.hello_retry);
    let answered = world.accepted(1).began_at + DELAY;
    let late = second_sent(&world).filter(|it| it.at > answered && it.has(PacketKind::ZeroRtt));
    assert_eq!(late.count(), 0, "no 0-RTT packet after the request");
}

/// Proves: rfc9000 7.4.1 server-keeps-what-0rtt-used
#[test]
fn a_server_that_allows_less_than_before_refuses() {
    let (client, server) = early_pair(transport(), transport());
    let smaller = Setup {
        provider: server.provider.clone(),
        transport: Arc::new(transport().max_bidi_streams(1)),
    };
    let mut world = visited(plain(1), &client, &server);
    change(&mut world, &smaller);
    come_again(&mut world, &client, Ask::streams(3, 100));
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
}

/// Proves: rfc9000 7.4.1 0rtt-uses-remembered-parameters
#[test]
fn early_data_beyond_the_remembered_limits_waits() {
    let narrow = || transport().initial_receive_window(4000).max_bidi_streams(2);
    let (client, server) = early_pair(transport(), narrow());
    let mut world = visited(plain(1), &client, &server);
    come_again(&mut world, &client, Ask::streams(5, 3000));
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
    let early: usize = second_sent(&world)
        .flat_map(|record| &record.packets)
        .filter(|packet| packet.kind == PacketKind::ZeroRtt)
        .map(|packet| packet.range.len())
        .sum();
    assert!((4000..5000).contains(&early), "{early} bytes");
}

/// Proves: rfc9001 9.2 replayed-0rtt-is-refused
/// Proves: rfc9001 4.6.2 rejected-0rtt-is-not-read
#[test]
fn a_first_flight_that_is_sent_again_is_taken_once() {
    let (client, server) = early_pair(transport(), transport());
    let recorder = Record0Rtt {
        since: None,
        again: Duration::from_secs(3),
        source: SocketAddr::from(([10, 9, 9, 9], 1)),
    };
    let network = plain(1).toward(Side::Server, Of(SECOND, recorder));
    let mut world = visited(network, &client, &server);
    let opened = Arc::new(Mutex::new(Vec::new()));
    let (noted, mut number) = (opened.clone(), 0);
    world.server_mut().on_incoming(move |_| {
        number += 1;
        let (echo, opened) = (Echo::new(), noted.clone());
        let app = Noting {
            echo,
            opened,
            number,
        };
        Answer::Accept(None, Box::new(app))
    });
    come_again(&mut world, &client, Ask::streams(1, 2000));
    world.run(LIMIT);
    assert_eq!(world.server().peers().len(), 3, "the copy was answered");
    assert_eq!(*opened.lock().unwrap(), [1], "and its request was not read");
    assert!(world.accepted(2).complete_at.is_none());
}

#[test]
fn early_packets_may_overtake_the_client_hello() {
    for late in [vec![0], vec![1], vec![0, 1]] {
        let (client, server) = early_pair(transport(), transport());
        let node = Of(SECOND, DelayNth::new(late.clone(), ms(20)));
        let mut world = visited(plain(1).toward(Side::Server, node), &client, &server);
        come_again(&mut world, &client, Ask::streams(1, 3000));
        assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2], "{late:?}");
        assert_eq!(answered_after(&world, 1), RTT + ms(20), "{late:?}");
    }
}

#[test]
fn the_order_of_the_first_flight_does_not_matter() {
    for place in 0..4 {
        let (client, server) = early_pair(transport(), transport());
        let node = Of(SECOND, Swap::new(place));
        let mut world = visited(plain(1).toward(Side::Server, node), &client, &server);
        come_again(&mut world, &client, Ask::streams(1, 3000));
        assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2], "{place}");
        assert_eq!(answered_after(&world, 1), RTT, "{place}");
    }
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn whatever_is_lost_early_data_arrives_once() {
    for first in 0..10 {
        for second in [None, Some(first + 1), Some(first + 3)] {
            let places: Vec<_> = [first].into_iter().chain(second).collect();
            let (client, server) = early_pair(transport(), transport());
            let node = Of(SECOND, DropNth::new(places.clone()));
            let mut world = visited(plain(1).node(node), &client, &server);
            come_again(&mut world, &client, Ask::streams(2, 3000));
            assert_eq!(
                early_data(&world, 1),
                [EarlyData::Accepted; 2],
                "{places:?}"
            );
        }
    }
}

#[test]
fn whatever_is_lost_refused_early_data_is_asked_again() {
    for first in 0..8 {
        let (client, server) = early_pair(transport(), transport());
        let node = Of(SECOND, DropNth::new([first, first + 2]));
        let mut world = visited(plain(1).node(node), &client, &server);
        change(&mut world, &early_server("sim", transport()));
        come_again(&mut world, &client, Ask::streams(2, 3000));
        assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2], "{first}");
    }
}

/// Proves: rfc9000 17.2.5.3 numbers-go-on-after-retry
#[test]
fn whatever_is_lost_early_data_survives_a_retry() {
    let run = |lost: &[usize]| {
        let (client, server) = early_pair(transport(), transport());
        let node = Of(SECOND, DropNth::new(lost.iter().copied()));
        let mut world = visited(plain(1).node(node), &client, &server);
        let keys = TokenKeys::from_secret([3; 32]);
        let always = AddressValidation::Always;
        world.server_mut().validate_addresses(keys, always);
        come_again(&mut world, &client, Ask::streams(2, 2000));
        assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2], "{lost:?}");
        world
    };
    let world = run(&[]);
    assert_eq!(answered_after(&world, 1), 2 * RTT, "one more for the Retry");
    let retries = world.trace().sent(Side::Client);
    assert_eq!(retries.filter(|it| it.has(PacketKind::Retry)).count(), 2);
    for first in 0..14 {
        run(&[first]);
        run(&[first, first + 1]);
        run(&[first, first + 4]);
    }
}

#[test]
fn a_server_with_the_same_tickets_and_another_protocol_refuses() {
    let tickets = Tickets::new();
    let server = |protocol| early_server_of(protocol, KeyExchange::default(), tickets.clone());
    let client = early_client(&["new", "sim"], transport());
    let mut world = visited(plain(1), &client, &server("sim"));
    change(&mut world, &server("new"));
    come_again(&mut world, &client, Ask::one_byte());
    assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
    assert!(world.client(1).handshake.as_ref().unwrap().resumed);
}

#[test]
fn a_server_with_the_same_tickets_takes_early_data_over() {
    let tickets = Tickets::new();
    let server = || early_server_of("sim", KeyExchange::default(), tickets.clone());
    let client = early_client(&["sim"], transport());
    let mut world = visited(plain(1), &client, &server());
    change(&mut world, &server());
    come_again(&mut world, &client, Ask::one_byte());
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
}

/// Proves: rfc9001 5.6 0rtt-only-when-asked
#[test]
fn nothing_leaves_early_that_was_not_meant_to() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    world.connect(&client, Ask::one_byte());
    world.run(LIMIT);
    assert_eq!(answered_after(&world, 1), 2 * RTT);
    let early = second_sent(&world).filter(|it| it.has(PacketKind::ZeroRtt));
    assert_eq!(early.count(), 0);
}

/// The versions of the second client's packets of a type, in order.
fn versions_of(world: &World, kind: PacketKind) -> Vec<u32> {
    let version = |record: &Record, start: usize| {
        let number = record.payload[start + 1..].first_chunk().unwrap();
        u32::from_be_bytes(*number)
    };
    second_sent(world)
        .flat_map(|record| record.packets.iter().map(move |packet| (record, packet)))
        .filter(|(_, packet)| packet.kind == kind)
        .map(|(record, packet)| version(record, packet.range.start))
        .collect()
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_client_begins_in_the_version_of_its_ticket() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    come_again(&mut world, &client, Ask::one_byte());
    let spoken = |index: usize| world.client(index).handshake.as_ref().unwrap().version;
    assert_eq!([spoken(0), spoken(1)], [Version::V2; 2]);
    for kind in [PacketKind::Initial, PacketKind::ZeroRtt] {
        let versions = versions_of(&world, kind);
        assert!(!versions.is_empty() && versions.iter().all(|it| *it == Version::V2.number()));
    }
    assert_eq!(early_data(&world, 1), [EarlyData::Accepted; 2]);
}

/// Proves: rfc9369 5 tickets-are-of-one-version
/// Proves: rfc9369 4.1 0rtt-stays-in-the-original-version
#[test]
fn early_data_of_another_version_is_refused_and_stays_in_its_version() {
    for lost in [vec![], vec![1]] {
        // The client learned another version since it got its ticket, and the server moves to that.
        let learned = |client: &Setup| Setup {
            provider: client.provider.clone(),
            transport: Arc::new(transport().early_data(hybriq_tls::EarlyDataPolicy::On)),
        };
        let (client, server) = early_pair(transport().versions([Version::V1]), transport());
        let node = Of(SECOND, DropNth::new(lost));
        let network = plain(1).toward(Side::Client, node);
        let mut world = visited(network, &client, &server);
        come_again(&mut world, &learned(&client), Ask::streams(1, 5000));
        assert_eq!(early_data(&world, 1), [EarlyData::Rejected; 2]);
        let versions = versions_of(&world, PacketKind::ZeroRtt);
        assert!(versions.len() >= 4 && versions.iter().all(|it| *it == Version::V1.number()));
        let handshake = world.client(1).handshake.as_ref().unwrap();
        assert_eq!(handshake.version, Version::V2);
    }
}

/// Proves: rfc9369 5 tickets-are-of-one-version
#[test]
fn a_server_that_speaks_the_version_no_more_gets_no_ticket_and_no_early_data() {
    let (client, server) = early_pair(transport(), transport());
    let mut world = visited(plain(1), &client, &server);
    let old = Setup {
        provider: server.provider.clone(),
        transport: Arc::new(transport().versions([Version::V1])),
    };
    let mut again = World::new(plain(2), old);
    again.connect(&client, Ask::streams(2, 2000).early());
    again.run(LIMIT);
    assert_eq!(again.client(0).progress(), Progress::Done);
    let handshake = again.client(0).handshake.as_ref().unwrap();
    assert_eq!(handshake.version, Version::V1);
    assert_eq!(handshake.early_data, EarlyData::Rejected);
    assert!(!handshake.resumed);
    world.run(LIMIT);
}
