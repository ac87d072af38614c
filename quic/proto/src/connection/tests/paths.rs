//! Tests of packets on other paths, one at a time (RFC 9000 §8.2, §9).

use std::{
    net::{SocketAddr, SocketAddrV4},
    time::Duration,
};

use super::{
    Pair, Side, client_address,
    forged::{forge, pair, quiet},
    server_address,
};
use crate::{
    config::TransportConfig,
    connection::{Connection, Event},
    endpoint::{Arrival, Local, Transmit},
    forge::Forge,
    owners::{
        cids::{CidEvent, CidGenerator},
        path::Path,
    },
    wire::{
        frame::{FrameWriter, Owner as _, PathChallenge, PathResponse},
        limits,
        packet::{Cid, Header, Space},
        udp::SocketId,
    },
};

fn port(number: u16) -> SocketAddr {
    SocketAddr::new(client_address().ip(), number)
}

fn elsewhere(number: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, number], 40_000))
}

fn receive(side: &mut Side, pair_now: std::time::Instant, from: SocketAddr, datagram: &[u8]) {
    let arrival = Arrival {
        peer: from,
        local: Local::default(),
        ecn: None,
    };
    let connection = side.connection();
    connection.on_datagram(pair_now, &arrival, &mut datagram.to_vec());
}

/// Returns the datagrams that a side sends now, with their destinations.
fn sent(side: &mut Side, now: std::time::Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut out = vec![0; 65_536];
    let (slot, connection) = side.connection.as_mut().unwrap();
    side.endpoint.service(*slot, connection);
    let mut datagrams = Vec::new();
    while let Some(transmit) = connection.poll_transmit(now, &mut out, 1) {
        let Transmit { peer, size, .. } = transmit;
        datagrams.push((peer, out[..size].to_vec()));
    }
    datagrams
}

fn challenge(out: &mut FrameWriter<'_>) {
    assert!(out.write(&PathChallenge([7; 8])));
}

fn ping(out: &mut FrameWriter<'_>) {
    assert!(out.ping());
}

/// Returns the destination connection id of a short packet.
fn dcid(datagram: &[u8]) -> &[u8] {
    &datagram[1..9]
}

/// Returns an id issued by the server that the client has not used yet.
fn further_cid(pair: &mut Pair) -> Cid {
    pair.server.connection().cids().local().last().unwrap()
}

fn forge_to(
    from: &mut Connection,
    to: Cid,
    pad_to: usize,
    fill: impl FnOnce(&mut FrameWriter<'_>),
) -> Vec<u8> {
    let change = |header: &mut Header<'_>| {
        if let Header::Short { dcid, .. } = header {
            *dcid = to;
        }
    };
    from.forge(Space::Data, change, pad_to, fill)
}

/// Proves: rfc9000 9.1 probing-does-not-migrate
/// Proves: rfc9000 8.2.2 response-takes-the-same-path
/// Proves: rfc9000 8.2.2 response-fills-its-datagram
#[test]
fn a_probe_is_answered_where_it_came_from_and_moves_nobody() {
    let mut pair = quiet();
    let probe = forge(pair.client.connection(), Space::Data, 1200, challenge);
    receive(&mut pair.server, pair.now, elsewhere(1), &probe);
    assert_eq!(pair.server.connection().peer_address(), client_address());
    let sent = sent(&mut pair.server, pair.now);
    let there: Vec<_> = sent.iter().filter(|(to, _)| *to == elsewhere(1)).collect();
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].1.len(), 1200);
    assert!(pair.server.events().is_empty());
}

/// Proves: rfc9000 8 three-times-what-came
/// Proves: rfc9000 8.2.1 small-challenges-are-taken
/// Proves: rfc9000 8.2.2 response-fills-its-datagram
#[test]
fn a_small_probe_gets_a_small_answer() {
    let mut pair = quiet();
    let probe = forge(pair.client.connection(), Space::Data, 0, challenge);
    receive(&mut pair.server, pair.now, elsewhere(1), &probe);
    let sent = sent(&mut pair.server, pair.now);
    let there = sent.iter().filter(|(to, _)| *to == elsewhere(1));
    let bytes: usize = there.map(|(_, datagram)| datagram.len()).sum();
    assert!(bytes > 0 && bytes <= 3 * probe.len(), "{bytes}");
}

