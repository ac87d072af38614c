//! A sender and a receiver of streams, with a model of each stream.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use hybriq::{Direction, StreamId, tls::Side, transport::Priority};
use hybriq_proto::{
    owners::streams::{Limits, PeerLimits, ReadError, Sent, Streams, Timing, WriteError},
    wire::{
        Reader,
        frame::{Frame, FrameWriter, Owner as _},
    },
};

/// Number of streams of a pair.
pub(crate) const STREAMS: usize = 6;

const LIMITS: Limits = Limits {
    initial_receive_window: 20_000,
    receive_window: 60_000,
    initial_stream_receive_window: 8_000,
    stream_receive_window: 30_000,
    send_buffer: 20_000,
    max_send_buffer: 40_000,
    max_bidi: 0,
    max_uni: STREAMS as u64,
};

struct Known {
    id: StreamId,
    priority: Priority,
    written: usize,
    /// End of the data sent for the first time.
    sent: usize,
    /// Limit that the receiver allows.
    limit: usize,
    read: usize,
    reset: bool,
}

impl Known {
    /// Returns true if it has new data that may be sent.
    fn waits(&self) -> bool {
        !self.reset && self.sent < self.written.min(self.limit)
    }
}

/// Both ends, and the packets between them.
pub(crate) struct Pair {
    sender: Streams,
    receiver: Streams,
    streams: Vec<Known>,
    flying: VecDeque<(Vec<u8>, Sent)>,
    now: Instant,
}

/// Returns the byte at an offset of a stream.
fn byte(id: StreamId, offset: usize) -> u8 {
    (id.0 as usize * 31 + offset + (offset >> 8) * 7) as u8
}

impl Pair {
    pub(crate) fn new() -> Self {
        let mut sender = Streams::new(Side::Client, LIMITS);
        sender.set_peer_limits(PeerLimits {
            max_data: LIMITS.initial_receive_window,
            uni: LIMITS.initial_stream_receive_window,
            max_uni: LIMITS.max_uni,
            ..PeerLimits::default()
        });
        let streams = (0..STREAMS).map(|_| Known {
            id: sender.open(Direction::Uni).unwrap(),
            priority: Priority::default(),
            written: 0,
            sent: 0,
            limit: LIMITS.initial_stream_receive_window as usize,
            read: 0,
            reset: false,
        });
        Self {
            streams: streams.collect(),
            sender,
            receiver: Streams::new(Side::Server, LIMITS),
            flying: VecDeque::new(),
            now: Instant::now(),
        }
    }

    pub(crate) fn write(&mut self, stream: usize, len: usize) {
        let known = &mut self.streams[stream];
        let data: Vec<u8> = (known.written..known.written + len)
            .map(|at| byte(known.id, at))
            .collect();
        match self.sender.write(known.id, &data) {
            Ok(written) => known.written += written,
            Err(WriteError::Blocked) => {}
            Err(error) => assert!(known.reset, "{error}"),
        }
    }

    pub(crate) fn prioritise(&mut self, stream: usize, choice: u16) {
        let known = &mut self.streams[stream];
        let priority = Priority::new((choice % 8) as u8);
        known.priority = [priority, priority.non_incremental()][usize::from(choice / 8 % 2)];
        let _ = self.sender.set_priority(known.id, known.priority);
    }

    pub(crate) fn reset(&mut self, stream: usize) {
        let known = &mut self.streams[stream];
        known.reset |= self.sender.reset(known.id, 0).is_ok();
    }

    /// Sends some packets; the last ones stay in flight.
    pub(crate) fn send(&mut self, count: usize) {
        for _ in 0..count % 16 {
            self.now += Duration::from_millis(1);
            let Some((payload, sent)) = packet(&mut self.sender, self.now) else {
                break;
            };
            self.check(&payload);
            self.flying.push_back((payload, sent));
            if self.flying.len() > 8 {
                self.arrive();
            }
        }
    }

    /// Loses the packet in flight at this place.
    pub(crate) fn lose(&mut self, at: usize) {
        let at = at % self.flying.len().max(1);
        if let Some((_, sent)) = self.flying.remove(at) {
            self.sender.on_lost(&sent);
        }
    }

