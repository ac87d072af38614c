//! DATAGRAM frames (RFC 9221) over the network: shares, loss, order.

use std::time::{Duration, Instant};

use hybriq::{
    TransportConfig,
    tls::Side,
    transport::{DatagramConfig, DatagramOptions},
};
use hybriq_proto::{
    connection::{Connection, Event},
    owners::{
        datagrams::DatagramEvent,
        streams::{Direction, StreamEvent, StreamId},
    },
};
use hybriq_sim::{Answer, App, Network, Progress, World, ms, one_in};

use crate::support::{LIMIT, client_with, server_with, transport};

/// Sends numbered datagrams of one size as fast as they are accepted, and a stream's bytes at the
/// same time.
struct Sender {
    size: usize,
    count: u64,
    next: u64,
    stream_bytes: usize,
    id: Option<StreamId>,
    delivered: bool,
}

impl Sender {
    fn new(size: usize, count: u64, stream_bytes: usize) -> Self {
        Self {
            size,
            count,
            next: 0,
            stream_bytes,
            id: None,
            delivered: stream_bytes == 0,
        }
    }

    fn send(&mut self, connection: &mut Connection) {
        while self.next < self.count {
            let mut data = vec![0; self.size];
            data[..8].copy_from_slice(&self.next.to_be_bytes());
            if connection.send_datagram_within(&data.into()).is_err() {
                return;
            }
            self.next += 1;
        }
    }

    fn write(&mut self, connection: &mut Connection) {
        if self.stream_bytes == 0 {
            return;
        }
        let streams = connection.streams();
        let id = *self
            .id
            .get_or_insert_with(|| streams.open(Direction::Uni).unwrap());
        let chunk = [7; 16 * 1024];
        while self.stream_bytes > 0 {
            let Ok(taken) = streams.write(id, &chunk[..self.stream_bytes.min(chunk.len())]) else {
                return;
            };
            self.stream_bytes -= taken;
        }
        let _ = streams.finish(id);
    }
}

impl App for Sender {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeConfirmed => {
                self.send(connection);
                self.write(connection);
            }
            Event::Datagram(DatagramEvent::Writable) => self.send(connection),
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection),
            Event::Stream(StreamEvent::Acknowledged(_)) => self.delivered = true,
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        if self.next == self.count && self.delivered {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Reads everything; fails if a datagram comes out of order on a path that keeps it.
#[derive(Default)]
struct Receiver {
    last: Option<u64>,
    disorder: bool,
}

impl App for Receiver {
    fn on_event(&mut self, _: Instant, _: &Event, connection: &mut Connection) {
        while let Some(data) = connection.datagrams().recv() {
            let number = u64::from_be_bytes(data[..8].try_into().unwrap());
            self.disorder |= self.last >= Some(number);
            self.last = Some(number);
        }
        let streams = connection.streams();
        while streams.accept(Direction::Uni).is_some() {}
        let id = StreamId::new(Side::Client, Direction::Uni, 0);
        let mut buffer = [0; 16 * 1024];
        while streams.read(id, &mut buffer).is_ok_and(|read| read > 0) {}
    }

    fn progress(&self) -> Progress {
        if self.disorder {
            Progress::Failed("datagrams out of order")
        } else {
            Progress::Busy
        }
    }
}

fn world(network: Network, config: TransportConfig, sender: Sender) -> World {
    let mut world = World::new(network, server_with(config.clone()));
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Receiver::default())));
    world.connect(&client_with(config), sender);
    world
}

fn link(seed: u64) -> Network {
    Network::new(seed)
        .bandwidth(20_000_000, 100_000)
        .delay(ms(20))
}

/// Runs it to the end, and a while longer until everything is settled.
fn run(mut world: World) -> World {
    let done = world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done);
    assert!(done, "{:?}", world.client(0).close_reason());
    let client = world.client(0);
    assert_eq!(client.close_reason(), None);
    let settled = world.run_until(LIMIT, |world| {
        let stats = world.client(0).stats().datagram_frames;
        stats.sent == stats.acknowledged + stats.lost
    });
    assert!(settled, "{:?}", world.client(0).stats());
    assert_eq!(world.accepted(0).progress(), Progress::Busy);
    world
}