/// Proves: rfc9000 8.2.2 response-takes-the-same-path
#[test]
fn a_path_without_credit_holds_up_no_other() {
    let mut pair = quiet();
    let probe = forge(pair.client.connection(), Space::Data, 0, challenge);
    receive(&mut pair.server, pair.now, elsewhere(1), &probe);
    sent(&mut pair.server, pair.now);
    // Challenges are sent until too little is left of three times the bytes received from there.
    let due = |connection: &Connection| connection.paths.others().any(Path::wants_probe);
    while !due(pair.server.connection()) {
        pair.now = pair.server.connection().next_timeout().unwrap();
        pair.server.connection().on_timeout(pair.now);
        sent(&mut pair.server, pair.now);
    }
    let probe = forge(pair.client.connection(), Space::Data, 1200, challenge);
    receive(&mut pair.server, pair.now, client_address(), &probe);
    sent(&mut pair.server, pair.now);
    assert!(due(pair.server.connection()), "still out of credit");
    assert!(
        !pair.server.connection().paths.active().has_pending(),
        "answered"
    );
}

/// Proves: rfc9000 8.2.2 response-takes-the-same-path
#[test]
fn a_path_without_an_id_holds_up_no_other() {
    let mut pair = quiet();
    let probe = forge(pair.client.connection(), Space::Data, 1200, challenge);
    receive(&mut pair.server, pair.now, elsewhere(1), &probe);
    let gone = u64::MAX;
    for path in pair.server.connection().paths.others_mut() {
        path.peer_cid = gone;
    }
    while pair.server.connection().cids.peer.take_for_path().is_some() {}
    let probe = forge(pair.client.connection(), Space::Data, 1200, challenge);
    receive(&mut pair.server, pair.now, client_address(), &probe);
    let to: Vec<_> = sent(&mut pair.server, pair.now);
    assert!(to.iter().all(|(to, _)| *to == client_address()));
    assert!(
        !pair.server.connection().paths.active().has_pending(),
        "answered"
    );
}

/// The caller of `migrate` waits for an outcome.
#[test]
fn a_move_whose_id_was_retired_meanwhile_fails() {
    let mut pair = quiet();
    let local = Local {
        socket: SocketId(1),
        ip: None,
    };
    pair.client.connection().migrate(pair.now, local).unwrap();
    for (_, datagram) in sent(&mut pair.client, pair.now) {
        receive(&mut pair.server, pair.now, elsewhere(1), &datagram);
    }
    for path in pair.client.connection().paths.others_mut() {
        path.peer_cid = u64::MAX;
    }
    while pair.client.connection().cids.peer.take_for_path().is_some() {}
    for (_, mut datagram) in sent(&mut pair.server, pair.now) {
        let arrival = Arrival {
            peer: server_address(),
            local,
            ecn: None,
        };
        let client = pair.client.connection();
        client.on_datagram(pair.now, &arrival, &mut datagram);
    }
    assert_ne!(pair.client.connection().local(), local);
    let events = pair.client.events();
    let failed = |event: &Event| matches!(event, Event::PathFailed(_));
    assert_eq!(events.iter().filter(|event| failed(event)).count(), 1);
}

/// A server must not be able to make a client send full datagrams to any victim in exchange for
/// short packets.
#[test]
fn the_preferred_address_is_asked_once() {
    let preferred = SocketAddrV4::new([203, 0, 113, 1].into(), 443);
    let transport = TransportConfig::new().preferred_address(Some(preferred), None);
    let mut pair = Pair::configured(TransportConfig::new(), transport);
    while !pair.client.connection().state.is_confirmed() {
        assert!(pair.step(), "the handshake ended");
    }
    let mut asked = Vec::new();
    for _ in 0..5 {
        let datagrams = sent(&mut pair.client, pair.now).into_iter();
        asked.push(datagrams.filter(|(to, _)| *to == preferred.into()).count());
        let again = forge(pair.server.connection(), Space::Data, 0, |out| {
            assert!(out.handshake_done());
        });
        receive(&mut pair.client, pair.now, server_address(), &again);
    }
    assert_eq!(asked, [1, 0, 0, 0, 0]);
}

