//! Data in bulk and in many streams, over networks that lose, reorder, repeat and corrupt it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, WriteError},
};
use hybriq_sim::{Answer, App, Ask, Idle, Network, Progress, World, ms, one_in};

use crate::support::{
    LIMIT, answered_after, check, client_with, pair, plain, server_with, transport, world,
};

const MIB: usize = 1024 * 1024;

/// Sends this many bytes on this many streams in both directions.
fn transfer(network: Network, streams: usize, bytes: usize) -> World {
    let (client, server) = pair();
    let mut world = world(network, &client, &server, Ask::streams(streams, bytes));
    world.run(10 * LIMIT);
    check(&world);
    world
}

#[test]
fn a_mebibyte_goes_both_ways() {
    let world = transfer(plain(1), 1, MIB);
    let client = world.client(0).stats();
    assert_eq!(client.packets_lost, 0);
    assert!(client.bytes_sent as usize > MIB && client.bytes_received as usize > MIB);
}

#[test]
fn a_mebibyte_survives_loss() {
    for seed in 0..3 {
        let world = transfer(Network::new(seed).delay(ms(10)).loss(one_in(20)), 1, MIB);
        assert!(world.accepted(0).stats().packets_lost > 10, "seed {seed}");
    }
}

/// Proves: rfc9000 2.2 data-is-delivered-in-order
#[test]
fn a_mebibyte_survives_reordering() {
    for seed in 0..3 {
        let network = Network::new(seed)
            .delay(ms(10))
            .reorder(one_in(10), ms(4))
            .jitter(ms(1));
        transfer(network, 1, MIB);
    }
}

#[test]
fn a_mebibyte_survives_duplication() {
    for seed in 0..3 {
        let network = Network::new(seed).delay(ms(10)).duplicate(one_in(5), ms(7));
        let world = transfer(network, 1, MIB);
        assert!(
            world.accepted(0).stats().packets_dropped > 10,
            "seed {seed}"
        );
    }
}

#[test]
fn a_mebibyte_survives_corruption() {
    for seed in 0..3 {
        let world = transfer(
            Network::new(seed).delay(ms(10)).corrupt(one_in(100)),
            1,
            MIB,
        );
        assert!(world.accepted(0).stats().packets_dropped > 3, "seed {seed}");
    }
}

#[test]
fn everything_at_once_and_many_streams() {
    for seed in 0..3 {
        let network = Network::new(seed)
            .delay(ms(10))
            .bandwidth(20_000_000, 50_000)
            .loss(one_in(50))
            .reorder(one_in(20), ms(5))
            .duplicate(one_in(50), ms(2))
            .corrupt(one_in(100));
        transfer(network, 20, MIB / 20);
    }
}

#[test]
fn a_link_with_a_queue_is_used_and_not_starved() {
    // A mebibyte takes 0.84 s at that rate, if both directions are used at once.
    let world = transfer(
        Network::new(1).delay(ms(10)).bandwidth(10_000_000, 64_000),
        1,
        MIB,
    );
    let took = answered_after(&world);
    assert!(took > ms(840) && took < ms(2500), "{took:?}");
}

#[test]
fn more_streams_than_may_be_open_at_once_wait_for_their_turn() {
    let world = transfer(plain(1), 350, 1000);
    assert!(answered_after(&world) < LIMIT);
}

#[test]
fn empty_streams_end_at_once() {
    transfer(plain(1), 10, 0);
}

#[test]
fn streams_of_one_packet_more_or_less_are_whole() {
    for bytes in [1, 1000, 1100, 1150, 1160, 1170, 1180, 1200, 2400] {
        transfer(plain(bytes as u64), 3, bytes);
    }
}

#[test]
fn small_windows_slow_a_transfer_and_stop_nothing() {
    let tight = || {
        transport()
            .receive_window(16 * 1024)
            .stream_receive_window(4 * 1024)
    };
    for network in [plain(1), Network::new(2).delay(ms(5)).loss(one_in(20))] {
        let (client, server) = (client_with(tight()), server_with(tight()));
        let mut world = world(network, &client, &server, Ask::streams(8, 32 * 1024));
        world.run(10 * LIMIT);
        check(&world);
    }
}

