//! Events that a subscriber gets of a connection: they tell what happened.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Instant,
};

use hybriq::{
    TransportConfig,
    error::By,
    events::{
        Change, ConnectionState, DropTrigger, Event, KeyLevel, LossTimer, LossTrigger, Meta,
        PacketKind, PathAddresses, Sampler, Subscriber, TimerKind,
    },
    tls::Side,
    transport::{Congestion, Version},
};
use hybriq_proto::wire::packet::Cid;
use hybriq_sim::{Ask, Network, ms, one_in};

use crate::support::{LIMIT, check, client_with, plain, server_with, transport, world};

/// Events that were received, counted or kept.
#[derive(Default)]
struct Heard {
    started: usize,
    sent: [u64; 4],
    received: u64,
    marked: u64,
    frames_sent: Vec<&'static str>,
    dropped: Vec<DropTrigger>,
    lost: Vec<LossTrigger>,
    spurious: u64,
    metrics: u64,
    windows: Vec<u64>,
    phases: usize,
    ecn: usize,
    timers: Vec<LossTimer>,
    requests: usize,
    key_updates: u64,
    versions: Vec<(Version, Version)>,
    states: Vec<ConnectionState>,
    closed: Vec<String>,
    params: Vec<By>,
    handshakes: usize,
    installed: Vec<KeyLevel>,
    discarded: Vec<KeyLevel>,
    buffered: usize,
    cids: Vec<(Cid, Cid)>,
    paths: Vec<Change<PathAddresses>>,
    last: Option<Instant>,
    connections: Vec<(Side, Cid)>,
}

#[derive(Default)]
struct Recorder(Mutex<Heard>);

impl Subscriber for Recorder {
    fn on_event(&self, meta: &Meta, event: &Event<'_>) {
        let mut heard = self.0.lock().unwrap();
        assert!(heard.last <= Some(meta.time), "time goes on");
        heard.last = Some(meta.time);
        let connection = (meta.side, meta.original_dcid);
        if heard.connections.last() != Some(&connection) {
            heard.connections.push(connection);
        }
        match event {
            Event::ConnectionStarted(_) => heard.started += 1,
            Event::PacketSent(packet) => {
                heard.sent[packet.kind as usize] += 1;
                heard.marked += u64::from(packet.ecn.is_some());
                let sizes: usize = packet.frames.iter().map(|frame| frame.size).sum();
                assert!((1..packet.size).contains(&sizes));
                let names = packet.frames.iter().map(|frame| frame.name);
                heard.frames_sent.extend(names);
            }
            Event::PacketReceived(packet) => {
                heard.received += 1;
                assert!(packet.frames.iter().count() > 0);
            }
            Event::PacketDropped(dropped) => heard.dropped.push(dropped.trigger),
            Event::PacketLost(lost) => heard.lost.push(lost.trigger),
            Event::SpuriousLosses(count) => heard.spurious += count,
            Event::MetricsUpdated(path) => {
                heard.metrics += 1;
                heard.windows.push(path.congestion_window);
            }
            Event::CongestionStateUpdated(change) => {
                assert_ne!(change.old, change.new);
                heard.phases += 1;
            }
            Event::EcnStateUpdated(_) => heard.ecn += 1,
            Event::LossTimerUpdated(timer) => heard.timers.push(*timer),
            Event::AckFrequencyUpdated(_) => heard.requests += 1,
            Event::VersionNegotiated(change) => heard.versions.push((change.old, change.new)),
            Event::KeyUpdated(count) => heard.key_updates = *count,
            Event::ConnectionStateUpdated(change) => {
                let before = heard.states.last();
                assert_eq!(before.unwrap_or(&ConnectionState::Handshaking), &change.old);
                heard.states.push(change.new);
            }
            Event::ConnectionClosed(error) => heard.closed.push(error.to_string()),
            Event::ParametersSet(set) => heard.params.push(set.by),
            Event::HandshakeCompleted(handshake) => {
                heard.handshakes += 1;
                assert!(handshake.key_exchange.is_post_quantum());
            }
            Event::KeysInstalled(level) => heard.installed.push(*level),
            Event::KeysDiscarded(level) => heard.discarded.push(*level),
            Event::PacketBuffered(_) => heard.buffered += 1,
            Event::PeerCidUpdated(change) => heard.cids.push((change.old, change.new)),
            Event::PathUpdated(change) => heard.paths.push(*change),
            other => panic!("{other:?}"),
        }
    }
}