/// Proves: rfc9000 9.3 migration-follows-the-newest
#[test]
fn a_packet_that_was_overtaken_moves_nobody() {
    let mut pair = quiet();
    let first = forge(pair.client.connection(), Space::Data, 0, ping);
    let second = forge(pair.client.connection(), Space::Data, 0, ping);
    receive(&mut pair.server, pair.now, client_address(), &second);
    receive(&mut pair.server, pair.now, elsewhere(1), &first);
    assert_eq!(pair.server.connection().peer_address(), client_address());
}

/// Proves: rfc9000 9.3 migration-follows-the-newest
/// Proves: rfc9000 9.3.3 old-path-is-challenged
#[test]
fn the_newest_packet_from_elsewhere_moves_the_peer_there() {
    let mut pair = quiet();
    let before = *pair.server.connection().cids.peer.active();
    let ping = forge(pair.client.connection(), Space::Data, 0, ping);
    receive(&mut pair.server, pair.now, port(9), &ping);
    assert_eq!(pair.server.connection().peer_address(), port(9));
    let moved = |event: &Event| matches!(event, Event::PathChanged(path) if path.peer == port(9));
    assert!(pair.server.events().iter().any(moved));
    let sent = sent(&mut pair.server, pair.now);
    let to_old: Vec<_> = sent
        .iter()
        .filter(|(to, _)| *to == client_address())
        .collect();
    assert_eq!(to_old.len(), 1, "it is asked whether it is still there");
    assert_eq!(to_old[0].1.len(), 1200);
    for (_, datagram) in &sent {
        assert_eq!(dcid(datagram), before.as_bytes(), "the id stays");
    }
}

/// Proves: rfc9000 9.5 each-path-has-its-id
#[test]
fn a_peer_that_moves_under_another_id_is_answered_under_another() {
    let mut pair = quiet();
    let before = *pair.server.connection().cids.peer.active();
    let to = further_cid(&mut pair);
    let ping = forge_to(pair.client.connection(), to, 0, ping);
    receive(&mut pair.server, pair.now, elsewhere(1), &ping);
    assert_eq!(pair.server.connection().peer_address(), elsewhere(1));
    for (to, datagram) in sent(&mut pair.server, pair.now) {
        let same = dcid(&datagram) == before.as_bytes();
        assert_eq!(same, to == client_address());
    }
}

/// Proves: rfc9000 9.5 each-path-has-its-id
#[test]
fn a_peer_that_gave_no_spare_id_is_not_followed_under_another() {
    let mut pair = quiet();
    while pair.server.connection().cids.peer.take_for_path().is_some() {}
    let to = further_cid(&mut pair);
    let ping = forge_to(pair.client.connection(), to, 0, ping);
    receive(&mut pair.server, pair.now, elsewhere(1), &ping);
    assert_eq!(pair.server.connection().peer_address(), client_address());
    let sent = sent(&mut pair.server, pair.now);
    assert!(sent.iter().all(|(to, _)| *to == client_address()));
}

/// Proves: rfc9000 8.2.2 response-from-any-path-counts
/// Proves: rfc9000 8.2.1 mtu-is-validated-later
#[test]
fn a_short_challenge_that_is_answered_is_followed_by_a_full_one() {
    let mut pair = quiet();
    let ping = forge(pair.client.connection(), Space::Data, 0, ping);
    receive(&mut pair.server, pair.now, elsewhere(1), &ping);
    let short = sent(&mut pair.server, pair.now);
    let there = |sent: &[(SocketAddr, Vec<u8>)]| {
        let mut there = sent.iter().filter(|(to, _)| *to == elsewhere(1));
        there.next().map(|(_, datagram)| datagram.clone())
    };
    let short = there(&short).unwrap();
    assert!(short.len() <= 3 * ping.len());
    assert!(!pair.server.connection().paths.active().is_validated());
    receive(&mut pair.client, pair.now, server_address(), &short);
    // The answer comes from the client's previous address.
    for (_, answer) in sent(&mut pair.client, pair.now) {
        receive(&mut pair.server, pair.now, client_address(), &answer);
    }
    let full = sent(&mut pair.server, pair.now);
    assert_eq!(there(&full).unwrap().len(), 1200);
}

