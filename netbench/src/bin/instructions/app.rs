//! The application of one end.

use hybriq_proto::{
    connection::{Connection, Event},
    owners::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError},
};

use crate::{REQUEST, Result};

/// Data that the application writes and reads at once.
static CHUNK: [u8; 16 * 1024] = [0; 16 * 1024];

/// Writer to one stream and reader of another.
#[derive(Default)]
pub(crate) struct App {
    pub(crate) confirmed: bool,
    pub(crate) stream: Option<StreamId>,
    pub(crate) to_send: usize,
    pub(crate) received: usize,
    pub(crate) ended: bool,
    pub(crate) buffer: Vec<u8>,
}

impl App {
    pub(crate) fn on_event(&mut self, event: &Event, connection: &mut Connection) -> Result<()> {
        match event {
            Event::HandshakeConfirmed => self.confirmed = true,
            Event::Stream(StreamEvent::Writable(_)) => self.write(connection.streams())?,
            Event::Stream(StreamEvent::Opened(Direction::Uni)) => {
                while let Some(id) = connection.streams().accept(Direction::Uni) {
                    self.read(id, connection.streams())?;
                }
            }
            Event::Stream(StreamEvent::Opened(Direction::Bidi)) => {
                while let Some(id) = connection.streams().accept(Direction::Bidi) {
                    self.stream = Some(id);
                    self.to_send = REQUEST;
                    self.read(id, connection.streams())?;
                    self.write(connection.streams())?;
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection.streams())?,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, streams: &mut Streams) -> Result<()> {
        let Some(id) = self.stream else { return Ok(()) };
        while self.to_send > 0 {
            let (chunk, _) = CHUNK.split_at(self.to_send.min(CHUNK.len()));
            match streams.write(id, chunk) {
                Ok(taken) => self.to_send -= taken,
                Err(WriteError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.stream = None;
        streams
            .finish(id)
            .map_err(|_| "the stream closed under its writer".into())
    }

    pub(crate) fn read(&mut self, id: StreamId, streams: &mut Streams) -> Result<()> {
        self.buffer.resize(CHUNK.len(), 0);
        loop {
            match streams.read(id, &mut self.buffer) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(read) => self.received += read,
                Err(ReadError::Blocked) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