#[test]
fn a_small_send_buffer_stops_nothing() {
    let small = || transport().send_buffer(3000);
    let (client, server) = (client_with(small()), server_with(small()));
    let mut world = world(plain(1), &client, &server, Ask::streams(4, 50_000));
    world.run(10 * LIMIT);
    check(&world);
}

/// Proves: rfc9000 2.2 sender-stays-within-limits
#[test]
fn nobody_sends_more_than_an_unread_stream_may_hold() {
    let (client, server) = (
        client_with(transport()),
        server_with(
            transport()
                .stream_receive_window(20_000)
                .receive_window(1_000_000),
        ),
    );
    let mut world = World::new(plain(1), server);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Idle)));
    world.connect(&client, Ask::streams(1, MIB));
    world.run_for(Duration::from_secs(20));
    let sent = world.client(0).stats().bytes_sent;
    assert!(
        (20_000..40_000).contains(&sent),
        "{sent} bytes for a window of 20,000"
    );
    assert_eq!(world.client(0).close_reason(), None);
}

/// Proves: rfc9000 2.2 sender-stays-within-limits
#[test]
fn nobody_sends_more_than_an_unread_connection_may_hold() {
    let (client, server) = (
        client_with(transport()),
        server_with(
            transport()
                .stream_receive_window(1_000_000)
                .receive_window(20_000),
        ),
    );
    let mut world = World::new(plain(1), server);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Idle)));
    world.connect(&client, Ask::streams(10, MIB));
    world.run_for(Duration::from_secs(20));
    let sent = world.client(0).stats().bytes_sent;
    assert!(
        (20_000..40_000).contains(&sent),
        "{sent} bytes for a window of 20,000"
    );
}

/// Tells a test what it saw.
type Seen = Arc<Mutex<VecDeque<String>>>;

/// Opens one unidirectional stream, writes, then resets it or finishes it.
struct OneWay {
    reset: Option<u64>,
    seen: Seen,
}

