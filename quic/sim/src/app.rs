//! Applications that run on simulated connections.

use std::{collections::BTreeMap, time::Instant};

use bytes::Bytes;

use crate::Rng;
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};

const CHUNK: usize = 8 * 1024;

/// Progress of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The application still has something to do.
    Busy,
    /// The application has finished its work.
    Done,
    /// The application received something unexpected.
    Failed(&'static str),
}

/// An application on one end of a connection. It is driven by events alone, like the async handles:
/// a missing event makes it hang.
pub trait App: Send {
    /// Handles an event of the connection.
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection);

    /// Returns the progress of the application.
    fn progress(&self) -> Progress;
}

/// An application that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl App for Idle {
    fn on_event(&mut self, _: Instant, _: &Event, _: &mut Connection) {}

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

/// Echoes bidirectional streams, and finishes them when the peer does.
#[derive(Debug, Default)]
pub struct Echo {
    /// Data that was read but does not fit into the send buffer yet, and true if the peer has
    /// finished.
    held: BTreeMap<StreamId, Held>,
    echoed: bool,
}

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    ended: bool,
}

impl Echo {
    /// Creates an application without streams.
    pub fn new() -> Self {
        Self::default()
    }

    fn accept(&mut self, streams: &mut Streams) {
        while let Some(id) = streams.accept(Direction::Bidi) {
            self.held.insert(id, Held::default());
            self.turn(id, streams);
        }
    }

    fn turn(&mut self, id: StreamId, streams: &mut Streams) {
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        loop {
            match streams.write(id, &held.bytes) {
                Ok(taken) => drop(held.bytes.drain(..taken)),
                Err(WriteError::Blocked) => return,
                Err(_) => break,
            }
            if !held.bytes.is_empty() {
                continue;
            }
            if held.ended {
                self.echoed |= streams.finish(id).is_ok();
                break;
            }
            held.bytes.resize(16 * 1024, 0);
            match streams.read(id, &mut held.bytes) {
                Ok(0) => {
                    held.bytes.clear();
                    held.ended = true;
                }
                Ok(read) => held.bytes.truncate(read),
                Err(ReadError::Blocked) => return held.bytes.clear(),
                Err(ReadError::Reset(code)) => {
                    let _ = streams.reset(id, code);
                    break;
                }
                Err(_) => break,
            }
        }
        self.held.remove(&id);
    }
}

impl App for Echo {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete | Event::Stream(StreamEvent::Opened(Direction::Bidi)) => {
                self.accept(connection.streams());
            }
            Event::Stream(
                StreamEvent::Readable(id)
                | StreamEvent::Writable(id)
                | StreamEvent::Stopped { id, .. },
            ) => self.turn(*id, connection.streams()),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        if self.echoed && self.held.is_empty() {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Opens bidirectional streams, sends bytes on each, and expects them back.
#[derive(Debug)]
pub struct Ask {
    bytes: usize,
    count: usize,
    to_open: usize,
    asked: BTreeMap<StreamId, Asked>,
    failed: Option<&'static str>,
    started: bool,
    keep_open: bool,
    when: When,
}

/// Start of an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Complete,
    Early,
}

#[derive(Debug, Default)]
struct Asked {
    sent: usize,
    received: usize,
}

impl Ask {
    /// Sends one byte there and back on one stream.
    pub const fn one_byte() -> Self {
        Self::streams(1, 1)
    }

    /// Sends `bytes` bytes there and back on each of `count` streams.
    pub const fn streams(count: usize, bytes: usize) -> Self {
        Self {
            bytes,
            count,
            to_open: count,
            asked: BTreeMap::new(),
            failed: None,
            started: false,
            keep_open: false,
            when: When::Complete,
        }
    }

    /// Sends the requests in 0-RTT packets if possible. Requests that the server refuses are sent
    /// again after the handshake.
    #[must_use]
    pub const fn early(mut self) -> Self {
        self.when = When::Early;
        self
    }