fn heard_by(transport: TransportConfig) -> (TransportConfig, Arc<Recorder>) {
    let recorder = Arc::<Recorder>::default();
    (transport.subscriber(recorder.clone()), recorder)
}

#[test]
fn a_subscriber_hears_of_every_packet_and_every_state() {
    let (client, at_client) = heard_by(transport());
    let (server, at_server) = heard_by(transport());
    let network = plain(1).bandwidth(20_000_000, 60_000);
    let mut world = world(
        network,
        &client_with(client),
        &server_with(server),
        Ask::streams(1, 2 << 20),
    );
    world.run_for(ms(700));
    assert!(world.client_connection(0).update_keys());
    world.run(LIMIT);
    check(&world);
    let ends = [
        (at_client, world.client(0).stats()),
        (at_server, world.accepted(0).stats()),
    ];
    let mut connections = Vec::new();
    for (recorder, stats) in ends {
        let heard = recorder.0.lock().unwrap();
        assert_eq!(heard.started, 1);
        assert_eq!(heard.sent.iter().sum::<u64>(), stats.packets_sent);
        assert_eq!(heard.marked, stats.ecn_sent.ect0 + stats.ecn_sent.ect1);
        assert_eq!(heard.received, stats.packets_received);
        assert_eq!(heard.dropped.len() as u64, stats.packets_dropped);
        assert_eq!(heard.lost.len() as u64, stats.packets_lost);
        assert!(stats.packets_lost > 0, "the queue overflows in slow start");
        assert!(heard.lost.contains(&LossTrigger::ReorderingThreshold));
        let acks = heard.frames_sent.iter().filter(|name| **name == "ack");
        assert_eq!(acks.count() as u64, stats.acks_sent);
        assert_eq!(heard.key_updates, 1);
        assert_eq!(heard.versions, [(Version::V1, Version::V2)]);
        assert!(heard.metrics > 100 && heard.phases >= 2 && heard.ecn >= 1);
        assert!(heard.windows.iter().max() > heard.windows.iter().min());
        assert!(heard.requests >= 2, "both ends ask");
        let set = |timer: &LossTimer| matches!(timer, LossTimer::Set { .. });
        assert!(heard.timers.iter().any(set));
        assert_eq!(heard.closed.len(), 1);
        assert_eq!(heard.params, [By::Local, By::Peer]);
        assert_eq!(heard.handshakes, 1);
        let levels = [KeyLevel::Initial, KeyLevel::Handshake, KeyLevel::OneRtt];
        assert_eq!(heard.installed, levels);
        assert_eq!(heard.discarded, levels[..2]);
        assert_eq!(heard.states.last(), Some(&ConnectionState::Closed));
        assert!(heard.states.contains(&ConnectionState::Confirmed));
        let [(_, dcid)] = heard.connections[..] else {
            panic!("one connection at an end");
        };
        connections.push(dcid);
    }
    assert_eq!(connections[0], connections[1], "both ends name it alike");
}

#[test]
fn a_subscriber_hears_why_packets_are_dropped_and_lost() {
    let (client, recorder) = heard_by(transport());
    let network = Network::new(3)
        .delay(ms(10))
        .loss(one_in(30))
        .duplicate(one_in(10), ms(3))
        .corrupt(one_in(50))
        .reorder(one_in(20), ms(8));
    let mut world = world(
        network,
        &client_with(client),
        &server_with(transport()),
        Ask::streams(4, 1 << 18),
    );
    world.run(LIMIT);
    check(&world);
    let heard = recorder.0.lock().unwrap();
    let stats = world.client(0).stats();
    assert_eq!(heard.dropped.len() as u64, stats.packets_dropped);
    for trigger in [DropTrigger::Duplicate, DropTrigger::DecryptionFailure] {
        assert!(heard.dropped.contains(&trigger), "{trigger:?}");
    }
    assert_eq!(heard.lost.len() as u64, stats.packets_lost);
    assert_eq!(heard.spurious, stats.spurious_losses);
    assert!(heard.spurious > 0);
}

#[test]
fn a_subscriber_hears_of_probe_timeouts() {
    let (client, recorder) = heard_by(transport());
    let mut world = world(
        plain(1).drop_nth([0, 1]),
        &client_with(client),
        &server_with(transport()),
        Ask::one_byte(),
    );
    world.run(LIMIT);
    check(&world);
    let heard = recorder.0.lock().unwrap();
    let expired = LossTimer::Expired(TimerKind::Probe);
    let count = heard.timers.iter().filter(|timer| **timer == expired);
    assert_eq!(count.count() as u64, world.client(0).stats().ptos);
    assert!(heard.timers.contains(&expired));
    assert!(heard.sent[PacketKind::Initial as usize] > 2);
}

