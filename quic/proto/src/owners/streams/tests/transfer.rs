use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::{Direction, Limits, Sent, StreamId, Streams, deliver, packet, pair_with};
use crate::{
    owners::streams::{ReadError, WriteError},
    random::prf::Sequence,
    wire::frame::Owner as _,
};

const NARROW: Limits = Limits {
    initial_receive_window: 10_000,
    receive_window: 30_000,
    initial_stream_receive_window: 5000,
    stream_receive_window: 12_000,
    send_buffer: 10_000,
    max_send_buffer: 20_000,
    max_bidi: 3,
    max_uni: 2,
};

/// The byte at an offset of a stream.
fn byte(id: StreamId, offset: usize) -> u8 {
    (id.0 as usize * 31 + offset + (offset >> 8) * 7) as u8
}

/// A small random source: the same seed gives the same run.
struct Random(Sequence);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        (self.0.draw() >> 33) as usize % bound
    }
}

/// One end: sends its streams, and checks every byte of those it receives.
struct End {
    streams: Streams,
    flying: VecDeque<(Vec<u8>, Sent)>,
    /// Bytes written to and expected from each unfinished stream.
    sending: HashMap<StreamId, (usize, usize)>,
    receiving: HashMap<StreamId, usize>,
    /// Lengths of the streams that were read to their end.
    received: Vec<usize>,
    left_to_open: Vec<usize>,
}

impl End {
    fn new(streams: Streams, lengths: &[usize]) -> Self {
        Self {
            streams,
            flying: VecDeque::new(),
            sending: HashMap::new(),
            receiving: HashMap::new(),
            received: Vec::new(),
            left_to_open: lengths.to_vec(),
        }
    }

    fn open(&mut self, random: &mut Random) {
        let Some(&length) = self.left_to_open.last() else {
            return;
        };
        let direction = [Direction::Bidi, Direction::Uni][random.below(2)];
        let Some(id) = self.streams.open(direction) else {
            return;
        };
        self.left_to_open.pop();
        self.sending.insert(id, (0, length));
        if direction == Direction::Bidi {
            self.receiving.insert(id, 0);
        }
    }

    fn accept(&mut self) {
        for direction in [Direction::Bidi, Direction::Uni] {
            while let Some(id) = self.streams.accept(direction) {
                self.receiving.insert(id, 0);
                if direction == Direction::Bidi {
                    self.sending.insert(id, (0, 0));
                }
            }
        }
    }

    fn write(&mut self, random: &mut Random) {
        let streams = &mut self.streams;
        self.sending.retain(|&id, (written, length)| {
            let len = random.below(5000).min(*length - *written);
            let data: Vec<u8> = (*written..*written + len).map(|at| byte(id, at)).collect();
            let result = if random.below(2) == 0 {
                streams.write(id, &data)
            } else {
                streams.write_chunk(id, &mut data.into())
            };
            match result {
                Ok(accepted) => *written += accepted,
                Err(WriteError::Blocked) => {}
                Err(error) => panic!("{error}"),
            }
            if written == length {
                streams.finish(id).expect("it is open");
            }
            written != length
        });
    }

    fn read(&mut self, random: &mut Random) {
        let (streams, received) = (&mut self.streams, &mut self.received);
        self.receiving.retain(|&id, offset| {
            let max = 1 + random.below(4000);
            let data = if random.below(2) == 0 {
                let mut buffer = vec![0; max];
                streams
                    .read(id, &mut buffer)
                    .map(|len| buffer[..len].to_vec())
            } else {
                streams
                    .read_chunk(id, max)
                    .map(|chunk| chunk.map_or(vec![], |it| it.to_vec()))
            };
            match data {
                Ok(data) if data.is_empty() => {
                    received.push(*offset);
                    return false;
                }
                Ok(data) => {
                    for value in data {
                        assert_eq!(value, byte(id, *offset), "{id:?} at {offset}");
                        *offset += 1;
                    }
                }
                Err(ReadError::Blocked) => {}
                Err(error) => panic!("{error}"),
            }
            true
        });
    }

    /// Sends some packets; each is lost, delayed, delivered or delivered twice.
    fn transmit(&mut self, peer: &mut Streams, loss: usize, random: &mut Random) {
        while self.flying.len() < 20
            && let Some(next) = packet(&mut self.streams)
        {
            self.flying.push_back(next);
        }
        for _ in 0..10 {
            if self.flying.is_empty() {
                break;
            }
            let which = random.below(self.flying.len().min(4));
            let (payload, sent) = self.flying.remove(which).expect("it is there");
            if random.below(100) < loss {
                if random.below(4) == 0 {
                    deliver(&payload, peer);
                }
                self.streams.on_lost(&sent);
                continue;
            }
            deliver(&payload, peer);
            if random.below(10) == 0 {
                deliver(&payload, peer);
            }
            self.streams.on_acked(&sent);
        }
    }

    fn is_done(&self) -> bool {
        self.left_to_open.is_empty()
            && self.sending.is_empty()
            && self.receiving.is_empty()
            && self.flying.is_empty()
            && !self.streams.has_pending()
    }
}

/// Sends streams of these lengths both ways; every byte must arrive once and in order.
fn exchange(seed: u64, loss: usize, lengths: [&[usize]; 2]) {
    let mut random = Random(Sequence::new(seed));
    let (client, server) = pair_with(NARROW);
    let mut client = End::new(client, lengths[0]);
    let mut server = End::new(server, lengths[1]);
    let mut rounds = 0;
    // A stream that arrived in the last packet is seen only by the next round's accept.
    let mut done = 0;
    while done < 2 {
        for end in [&mut client, &mut server] {
            end.open(&mut random);
            end.accept();
            end.write(&mut random);
            end.read(&mut random);
            while end.streams.poll_event().is_some() {}
        }
        client.transmit(&mut server.streams, loss, &mut random);
        server.transmit(&mut client.streams, loss, &mut random);
        done = if client.is_done() && server.is_done() {
            done + 1
        } else {
            0
        };
        rounds += 1;
        assert!(rounds < 20_000, "no end with seed {seed}");
    }
    for (from, to) in [(0, &mut server), (1, &mut client)] {
        let mut expected: Vec<usize> = lengths[from].to_vec();
        to.received.retain(|&length| length > 0);
        expected.retain(|&length| length > 0);
        expected.sort_unstable();
        to.received.sort_unstable();
        assert_eq!(to.received, expected, "with seed {seed}");
        let streams = &to.streams;
        assert_eq!(
            (streams.sends.len(), streams.recvs.len()),
            (0, 0),
            "with seed {seed}"
        );
    }
}

/// Proves: rfc9000 2.2 data-is-delivered-in-order
#[test]
fn every_byte_arrives_once_and_in_order_without_loss() {
    exchange(1, 0, [&[200_000, 0, 1, 5000], &[0, 100_000]]);
}

/// Proves: rfc9000 2.2 data-is-delivered-in-order
#[test]
fn every_byte_arrives_once_and_in_order_with_half_the_packets_lost() {
    for seed in 0..10 {
        exchange(seed, 50, [&[40_000, 0, 1, 5000, 13_000], &[7, 60_000]]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        seed in any::<u64>(),
        loss in 0usize..60,
        up in prop::collection::vec(0usize..20_000, 0..12),
        down in prop::collection::vec(0usize..20_000, 0..12),
    ) {
        exchange(seed, loss, [&up, &down]);
    }
}