    /// Leaves the connection open at the end, instead of closing it with code 0.
    #[must_use]
    pub const fn keep_open(mut self) -> Self {
        self.keep_open = true;
        self
    }

    fn open(&mut self, streams: &mut Streams) {
        while self.to_open > 0 {
            let Some(id) = streams.open(Direction::Bidi) else {
                return;
            };
            self.to_open -= 1;
            self.asked.insert(id, Asked::default());
            self.write(id, streams);
            self.read(id, streams);
        }
    }

    fn write(&mut self, id: StreamId, streams: &mut Streams) {
        let Some(asked) = self.asked.get_mut(&id) else {
            return;
        };
        let mut chunk = [0; CHUNK];
        while asked.sent < self.bytes {
            let len = (self.bytes - asked.sent).min(CHUNK);
            let (chunk, _) = chunk.split_at_mut(len);
            pattern(id, asked.sent, chunk);
            match streams.write(id, chunk) {
                Ok(taken) => asked.sent += taken,
                Err(WriteError::Blocked) => return,
                Err(WriteError::Stopped(_)) => return self.fail("the echo was stopped"),
                Err(_) => return self.fail("the stream closed under the writer"),
            }
        }
        if streams.finish(id).is_err() {
            self.fail("the stream could not be finished");
        }
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) {
        let (mut buffer, mut right) = ([0; CHUNK], [0; CHUNK]);
        loop {
            let Some(asked) = self.asked.get_mut(&id) else {
                return;
            };
            match streams.read(id, &mut buffer) {
                Ok(0) => {
                    if asked.received != self.bytes {
                        self.fail("the echo ended early");
                    }
                    self.asked.remove(&id);
                    return;
                }
                Ok(read) => {
                    let (right, _) = right.split_at_mut(read);
                    pattern(id, asked.received, right);
                    asked.received += read;
                    if !buffer.starts_with(right) || asked.received > self.bytes {
                        return self.fail("the echo differs");
                    }
                }
                Err(ReadError::Blocked) => return,
                Err(ReadError::Reset(_)) => return self.fail("the echo was reset"),
                Err(_) => return self.fail("the stream closed under the reader"),
            }
        }
    }

    fn fail(&mut self, why: &'static str) {
        self.failed.get_or_insert(why);
    }
}

impl App for Ask {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => {
                self.started = true;
                self.open(streams);
            }
            Event::EarlyDataReady if self.when == When::Early => {
                self.started = true;
                self.open(streams);
            }
            Event::EarlyDataRejected => {
                self.asked.clear();
                self.to_open = self.count;
                self.started = false;
            }
            Event::Stream(StreamEvent::Available(_)) => self.open(streams),
            Event::Stream(StreamEvent::Writable(id) | StreamEvent::Stopped { id, .. }) => {
                self.write(*id, streams);
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, streams),
            _ => {}
        }
        if self.progress() == Progress::Done && !self.keep_open && !connection.is_closed() {
            connection.close(now, 0, Bytes::new());
        }
    }

    fn progress(&self) -> Progress {
        match self.failed {
            Some(why) => Progress::Failed(why),
            None if self.started && self.to_open == 0 && self.asked.is_empty() => Progress::Done,
            None => Progress::Busy,
        }
    }
}

/// Fills the buffer with the bytes of a stream at an offset; no other stream or offset has the same
/// bytes.
pub(super) fn pattern(id: StreamId, offset: usize, buffer: &mut [u8]) {
    let mut at = offset;
    let mut rest = buffer;
    while !rest.is_empty() {
        let word = Rng::nth(id.0, (at / 8) as u64).draw().to_le_bytes();
        let (_, word) = word.split_at(at % 8);
        let len = word.len().min(rest.len());
        let (now, later) = rest.split_at_mut(len);
        now.copy_from_slice(word.split_at(len).0);
        rest = later;
        at += len;
    }
}