#[test]
fn stats_tell_of_acks_marks_and_the_path() {
    let (client, server) = (client_with(transport()), server_with(transport()));
    let network = plain(1).bandwidth(20_000_000, 60_000);
    let mut world = world(
        network,
        &client,
        &server,
        Ask::streams(1, 1 << 20).keep_open(),
    );
    world.run_for(ms(5000));
    let (ours, theirs) = (world.client(0).stats(), world.accepted(0).stats());
    assert!(ours.acks_sent > 10 && ours.acks_received > 10);
    assert!(ours.acks_received <= theirs.acks_sent && theirs.acks_received <= ours.acks_sent);
    assert!(ours.congestion_events > 0 && ours.packets_lost > 0);
    assert_eq!(
        ours.ecn_received.ect0 + theirs.packets_lost,
        theirs.ecn_sent.ect0
    );
    // The last packet may be an ACK, which brings none.
    let unheard = ours.ecn_received.ect0 - theirs.ecn_echoed.ect0;
    assert!(unheard <= 1, "{unheard}");
    let path = world.client_connection(0).path_stats();
    assert!(path.min_rtt >= ms(100) && path.min_rtt <= path.smoothed_rtt);
    assert!(path.latest_rtt >= path.min_rtt && path.rtt_variance < ms(100));
    assert_eq!(path.congestion_window, ours.congestion_window);
    assert_eq!((path.bytes_in_flight, path.pto_count), (0, 0));
    assert!(
        path.delivery_rate
            .is_some_and(|rate| rate <= 20_000_000 / 8 * 11 / 10)
    );
    assert!(path.pacing_rate.is_some_and(|rate| rate > 0));
    assert_eq!((path.datagram_size, path.controller), (1452, "Cubic"));
}

/// An encoder of video can follow the target rate, whichever controller is in use.
#[test]
fn the_target_rate_is_what_the_link_carries() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let config = transport().congestion(congestion.clone());
        let (client, server) = (client_with(config.clone()), server_with(config));
        let mut world = world(
            plain(1).bandwidth(20_000_000, 60_000),
            &client,
            &server,
            Ask::streams(1, 8 << 20).keep_open(),
        );
        let begun = world.client_connection(0).path_stats();
        assert_eq!(begun.delivery_rate_at, None);
        world.run_for(ms(10_000));
        let path = world.client_connection(0).path_stats();
        let share = path.target_rate as f64 / 2_500_000.0;
        assert!((0.6..1.2).contains(&share), "{congestion:?}: {path:?}");
        assert!(path.delivery_rate_at.is_some());
    }
}

/// Watches every other connection, with a recorder of its own.
#[derive(Default)]
struct EveryOther(Mutex<Vec<Option<Arc<Recorder>>>>);

impl Sampler for EveryOther {
    fn sample(&self, meta: &Meta, peer: SocketAddr) -> Option<Arc<dyn Subscriber>> {
        assert_eq!((meta.side, peer.port() > 0), (Side::Client, true));
        let mut asked = self.0.lock().unwrap();
        let recorder = (asked.len() % 2 == 0).then(Arc::<Recorder>::default);
        asked.push(recorder.clone());
        recorder.map(|recorder| recorder as Arc<dyn Subscriber>)
    }
}

#[test]
fn a_sampler_chooses_connections_and_each_has_its_own_subscriber() {
    let sampler = Arc::<EveryOther>::default();
    let server = server_with(transport());
    for _ in 0..3 {
        let (both, all) = heard_by(transport().sampler(sampler.clone()));
        let mut world = world(plain(1), &client_with(both), &server, Ask::one_byte());
        world.run(LIMIT);
        check(&world);
        assert_eq!(all.0.lock().unwrap().started, 1, "the subscriber hears all");
    }
    let asked = sampler.0.lock().unwrap();
    let started = |recorder: &Option<Arc<Recorder>>| {
        let recorder = recorder.as_ref()?;
        Some(recorder.0.lock().unwrap().started)
    };
    let started: Vec<_> = asked.iter().map(started).collect();
    assert_eq!(started, [Some(1), None, Some(1)]);
}
