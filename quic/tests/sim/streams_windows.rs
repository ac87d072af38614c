//! Windows and buffers that follow the path.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, WriteError},
};
use hybriq_sim::{Answer, App, Ask, Idle, Network, Progress, World, ms};

use crate::support::{client_with, pair, plain, server_with, transport};

const MIB: u64 = 1024 * 1024;

/// Sends one stream without end.
#[derive(Default)]
struct Endless {
    id: Option<StreamId>,
}

impl App for Endless {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        static DATA: [u8; 64 * 1024] = [0; 64 * 1024];
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => self.id = streams.open(Direction::Uni),
            Event::Stream(StreamEvent::Writable(_)) => {}
            _ => return,
        }
        let Some(id) = self.id else { return };
        loop {
            match streams.write_chunk(id, &mut Bytes::from_static(&DATA)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Reads all there is, and counts.
struct Count(Arc<AtomicU64>);

impl Count {
    fn read(&self, id: StreamId, connection: &mut Connection) {
        loop {
            match connection.streams().read_chunk(id, usize::MAX) {
                Ok(Some(chunk)) => {
                    self.0.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
                Ok(None) | Err(ReadError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl App for Count {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete | Event::Stream(StreamEvent::Opened(_)) => {
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

#[test]
fn windows_and_buffers_let_one_stream_fill_200_mbit_over_250_ms() {
    let large = || transport().initial_rtt(ms(250)).datagram_size(6000);
    let (client, server) = (client_with(large()), server_with(large()));
    // The queue takes whatever the windows allow: congestion control is not what limits here.
    let network = Network::new(1)
        .bandwidth(200_000_000, 20_000_000)
        .delay(ms(125));
    let mut world = World::new(network, server);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Endless::default())));
    let count = Arc::new(AtomicU64::new(0));
    world.connect(&client, Count(Arc::clone(&count)));
    world.run_for(Duration::from_secs(4));
    count.store(0, Ordering::Relaxed);
    world.run_for(Duration::from_secs(2));
    let rate = count.load(Ordering::Relaxed) * 8 / 2;
    assert!(rate > 196_000_000, "{rate} bit/s");
    assert_eq!(world.accepted(0).stats().packets_lost, 0);
}

/// Bytes the client sends to somebody who reads nothing.
fn sent_unread(streams: usize) -> u64 {
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Idle)));
    world.connect(&client, Ask::streams(streams, 3 * MIB as usize));
    world.run_for(Duration::from_secs(20));
    world.client(0).stats().bytes_sent
}

#[test]
fn a_connection_nobody_reads_from_holds_its_first_window_and_no_more() {
    let [one, four] = [sent_unread(1), sent_unread(4)];
    assert!((MIB..MIB * 11 / 10).contains(&one), "{one}");
    assert!(
        (3 * MIB / 2..3 * MIB / 2 * 11 / 10).contains(&four),
        "{four}"
    );
}
