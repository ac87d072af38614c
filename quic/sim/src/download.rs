//! Applications for a download: a client that fetches and a server that serves a number of bytes.

use std::time::Instant;

use bytes::Bytes;

use super::{App, Progress, app::pattern};
use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};

const CHUNK: usize = 8 * 1024;

/// Sends bytes on a unidirectional stream, and waits for the peer to close.
#[derive(Debug)]
pub struct Serve {
    bytes: usize,
    sent: usize,
    stream: Option<StreamId>,
}

impl Serve {
    /// Creates a server of this number of bytes.
    pub const fn bytes(bytes: usize) -> Self {
        Self {
            bytes,
            sent: 0,
            stream: None,
        }
    }

    fn write(&mut self, streams: &mut Streams) {
        let Some(id) = self.stream else {
            return;
        };
        let mut chunk = [0; CHUNK];
        while self.sent < self.bytes {
            let (chunk, _) = chunk.split_at_mut(CHUNK.min(self.bytes - self.sent));
            pattern(id, self.sent, chunk);
            match streams.write(id, chunk) {
                Ok(taken) => self.sent += taken,
                Err(WriteError::Blocked) => return,
                Err(_) => break,
            }
        }
        let _ = streams.finish(id);
        self.stream = None;
    }
}

impl App for Serve {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        match event {
            Event::HandshakeComplete => {
                self.stream = connection.streams().open(Direction::Uni);
                self.write(connection.streams());
            }
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams()),
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        if self.sent == self.bytes {
            Progress::Done
        } else {
            Progress::Busy
        }
    }
}

/// Expects bytes from a [`Serve`], and closes when it has them.
#[derive(Debug)]
pub struct Fetch {
    bytes: usize,
    received: usize,
    failed: Option<&'static str>,
}

impl Fetch {
    /// Creates a client that expects this number of bytes.
    pub const fn bytes(bytes: usize) -> Self {
        Self {
            bytes,
            received: 0,
            failed: None,
        }
    }

    fn read(&mut self, id: StreamId, streams: &mut Streams) {
        let (mut buffer, mut right) = ([0; CHUNK], [0; CHUNK]);
        loop {
            match streams.read(id, &mut buffer) {
                Ok(0) if self.received == self.bytes => return,
                Ok(0) => return self.fail("it ended early"),
                Ok(read) => {
                    let (right, _) = right.split_at_mut(read);
                    pattern(id, self.received, right);
                    self.received += read;
                    if !buffer.starts_with(right) || self.received > self.bytes {
                        return self.fail("it is something else");
                    }
                }
                Err(ReadError::Blocked) => return,
                Err(_) => return self.fail("it was reset"),
            }
        }
    }

    fn fail(&mut self, why: &'static str) {
        self.failed.get_or_insert(why);
    }
}

impl App for Fetch {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = streams.accept(Direction::Uni) {
                    self.read(id, streams);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, streams),
            _ => {}
        }
        if self.progress() != Progress::Busy && !connection.is_closed() {
            connection.close(now, 0, Bytes::new());
        }
    }

    fn progress(&self) -> Progress {
        match self.failed {
            Some(why) => Progress::Failed(why),
            None if self.received == self.bytes => Progress::Done,
            None => Progress::Busy,
        }
    }
}
