//! Pipes between quiche's streams and their users.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::{Reader, Writer};

/// Maximum number of bytes in a pipe between a stream and its user.
const PIPE: usize = 64 * 1024;

/// One bidirectional stream: quiche on one side, a pipe to its user on the other.
pub(super) struct Stream {
    id: u64,
    pipe: DuplexStream,
    /// Bytes read from the pipe and not yet taken by quiche.
    outgoing: Vec<u8>,
    /// Bytes read from quiche and not yet taken by the pipe.
    incoming: Vec<u8>,
    read: Half,
    write: Half,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Open,
    /// The end is known and must be passed on.
    Ending,
    Over,
}

impl Stream {
    /// Makes the stream and its user's ends.
    pub(super) fn new(id: u64) -> (Self, Writer, Reader) {
        let (pipe, user) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(user);
        let stream = Self {
            id,
            pipe,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            read: Half::Open,
            write: Half::Open,
        };
        (stream, Box::new(writer), Box::new(reader))
    }

    pub(super) fn is_over(&self) -> bool {
        self.read == Half::Over && self.write == Half::Over
    }

    /// Moves bytes both ways as far as possible; returns true if any moved.
    pub(super) fn pump(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut quiche::Connection,
    ) -> bool {
        let mut moved = false;
        while self.pump_out(cx, connection) || self.pump_in(cx, connection) {
            moved = true;
        }
        moved
    }

    fn pump_out(&mut self, cx: &mut Context<'_>, connection: &mut quiche::Connection) -> bool {
        if self.write == Half::Over {
            return false;
        }
        let mut moved = false;
        if self.outgoing.is_empty() && self.write == Half::Open {
            let mut chunk = vec![0; PIPE];
            let mut chunk = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.pipe).poll_read(cx, &mut chunk) {
                Poll::Ready(Ok(())) if !chunk.filled().is_empty() => {
                    self.outgoing.extend_from_slice(chunk.filled());
                }
                Poll::Ready(_) => self.write = Half::Ending,
                Poll::Pending => return false,
            }
            moved = true;
        }
        let end = self.write == Half::Ending;
        match connection.stream_send(self.id, &self.outgoing, end) {
            Ok(sent) => {
                self.outgoing.drain(..sent);
                moved |= sent > 0;
                if end && self.outgoing.is_empty() {
                    self.write = Half::Over;
                    moved = true;
                }
            }
            Err(quiche::Error::Done) => {}
            Err(_) => self.write = Half::Over,
        }
        moved
    }

    fn pump_in(&mut self, cx: &mut Context<'_>, connection: &mut quiche::Connection) -> bool {
        let mut moved = false;
        if self.incoming.is_empty() && self.read == Half::Open {
            self.incoming.resize(PIPE, 0);
            let received = connection.stream_recv(self.id, &mut self.incoming);
            self.incoming.truncate(received.map_or(0, |(len, _)| len));
            match received {
                Ok((_, true)) => self.read = Half::Ending,
                Ok(_) | Err(quiche::Error::Done | quiche::Error::InvalidStreamState(_)) => {}
                Err(_) => self.read = Half::Ending,
            }
            moved = !self.incoming.is_empty() || self.read == Half::Ending;
        }
        if !self.incoming.is_empty() {
            match Pin::new(&mut self.pipe).poll_write(cx, &self.incoming) {
                Poll::Ready(Ok(written)) => {
                    self.incoming.drain(..written);
                    moved = true;
                }
                Poll::Ready(Err(_)) => {
                    self.incoming.clear();
                    self.read = Half::Ending;
                }
                Poll::Pending => return false,
            }
        }
        if self.incoming.is_empty() && self.read == Half::Ending {
            let _ = Pin::new(&mut self.pipe).poll_shutdown(cx);
            self.read = Half::Over;
            moved = true;
        }
        moved
    }
}