    fn arrive(&mut self) {
        if let Some((payload, sent)) = self.flying.pop_front() {
            deliver(&payload, &mut self.receiver);
            self.sender.on_acked(&sent);
        }
    }

    pub(crate) fn read(&mut self, stream: usize, len: usize) {
        while self.receiver.accept(Direction::Uni).is_some() {}
        let known = &mut self.streams[stream];
        let mut buffer = vec![0; len];
        match self.receiver.read(known.id, &mut buffer) {
            Ok(read) => {
                for (at, value) in buffer.iter().take(read).enumerate() {
                    assert_eq!(*value, byte(known.id, known.read + at));
                }
                known.read += read;
            }
            Err(ReadError::Blocked | ReadError::Closed) => {}
            Err(ReadError::Reset(_)) => assert!(known.reset),
            Err(error) => unreachable!("it is only read in order: {error}"),
        }
        while let Some((payload, sent)) = packet(&mut self.receiver, self.now) {
            for frame in frames(&payload) {
                if let Frame::MaxStreamData(frame) = frame {
                    self.known(frame.id).limit = frame.max as usize;
                }
            }
            deliver(&payload, &mut self.sender);
            self.receiver.on_acked(&sent);
        }
    }

    fn known(&mut self, id: StreamId) -> &mut Known {
        self.streams.iter_mut().find(|it| it.id == id).unwrap()
    }

    /// Checks that every byte is sent for the first time once, and not while a more urgent stream
    /// waits.
    fn check(&mut self, payload: &[u8]) {
        for frame in frames(payload) {
            let Frame::Stream(frame) = frame else {
                continue;
            };
            let known = self.known(frame.id);
            let end = frame.offset as usize + frame.data.len();
            assert!(!known.reset && end <= known.written);
            if end <= known.sent {
                continue;
            }
            assert_eq!(known.sent, frame.offset as usize);
            known.sent = end;
            let urgency = known.priority.urgency();
            let mut others = self.streams.iter().filter(|it| it.waits());
            assert!(others.all(|other| other.priority.urgency() >= urgency));
        }
    }

    /// Sends and reads everything: data that was written and not reset must arrive.
    pub(crate) fn finish(&mut self) {
        for _ in 0..1000 {
            self.send(15);
            while !self.flying.is_empty() {
                self.arrive();
            }
            (0..STREAMS).for_each(|stream| self.read(stream, 20_000));
            if !self.sender.has_pending() {
                break;
            }
        }
        assert!(!self.sender.has_pending() && !self.receiver.has_pending());
        for known in &self.streams {
            assert!(known.reset || known.read == known.written);
        }
    }
}

fn packet(from: &mut Streams, now: Instant) -> Option<(Vec<u8>, Sent)> {
    let mut buffer = vec![0; 1200];
    let mut out = FrameWriter::new(&mut buffer);
    let mut sent = Sent::default();
    let rtt = Duration::from_millis(20);
    from.write_frames(Timing { now, rtt }, &mut out, &mut sent);
    let len = out.len();
    buffer.truncate(len);
    assert!(len > 0 || !from.has_pending(), "what is pending is written");
    (len > 0).then_some((buffer, sent))
}

fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
    let mut reader = Reader::new(payload);
    let next = || (!reader.is_empty()).then(|| Frame::decode(&mut reader).unwrap());
    std::iter::from_fn(next).collect()
}

fn deliver(payload: &[u8], to: &mut Streams) {
    for frame in frames(payload) {
        let result = match &frame {
            Frame::Stream(frame) => to.on_stream(frame),
            Frame::ResetStream(frame) => to.on_reset_stream(frame),
            Frame::MaxData(frame) => to.on_max_data(frame),
            Frame::MaxStreamData(frame) => to.on_max_stream_data(frame),
            Frame::MaxStreams(frame) => to.on_max_streams(frame),
            Frame::DataBlocked(frame) => to.on_data_blocked(frame),
            Frame::StreamDataBlocked(frame) => to.on_stream_data_blocked(frame),
            Frame::Padding(_) => Ok(()),
            other => panic!("not a frame of streams that only one end sends: {other:?}"),
        };
        result.unwrap();
    }
}
