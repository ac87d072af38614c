//! When acknowledgements leave, how many, and what the two ends ask of each other
//! (RFC 9000 §13.2, draft-ietf-quic-ack-frequency).

use std::time::{Duration, Instant};

use hybriq::{TransportConfig, tls::Side, transport::AckFrequency};
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, StreamEvent, StreamId},
};
use hybriq_sim::{Answer, App, Network, Progress, World, ms, one_in};

use crate::support::{LIMIT, client_with, plain, server_with, transport};

const MIB: usize = 1024 * 1024;

/// Sends this many bytes on one unidirectional stream and waits until they are acknowledged.
struct Upload {
    to_write: usize,
    id: Option<StreamId>,
    done: bool,
}

impl Upload {
    fn new(bytes: usize) -> Self {
        Self {
            to_write: bytes,
            id: None,
            done: false,
        }
    }

    fn write(&mut self, connection: &mut Connection) {
        let streams = connection.streams();
        let id = *self
            .id
            .get_or_insert_with(|| streams.open(Direction::Uni).unwrap());
        let chunk = [7; 16 * 1024];
        while self.to_write > 0 {
            let Ok(taken) = streams.write(id, &chunk[..self.to_write.min(chunk.len())]) else {
                return;
            };
            self.to_write -= taken;
        }
        let _ = streams.finish(id);
    }
}

impl App for Upload {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeConfirmed | Event::Stream(StreamEvent::Writable(_)) => {
                self.write(connection);
            }
            Event::Stream(StreamEvent::Acknowledged(_)) => self.done = true,
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        if self.done {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Reads and forgets.
struct Sink;

impl App for Sink {
    fn on_event(&mut self, _: Instant, _: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        while streams.accept(Direction::Uni).is_some() {}
        let id = StreamId::new(Side::Client, Direction::Uni, 0);
        let mut buffer = [0; 16 * 1024];
        while streams.read(id, &mut buffer).is_ok_and(|read| read > 0) {}
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

fn world(
    network: Network,
    client: TransportConfig,
    server: TransportConfig,
    upload: Upload,
) -> World {
    let mut world = World::new(network, server_with(server));
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Sink)));
    world.connect(&client_with(client), upload);
    world
}

/// One way, until all is acknowledged.
fn upload(
    network: Network,
    client: TransportConfig,
    server: TransportConfig,
    bytes: usize,
) -> World {
    let mut world = world(network, client, server, Upload::new(bytes));
    let done = world.run_until(10 * LIMIT, |world| {
        world.client(0).progress() == Progress::Done
    });
    assert!(done, "{:?}", world.client(0).close_reason());
    world
}

/// Until the last byte arrived.
fn took(world: &World) -> Duration {
    let mut arrived = world.trace().arrived(Side::Server);
    let last = arrived.rfind(|record| record.size > 100).unwrap();
    let began = world.client(0).confirmed_at.unwrap();
    last.at.checked_sub(began).unwrap()
}

/// Datagrams that left towards an end once the handshake was confirmed.
fn sent(world: &World, toward: Side) -> usize {
    let since = world.client(0).confirmed_at.unwrap();
    let sent = world.trace().sent(toward);
    sent.filter(|record| record.at > since).count()
}

fn link(seed: u64) -> Network {
    Network::new(seed)
        .bandwidth(50_000_000, 250_000)
        .delay(ms(20))
}

fn quiet() -> TransportConfig {
    transport().ack_frequency(AckFrequency::PeerDefault)
}

#[test]
fn every_second_packet_is_acknowledged_by_default() {
    let world = upload(link(1), quiet(), quiet(), MIB);
    let (data, acks) = (sent(&world, Side::Server), sent(&world, Side::Client));
    assert!(
        (data * 9 / 20..=data * 11 / 20).contains(&acks),
        "{acks} for {data}"
    );
}

#[test]
fn packets_that_come_at_once_are_acknowledged_once() {
    // Nothing spreads the packets of a train: each arrives as one batch.
    let world = upload(plain(1), quiet(), quiet(), MIB);
    let mut batches: Vec<_> = world
        .trace()
        .arrived(Side::Server)
        .map(|record| record.at)
        .collect();
    let data = batches.len() as u64;
    batches.dedup();
    let acks = world.accepted(0).stats().acks_sent;
    // In the handshake every space has its own, and a last odd packet waits for its delay.
    let most = batches.len() as u64 + 4;
    assert!(acks <= most && acks < data / 3, "{acks} for {data}");
}

#[test]
fn acks_are_at_least_halved_and_goodput_is_not_lower() {
    for (bits, delay, queue) in [
        (50_000_000, ms(20), 250_000),
        (100_000_000, ms(15), 750_000),
        (20_000_000, ms(100), 500_000),
    ] {
        let link = || Network::new(1).bandwidth(bits, queue).delay(delay);
        let plain = upload(link(), quiet(), transport(), 8 * MIB);
        let fewer = upload(link(), transport(), transport(), 8 * MIB);
        let (before, after) = (sent(&plain, Side::Client), sent(&fewer, Side::Client));
        assert!(2 * after <= before, "{after} instead of {before}");
        let (before, after) = (took(&plain), took(&fewer));
        // In some runs, with other random numbers, the end takes one round trip more.
        let slack = before / 30 + 2 * delay;
        assert!(after <= before + slack, "{after:?} instead of {before:?}");
    }
}

#[test]
fn fewer_acks_do_not_slow_a_link_that_loses() {
    let (mut plain, mut fewer) = (Duration::ZERO, Duration::ZERO);
    for seed in 0..6 {
        let link = || link(seed).loss(one_in(200)).reorder(one_in(100), ms(1));
        plain += took(&upload(link(), quiet(), transport(), 2 * MIB));
        fewer += took(&upload(link(), transport(), transport(), 2 * MIB));
    }
    assert!(
        fewer <= plain + plain / 10,
        "{fewer:?} instead of {plain:?}"
    );
}

/// Proves: rfc9000 13.2.1 acks-within-max-ack-delay
#[test]
fn the_last_odd_packet_is_acknowledged_after_the_delay_of_the_receiver() {
    for delay in [ms(10), ms(25), ms(60)] {
        let server = transport().max_ack_delay(delay);
        let world = upload(plain(1), quiet(), server, 100);
        let packet = world.trace().arrived(Side::Server).next_back().unwrap();
        let ack = world.trace().sent(Side::Client).next_back().unwrap();
        assert_eq!(ack.at, packet.at + delay);
    }
}

#[test]
fn a_receiver_that_delays_nothing_is_not_asked_to() {
    // A request would be an error: the receiver did not announce that it takes requests.
    let world = upload(link(1), transport(), transport().max_ack_delay(ms(0)), MIB);
    let (data, acks) = (sent(&world, Side::Server), sent(&world, Side::Client));
    assert_eq!(world.client(0).close_reason(), None);
    assert!(acks >= data * 9 / 20, "{acks} for {data}");
}