/// Proves: rfc9221 5.4 datagrams-are-congestion-controlled
#[test]
fn datagrams_as_fast_as_the_path_allows_overflow_no_queue_of_ours() {
    let world = run(world(link(1), transport(), Sender::new(1000, 5000, 0)));
    let stats = world.client(0).stats().datagram_frames;
    assert_eq!((stats.sent, stats.dropped_unsent), (5000, 0));
    let received = world.accepted(0).stats().datagram_frames;
    assert!(
        received.received + stats.lost >= 5000,
        "{stats:?} {received:?}"
    );
    assert!(received.received > 4500, "{stats:?} {received:?}");
    // 5 MB at 20 Mbit/s.
    let took = world.client(0).done_at.unwrap();
    assert!(took > Duration::from_millis(1900), "{took:?}");
}

/// Proves: rfc9221 5.2 datagrams-elicit-acks
#[test]
fn lost_datagrams_are_counted_and_stay_lost() {
    for seed in 0..4 {
        let network = link(seed).loss(one_in(20));
        let world = run(world(network, transport(), Sender::new(500, 2000, 0)));
        let sent = world.client(0).stats().datagram_frames;
        let received = world.accepted(0).stats().datagram_frames.received;
        assert_eq!(sent.sent, 2000);
        assert!(sent.lost > 20, "{sent:?}");
        assert_eq!(received, sent.acknowledged, "{sent:?}");
    }
}

#[test]
fn neither_streams_nor_datagrams_starve_the_other() {
    // Together 8 MB: 3.2 s. Each alone takes 1.6 s, so the first to be done is at least nearly so
    // late as both.
    for size in [100, 700, 1100] {
        let count = 4_000_000 / (size as u64 + 3);
        let sender = Sender::new(size, count, 4_000_000);
        let mut world = world(link(3), transport(), sender);
        let half = world.run_until(LIMIT, |world| {
            let stats = world.client(0).stats();
            stats.datagram_frames.sent * (size as u64 + 3) > 2_000_000
        });
        assert!(half);
        let stats = world.client(0).stats();
        let datagrams = stats.datagram_frames.sent * (size as u64 + 3);
        let streams = stats.bytes_sent - datagrams;
        assert!(
            streams > datagrams * 8 / 10 && streams < datagrams * 13 / 10,
            "{size}: {streams} and {datagrams}"
        );
        run(world);
    }
}

/// Sends numbered datagrams at once; odd ones are worth nothing later.
struct Perishing {
    count: u64,
    max_age: Duration,
}

impl App for Perishing {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        if !matches!(event, Event::HandshakeConfirmed) {
            return;
        }
        for number in 0..std::mem::take(&mut self.count) {
            let mut data = vec![0; 1000];
            data[..8].copy_from_slice(&number.to_be_bytes());
            let mut options = DatagramOptions::new();
            if number % 2 == 1 {
                options = options.expires(now + self.max_age);
            }
            connection.send_datagram_with(data.into(), options).unwrap();
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Those that have waited for the congestion window until their deadline are dropped, and no others.
#[test]
fn a_datagram_is_not_sent_after_its_deadline() {
    let config = DatagramConfig::new().send_queue(1 << 20);
    let config = transport().datagrams(config);
    let mut world = World::new(link(4), server_with(config.clone()));
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Receiver::default())));
    let sender = Perishing {
        count: 200,
        max_age: ms(30),
    };
    world.connect(&client_with(config), sender);
    let over = world.run_until(LIMIT, |world| {
        let sent = world.client(0).stats().datagram_frames;
        sent.acknowledged + sent.expired == 200
    });
    let sent = world.client(0).stats().datagram_frames;
    assert!(over, "{sent:?}");
    // The first flight goes at once, and what is left is acknowledged after 40 ms.
    assert!(sent.expired > 80 && sent.sent > 100, "{sent:?}");
    assert_eq!(world.accepted(0).progress(), Progress::Busy);
}
