//! Whole connections that move a lot: encryption, streams and flow control included.

use std::time::{Duration, Instant};

use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};
use hybriq_sim::{Answer, App, Network, Progress, World, ms};

use crate::support::{client_with, server_with, transport};

/// Writes to one stream as much as it takes, for ever.
#[derive(Default)]
struct Source(Option<StreamId>);

impl Source {
    fn write(&mut self, streams: &mut Streams) {
        let chunk = [0; 16 * 1024];
        let Some(id) = self.0 else { return };
        while matches!(streams.write(id, &chunk), Ok(1..)) {}
        assert_eq!(streams.write(id, &chunk), Err(WriteError::Blocked));
    }
}

impl App for Source {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete => {
                self.0 = connection.streams().open(Direction::Uni);
                self.write(connection.streams());
            }
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams()),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Reads everything at once.
struct Sink;

impl App for Sink {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        let mut buffer = vec![0; 64 * 1024];
        let mut read = |streams: &mut Streams, id| loop {
            match streams.read(id, &mut buffer) {
                Ok(0) | Err(ReadError::Blocked) => return,
                Ok(_) => {}
                Err(error) => panic!("{error:?}"),
            }
        };
        match event {
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = streams.accept(Direction::Uni) {
                    read(streams, id);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => read(streams, *id),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Long enough for a window of 6 MB.
const SECONDS: u32 = 10;

#[test]
fn one_stream_fills_two_hundred_megabits_over_a_quarter_of_a_second() {
    let (rate, round_trip) = (200_000_000, ms(250));
    let bdp = rate / 8 / 4;
    let config = || transport().datagram_size(1452);
    let network = Network::new(1).bandwidth(rate, bdp).delay(round_trip / 2);
    let mut world = World::new(network, server_with(config()));
    world.expect_bulk(5_000_000);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Sink)));
    world.connect(&client_with(config()), Source::default());
    let mut before = 0;
    let mut megabits = Vec::new();
    for second in 1..=SECONDS {
        world.run_for(Duration::from_secs(1));
        let received = world.accepted(0).stats().bytes_received;
        megabits.push((received - before) as f64 * 8.0 / 1e6);
        before = received;
        println!("{second} s: {:?}", world.client(0).stats());
    }
    let last: f64 = megabits.iter().rev().take(3).sum::<f64>() / 3.0;
    assert!(last >= 180.0, "Mbit/s each second: {megabits:.0?}");
}
