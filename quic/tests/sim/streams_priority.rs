//! The order of streams that share a narrow link.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use hybriq::transport::Priority;
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, WriteError},
};
use hybriq_sim::{Answer, App, Network, Progress, World, ms, one_in};

use crate::support::{LIMIT, client_with, server_with, transport};

/// Bytes of each stream: a quarter of a second of the link.
const BYTES: usize = 300_000;

/// Sends a stream of each priority, then raises one to a new priority once its first writer waits.
struct Sender {
    priorities: Vec<Priority>,
    left: BTreeMap<StreamId, usize>,
    then: Option<(usize, Priority)>,
}

impl Sender {
    fn write(&mut self, id: StreamId, connection: &mut Connection) {
        let Some(left) = self.left.get_mut(&id) else {
            return;
        };
        while *left > 0 {
            match connection
                .streams()
                .write(id, &[7; 4096][..4096.min(*left)])
            {
                Ok(written) => *left -= written,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
        self.left.remove(&id);
        connection.streams().finish(id).unwrap();
    }
}

impl App for Sender {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete => {
                let mut ids = Vec::new();
                for priority in std::mem::take(&mut self.priorities) {
                    let id = connection.streams().open(Direction::Uni).unwrap();
                    connection.streams().set_priority(id, priority).unwrap();
                    self.left.insert(id, BYTES);
                    self.write(id, connection);
                    ids.push(id);
                }
                if let Some((index, priority)) = self.then.take() {
                    connection
                        .streams()
                        .set_priority(ids[index], priority)
                        .unwrap();
                }
            }
            Event::Stream(StreamEvent::Writable(id)) => self.write(*id, connection),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Bytes of every stream by index when one of them ended, in the order of their ends.
type Ends = Arc<Mutex<Vec<(u64, BTreeMap<u64, usize>)>>>;

/// Reads what comes.
struct Reader {
    received: BTreeMap<u64, usize>,
    ends: Ends,
    streams: usize,
}

impl Reader {
    fn read(&mut self, id: StreamId, connection: &mut Connection) {
        let mut buffer = [0; 4096];
        loop {
            match connection.streams().read(id, &mut buffer) {
                Ok(0) => {
                    let mut ends = self.ends.lock().unwrap();
                    return ends.push((id.index(), self.received.clone()));
                }
                Ok(read) => *self.received.entry(id.index()).or_default() += read,
                Err(ReadError::Blocked) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl App for Reader {
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
        if self.ends.lock().unwrap().len() == self.streams {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Sends a stream of each priority over 10 Mbit/s; the indices in the order of their ends, and
/// what had come of all at each end.
fn ends(
    network: Network,
    priorities: &[Priority],
    then: Option<(usize, Priority)>,
) -> Vec<(u64, BTreeMap<u64, usize>)> {
    // The bounds below are what a window of 1200-byte datagrams leaves.
    let config = || transport().without_mtu_discovery();
    let (client, server) = (client_with(config()), server_with(config()));
    let network = network.bandwidth(10_000_000, 64_000).delay(ms(10));
    let mut world = World::new(network, server);
    let (streams, priorities) = (priorities.len(), priorities.to_vec());
    world.server_mut().on_incoming(move |_| {
        Answer::Accept(
            None,
            Box::new(Sender {
                priorities: priorities.clone(),
                left: BTreeMap::new(),
                then,
            }),
        )
    });
    let ends = Ends::default();
    world.connect(
        &client,
        Reader {
            received: BTreeMap::new(),
            ends: Arc::clone(&ends),
            streams,
        },
    );
    assert!(world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done));
    let ends = ends.lock().unwrap();
    assert!(
        ends.iter()
            .all(|(index, received)| received[index] == BYTES)
    );
    ends.clone()
}

fn order(ends: &[(u64, BTreeMap<u64, usize>)]) -> Vec<u64> {
    ends.iter().map(|(index, _)| *index).collect()
}

fn in_order(urgency: u8) -> Priority {
    Priority::new(urgency).non_incremental()
}

#[test]
fn urgent_streams_end_first_whatever_is_lost() {
    for seed in 0..4 {
        let network = Network::new(seed).loss(one_in(50 + 1000 * u32::from(seed == 0)));
        let priorities = [7, 3, 5, 0].map(Priority::new);
        let ends = ends(network, &priorities, None);
        assert_eq!(order(&ends), [3, 1, 2, 0], "seed {seed}");
        // The next stream's early bytes filled a window that was lost in part.
        let (_, received) = &ends[0];
        let others: usize = received.values().sum::<usize>() - BYTES;
        assert!(others < BYTES / 2, "seed {seed}: {received:?}");
    }
}

#[test]
fn streams_that_share_end_together() {
    let ends = ends(Network::new(1), &[Priority::default(); 4], None);
    let (_, received) = &ends[0];
    assert!(
        received.values().all(|&bytes| bytes > BYTES - 40_000),
        "{received:?}"
    );
}

#[test]
fn streams_that_do_not_share_end_one_after_the_other() {
    let ends = ends(Network::new(1), &[in_order(3); 4], None);
    assert_eq!(order(&ends), [0, 1, 2, 3]);
    let (_, received) = &ends[0];
    let next = received.get(&1).copied().unwrap_or(0);
    assert!(next < 40_000, "{received:?}");
}

#[test]
fn a_stream_that_is_raised_when_all_is_written_still_ends_first() {
    let ends = ends(
        Network::new(1),
        &[Priority::default(); 4],
        Some((3, Priority::new(0))),
    );
    assert_eq!(ends[0].0, 3);
    let (_, received) = &ends[0];
    let others: usize = received.values().sum::<usize>() - BYTES;
    assert!(others < 60_000, "{received:?}");
}