#[test]
fn an_answer_to_nothing_validates_nothing() {
    let mut pair = quiet();
    let answers = |pair: &mut Pair| {
        let guess = forge(pair.client.connection(), Space::Data, 1200, |out| {
            assert!(out.ping() && out.write(&PathResponse([1; 8])));
        });
        receive(&mut pair.server, pair.now, elsewhere(1), &guess);
        sent(&mut pair.server, pair.now);
    };
    answers(&mut pair);
    answers(&mut pair);
    let server = pair.server.connection();
    assert_eq!(server.peer_address(), elsewhere(1));
    assert!(!server.paths.active().is_validated() && !server.is_closed());
}

#[test]
fn an_answer_on_the_path_in_use_moves_the_peer_back() {
    let mut pair = quiet();
    let asked = forge(pair.server.connection(), Space::Data, 1200, challenge);
    receive(&mut pair.client, pair.now, server_address(), &asked);
    let answers = sent(&mut pair.client, pair.now);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].1.len(), 1200);
    receive(&mut pair.server, pair.now, port(9), &answers[0].1);
    assert_eq!(pair.server.connection().peer_address(), port(9));
}

/// Proves: security 8 path-challenge-floods-are-bounded
#[test]
fn a_flood_of_challenges_gets_few_answers() {
    let mut pair = quiet();
    for address in [client_address(), elsewhere(1)] {
        for round in 0..20 {
            let flood = forge(pair.client.connection(), Space::Data, 1200, |out| {
                for number in 0..100 {
                    assert!(out.write(&PathChallenge([number; 8])));
                }
            });
            receive(&mut pair.server, pair.now, address, &flood);
            let server = pair.server.connection();
            let waiting = server.paths.others().chain([server.paths.active()]);
            let waiting: usize = waiting.map(crate::owners::path::Path::responses).sum();
            assert!(waiting <= 2 * limits::PATH_RESPONSES, "round {round}");
        }
    }
    let sent = sent(&mut pair.server, pair.now);
    assert!(sent.len() <= 3, "{} datagrams", sent.len());
}

/// Proves: security 8 path-challenge-floods-are-bounded
#[test]
fn answers_to_challenges_ask_the_congestion_window() {
    let mut pair = quiet();
    let window = pair.server.connection().recovery.window();
    let mut bytes = 0;
    for number in 0..5000_u32 {
        let data = u64::from(number).to_be_bytes();
        let asks = forge(pair.client.connection(), Space::Data, 1200, |out| {
            assert!(out.write(&PathChallenge(data)));
        });
        receive(&mut pair.server, pair.now, client_address(), &asks);
        for (_, datagram) in sent(&mut pair.server, pair.now) {
            bytes += datagram.len() as u64 / 1200 * 1200;
        }
    }
    assert!(bytes <= window, "{bytes} bytes left, {window} may");
    let held = pair.server.connection().recovery.outstanding(Space::Data);
    assert!(held.count() <= window as usize / 1200 + limits::ACK_ONLY_PACKETS);
}

/// Proves: security 8 path-challenge-floods-are-bounded
#[test]
fn answers_on_other_paths_are_few_until_something_is_acknowledged() {
    let mut pair = quiet();
    let ask = |pair: &mut Pair| {
        let asks = forge(pair.client.connection(), Space::Data, 1200, challenge);
        receive(&mut pair.server, pair.now, elsewhere(1), &asks);
        for path in pair.server.connection().paths.others_mut() {
            path.on_validated();
        }
        let answers = sent(&mut pair.server, pair.now).into_iter();
        answers.filter(|(_, it)| it.len() == 1200).count()
    };
    let bound = usize::try_from(limits::PROBE_BYTES).unwrap() / 1200;
    let answers: usize = (0..1000).map(|_| ask(&mut pair)).sum();
    assert_eq!(answers, bound);
    let packet = forge(pair.server.connection(), Space::Data, 0, ping);
    receive(&mut pair.client, pair.now, server_address(), &packet);
    pair.client
        .connection()
        .acks
        .received
        .at(Space::Data)
        .request_ack();
    for (_, datagram) in sent(&mut pair.client, pair.now) {
        receive(&mut pair.server, pair.now, client_address(), &datagram);
    }
    let answers: usize = (0..1000).map(|_| ask(&mut pair)).sum();
    assert_eq!(answers, bound, "an acknowledgement renews them");
}

