//! Opening streams, and accepting those of the peer.

use std::task::Poll;

use hybriq_proto::{
    owners::streams::{Direction, StreamId},
    wire::error::ConnectionError,
};

use super::{Connection, stage::Stage};
use crate::{
    api::stream::{self, RecvStream, SendStream},
    worker::{State, WaitFor},
};

impl<S: Stage> Connection<S> {
    /// Opens a bidirectional stream; waits while the peer's limit does not allow another.
    ///
    /// The peer learns of the stream with its first byte. Before the handshake is complete, the limit
    /// is that of the earlier connection.
    ///
    /// # Errors
    /// The connection is over, or the server refused 0-RTT data.
    ///
    /// # Cancel safety
    /// Opens nothing if the future is dropped before it is ready.
    pub async fn open_bidi(&self) -> Result<(SendStream, RecvStream), S::Error> {
        let id = self.open(Direction::Bidi).await?;
        Ok(stream::bidi(&self.handle, id))
    }

    /// Opens a unidirectional stream; waits while the peer's limit does not allow another.
    ///
    /// The peer learns of the stream with its first byte. Before the handshake is complete, the limit
    /// is that of the earlier connection.
    ///
    /// # Errors
    /// The connection is over, or the server refused 0-RTT data.
    ///
    /// # Cancel safety
    /// Opens nothing if the future is dropped before it is ready.
    pub async fn open_uni(&self) -> Result<SendStream, S::Error> {
        let id = self.open(Direction::Uni).await?;
        Ok(stream::send(&self.handle, id))
    }

    /// Returns the next bidirectional stream that the peer opened; `None` once the connection was
    /// closed cleanly, with [the code for it](crate::transport::ApplicationCodes::no_error) or without an error.
    /// A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The connection is over for another reason, or the server refused 0-RTT data.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, S::Error> {
        let id = self.accept(Direction::Bidi).await?;
        Ok(id.map(|id| stream::bidi(&self.handle, id)))
    }

    /// Returns the next unidirectional stream that the peer opened; `None` once the connection was
    /// closed cleanly, with [the code for it](crate::transport::ApplicationCodes::no_error) or without an error.
    /// A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The connection is over for another reason, or the server refused 0-RTT data.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_uni(&self) -> Result<Option<RecvStream>, S::Error> {
        let id = self.accept(Direction::Uni).await?;
        Ok(id.map(|id| stream::recv(&self.handle, id)))
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, S::Error> {
        let open = |state: &mut State| state.poll_open(direction);
        self.wait(WaitFor::Open(direction), open).await
    }

    async fn accept(&self, direction: Direction) -> Result<Option<StreamId>, S::Error> {
        let accept = |state: &mut State| state.poll_accept(direction);
        self.wait(WaitFor::Accept(direction), accept).await
    }
}

impl Connection {
    /// Opens a bidirectional stream; `None` if the peer's limit does not allow another now.
    ///
    /// # Errors
    /// The connection is over.
    pub fn try_open_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, ConnectionError> {
        let id = self.try_open(Direction::Bidi)?;
        Ok(id.map(|id| stream::bidi(&self.handle, id)))
    }

    /// Opens a unidirectional stream; `None` if the peer's limit does not allow another now.
    ///
    /// # Errors
    /// The connection is over.
    pub fn try_open_uni(&self) -> Result<Option<SendStream>, ConnectionError> {
        let id = self.try_open(Direction::Uni)?;
        Ok(id.map(|id| stream::send(&self.handle, id)))
    }

    fn try_open(&self, direction: Direction) -> Result<Option<StreamId>, ConnectionError> {
        match self.handle.lock().poll_open(direction) {
            Poll::Ready(opened) => opened.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Returns how many more bidirectional streams the peer's limit lets this end open now (RFC
    /// 9000 §4.6).
    pub fn openable_bidi(&self) -> u64 {
        self.handle.lock().core.streams().openable(Direction::Bidi)
    }

    /// Returns how many more unidirectional streams the peer's limit lets this end open now (RFC
    /// 9000 §4.6).
    pub fn openable_uni(&self) -> u64 {
        self.handle.lock().core.streams().openable(Direction::Uni)
    }
}