impl App for OneWay {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => {
                let id = streams.open(Direction::Uni).unwrap();
                assert_eq!(streams.write(id, b"one way"), Ok(7));
                match self.reset {
                    Some(code) => streams.reset(id, code).unwrap(),
                    None => streams.finish(id).unwrap(),
                }
            }
            Event::Stream(StreamEvent::Acknowledged(id)) => {
                self.seen
                    .lock()
                    .unwrap()
                    .push_back(format!("{id} acknowledged"));
            }
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Reads one unidirectional stream and returns its data.
struct Listen {
    seen: Seen,
}

impl Listen {
    fn read(&self, id: StreamId, connection: &mut Connection) {
        let mut buffer = [0; 100];
        loop {
            let outcome = connection.streams().read(id, &mut buffer);
            let text = match outcome {
                Err(ReadError::Blocked) => return,
                Err(error) => error.to_string(),
                Ok(len) => String::from_utf8_lossy(&buffer[..len]).into_owned(),
            };
            self.seen.lock().unwrap().push_back(text);
            if !matches!(outcome, Ok(len) if len > 0) {
                return;
            }
        }
    }
}

impl App for Listen {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete | Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = connection.streams().accept(Direction::Uni) {
                    self.read(id, connection);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

fn one_way(reset: Option<u64>, network: Network) -> (Vec<String>, Vec<String>) {
    let (sender, receiver) = (Seen::default(), Seen::default());
    let (client, server) = pair();
    let mut world = World::new(network, server);
    let seen = receiver.clone();
    world
        .server_mut()
        .on_incoming(move |_| Answer::Accept(None, Box::new(Listen { seen: seen.clone() })));
    world.connect(
        &client,
        OneWay {
            reset,
            seen: sender.clone(),
        },
    );
    world.run_for(Duration::from_secs(5));
    let drain = |seen: Seen| seen.lock().unwrap().drain(..).collect();
    (drain(sender), drain(receiver))
}

#[test]
fn a_unidirectional_stream_arrives_and_is_acknowledged() {
    for lost in [vec![], vec![2], vec![4], vec![5]] {
        let (sender, receiver) = one_way(None, plain(1).drop_nth(lost));
        assert_eq!(receiver, ["one way", ""]);
        assert_eq!(sender, ["2 acknowledged"]);
    }
}

#[test]
fn a_reset_reaches_the_reader_with_its_code() {
    for lost in [vec![], vec![4], vec![5], vec![6]] {
        let (_, receiver) = one_way(Some(77), plain(1).drop_nth(lost));
        assert_eq!(
            receiver.last().unwrap(),
            "the peer reset the stream with code 77"
        );
    }
}

/// Stops every stream that the peer opens.
struct Stopper;

impl App for Stopper {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        if matches!(
            event,
            Event::HandshakeComplete | Event::Stream(StreamEvent::Opened(_))
        ) {
            while let Some(id) = connection.streams().accept(Direction::Bidi) {
                connection.streams().stop(id, 55).unwrap();
            }
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Writes until it is stopped.
struct Writer {
    id: Option<StreamId>,
    stopped: Arc<Mutex<Option<WriteError>>>,
}

impl App for Writer {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        if *event == Event::HandshakeComplete {
            self.id = streams.open(Direction::Bidi);
        }
        let Some(id) = self.id else { return };
        loop {
            match streams.write(id, &[0; 4096]) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                Err(error) => {
                    self.stopped.lock().unwrap().get_or_insert(error);
                    return;
                }
            }
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Proves: rfc9000 3.5 stop-sending-is-answered-by-reset
#[test]
fn stop_sending_reaches_the_writer_with_its_code() {
    for lost in [vec![], vec![5], vec![6], vec![7, 8]] {
        let (client, server) = pair();
        let mut world = World::new(plain(1).drop_nth(lost), server);
        world
            .server_mut()
            .on_incoming(|_| Answer::Accept(None, Box::new(Stopper)));
        let stopped = Arc::default();
        world.connect(
            &client,
            Writer {
                id: None,
                stopped: Arc::clone(&stopped),
            },
        );
        world.run_for(Duration::from_secs(5));
        assert_eq!(*stopped.lock().unwrap(), Some(WriteError::Stopped(55)));
    }
}

#[test]
fn many_clients_are_served_side_by_side() {
    let (client, server) = pair();
    let network = Network::new(1).delay(ms(10)).loss(one_in(30)).jitter(ms(5));
    let mut world = World::new(network, server);
    for _ in 0..50 {
        world.connect(&client, Ask::streams(2, 5000));
    }
    world.run(LIMIT);
    for index in 0..50 {
        assert_eq!(
            world.client(index).progress(),
            Progress::Done,
            "client {index}"
        );
    }
    assert_eq!(world.server().peers().len(), 50);
    assert_eq!(world.server().stats().connections, 0);
}

/// Returns the number of key updates at both ends.
fn key_updates(world: &World) -> [u64; 2] {
    [world.client(0), world.accepted(0)]
        .map(|peer| peer.connection.as_ref().map_or(0, Connection::key_updates))
}

#[test]
fn a_key_update_of_either_end_is_followed_in_the_middle_of_a_transfer() {
    let link = |seed| {
        Network::new(seed)
            .bandwidth(10_000_000, 64_000)
            .delay(ms(10))
    };
    for network in [
        link(1),
        link(2).loss(one_in(100)).reorder(one_in(20), ms(5)),
    ] {
        let (client, server) = pair();
        let mut world = world(network, &client, &server, Ask::streams(2, MIB));
        for count in 1..=4 {
            world.run_for(ms(400));
            let connection = if count % 2 == 1 {
                world.client_connection(0)
            } else {
                world.accepted_connection(0)
            };
            assert!(connection.update_keys(), "the update before is over");
            assert!(!connection.update_keys(), "the peer has not followed yet");
            let followed = |world: &World| key_updates(world) == [count; 2];
            assert!(
                world.run_until(LIMIT, followed),
                "{:?}",
                key_updates(&world)
            );
        }
        assert_eq!(
            world.client(0).progress(),
            Progress::Busy,
            "the transfer goes on"
        );
        world.run(10 * LIMIT);
        check(&world);
    }
}