/// Proves: security 8 paths-are-bounded
#[test]
fn a_client_that_is_everywhere_takes_no_more_than_a_few_paths() {
    let mut pair = quiet();
    for number in 0..200 {
        let fill = if number % 2 == 0 { ping } else { challenge };
        let packet = forge(pair.client.connection(), Space::Data, 1200, fill);
        receive(&mut pair.server, pair.now, elsewhere(number), &packet);
        let server = pair.server.connection();
        assert!(server.paths.others().count() <= limits::OTHER_PATHS);
        assert!(!server.is_closed());
    }
    // Nobody answers from anywhere: the server is back at the client's validated address.
    let until = pair.now + Duration::from_secs(8);
    while let Some(at) = pair.server.connection().next_timeout() {
        if at > until {
            break;
        }
        pair.server.connection().on_timeout(at);
        sent(&mut pair.server, at);
    }
    assert_eq!(pair.server.connection().peer_address(), client_address());
}

/// Proves: rfc9000 9.4 congestion-state-is-reset
/// Proves: rfc9000 9.4 old-packets-do-not-count
#[test]
fn another_address_starts_afresh_and_another_port_goes_on() {
    for (to, fresh) in [(port(9), false), (elsewhere(1), true)] {
        let mut pair = quiet();
        // A packet is in flight on the old path when the peer moves.
        let server = pair.server.connection();
        assert!(server.recovery.rtt().first_sample().is_some());
        let id = server
            .streams()
            .open(crate::owners::streams::Direction::Uni);
        server.streams().write(id.unwrap(), b"data").unwrap();
        let data = sent(&mut pair.server, pair.now);
        let moves = forge(pair.client.connection(), Space::Data, 1200, ping);
        receive(&mut pair.server, pair.now, to, &moves);
        let recovery = &pair.server.connection().recovery;
        assert_eq!(recovery.bytes_in_flight(), 0);
        assert_eq!(recovery.rtt().first_sample().is_none(), fresh);
        let before = recovery.rtt().clone();
        pair.now += Duration::from_secs(3);
        for (_, datagram) in &data {
            receive(&mut pair.client, pair.now, server_address(), datagram);
        }
        pair.client
            .connection()
            .acks
            .received
            .at(Space::Data)
            .request_ack();
        for (_, datagram) in sent(&mut pair.client, pair.now) {
            receive(&mut pair.server, pair.now, to, &datagram);
        }
        let rtt = pair.server.connection().recovery.rtt();
        assert_eq!(rtt.latest(), before.latest(), "{to}: no sample");
        assert!(
            !pair
                .server
                .connection()
                .recovery
                .outstanding(Space::Data)
                .any(|carried| !carried.is_empty()),
            "it is settled all the same"
        );
    }
}

/// Proves: rfc9000 5.1 zero-length-peers-may-be-followed
#[test]
fn a_peer_without_connection_ids_is_followed() {
    #[derive(Debug)]
    struct None0;
    impl CidGenerator for None0 {
        fn len(&self) -> usize {
            0
        }

        fn generate(&self, _: u8, _: &mut [u8]) {}

        fn worker(&self, _: &[u8]) -> Option<u8> {
            None
        }
    }
    let mut pair = pair();
    let setup = super::client_setup(
        hybriq_tls::KeyExchange::default(),
        hybriq_tls::Backend::Rustls,
    );
    let endpoint = &mut pair.client.endpoint;
    endpoint.set_cid_generator(std::sync::Arc::new(None0));
    let started = endpoint.connect(pair.now, &setup, server_address(), "server.test");
    pair.client.connection = Some(started.unwrap());
    pair.run();
    assert!(pair.server.connection().cids.peer.is_zero_length());
    let to = further_cid(&mut pair);
    let ping = forge_to(pair.client.connection(), to, 0, ping);
    receive(&mut pair.server, pair.now, elsewhere(1), &ping);
    assert_eq!(pair.server.connection().peer_address(), elsewhere(1));
    assert!(!sent(&mut pair.server, pair.now).is_empty());
}

/// Proves: rfc9000 5.1.2 ids-of-abandoned-paths-are-retired
#[test]
fn the_id_of_a_path_that_was_given_up_is_retired() {
    let mut pair = quiet();
    let to = further_cid(&mut pair);
    let probe = forge_to(pair.client.connection(), to, 1200, challenge);
    receive(&mut pair.server, pair.now, elsewhere(1), &probe);
    sent(&mut pair.server, pair.now);
    let server = pair.server.connection();
    assert_eq!(server.paths.others().count(), 1);
    let mut now = pair.now;
    while server.paths.others().next().is_some() {
        now = server.next_timeout().unwrap();
        server.on_timeout(now);
    }
    assert!(server.cids.peer.wants_to_send(Space::Data));
    for (_, datagram) in sent(&mut pair.server, now) {
        receive(&mut pair.client, now, server_address(), &datagram);
    }
    let event = pair.client.connection().cids.local.poll_event();
    assert!(matches!(event, Some(CidEvent::Retired(_))), "{event:?}");
}

/// Lets the client's timers expire until it sends something; returns how long that took.
fn silence_of_client(pair: &mut Pair) -> Option<Duration> {
    let since = pair.now;
    let at = pair.client.connection().next_ping()?;
    while pair.now < at {
        pair.now = pair.client.connection().next_timeout().unwrap();
        pair.client.connection().on_timeout(pair.now);
        pair.run();
    }
    Some(at - since)
}

/// Proves: rfc9000 9.3 data-follows-the-migration
#[test]
fn a_client_that_waits_for_an_answer_makes_itself_heard_ever_more_rarely() {
    let mut pair = quiet();
    let next = pair.client.connection().next_ping();
    assert_eq!(next, None, "nothing is awaited");
    let streams = pair.client.connection().streams();
    let id = streams
        .open(crate::owners::streams::Direction::Bidi)
        .unwrap();
    streams.write(id, b"request").unwrap();
    pair.run();
    for doublings in 0..4 {
        let took = silence_of_client(&mut pair).unwrap();
        let expected = limits::SILENCE * (1 << doublings);
        assert!(expected / 2 <= took && took <= expected, "{took:?}");
    }
    // Data restarts the count, and after it ends nothing is awaited.
    let streams = pair.server.connection().streams();
    streams.write(id, b"the first half").unwrap();
    pair.run();
    assert!(silence_of_client(&mut pair).unwrap() <= limits::SILENCE);
    pair.server.connection().streams().finish(id).unwrap();
    pair.run();
    let streams = pair.client.connection().streams();
    assert_eq!(streams.read(id, &mut [0; 20]), Ok(14));
    assert_eq!(streams.read(id, &mut [0; 20]), Ok(0));
    assert_eq!(pair.client.connection().next_ping(), None);
}

/// Streams that a server keeps open for data that may never arrive do not keep the connection
/// alive.
#[test]
fn a_client_that_waits_for_news_makes_itself_heard_once() {
    let mut pair = quiet();
    let streams = pair.server.connection().streams();
    let id = streams
        .open(crate::owners::streams::Direction::Uni)
        .unwrap();
    streams.write(id, b"news").unwrap();
    pair.run();
    assert!(silence_of_client(&mut pair).unwrap() <= limits::SILENCE);
    assert_eq!(pair.client.connection().next_ping(), None, "it asked");
    pair.server
        .connection()
        .streams()
        .write(id, b"more")
        .unwrap();
    pair.run();
    assert!(pair.client.connection().next_ping().is_some());
}
