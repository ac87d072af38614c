//! The `poll` twins of a connection's waiting operations.

use std::task::{Context, Poll};

use bytes::Bytes;
use hybriq_proto::{
    owners::streams::{Direction, StreamId},
    wire::error::ConnectionError,
};

use super::{Connection, stage::Stage};
use crate::{
    api::stream::{self, RecvStream, SendStream},
    worker::{Handle, State, WaitFor},
};

/// Each method wakes the task of its last call with this handle. Clones wait independently, and
/// dropping a handle ends its waits.
impl<S: Stage> Connection<S> {
    /// Opens a bidirectional stream; the twin of [`open_bidi`](Self::open_bidi).
    ///
    /// # Errors
    /// As for [`open_bidi`](Self::open_bidi).
    pub fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), S::Error>> {
        let id = self.poll_open(Direction::Bidi, cx);
        id.map_ok(|id| stream::bidi(&self.handle, id))
    }

    /// Opens a unidirectional stream; the twin of [`open_uni`](Self::open_uni).
    ///
    /// # Errors
    /// As for [`open_uni`](Self::open_uni).
    pub fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, S::Error>> {
        let id = self.poll_open(Direction::Uni, cx);
        id.map_ok(|id| stream::send(&self.handle, id))
    }

    /// Returns the next bidirectional stream of the peer; the twin of
    /// [`accept_bidi`](Self::accept_bidi).
    ///
    /// # Errors
    /// As for [`accept_bidi`](Self::accept_bidi).
    #[expect(
        clippy::type_complexity,
        reason = "the type of `accept_bidi`, in a `Poll`"
    )]
    pub fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(SendStream, RecvStream)>, S::Error>> {
        let id = self.poll_accept(Direction::Bidi, cx);
        id.map_ok(|id| id.map(|id| stream::bidi(&self.handle, id)))
    }

    /// Returns the next unidirectional stream of the peer; the twin of
    /// [`accept_uni`](Self::accept_uni).
    ///
    /// # Errors
    /// As for [`accept_uni`](Self::accept_uni).
    pub fn poll_accept_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<RecvStream>, S::Error>> {
        let id = self.poll_accept(Direction::Uni, cx);
        id.map_ok(|id| id.map(|id| stream::recv(&self.handle, id)))
    }

    fn poll_open(
        &mut self,
        direction: Direction,
        cx: &Context<'_>,
    ) -> Poll<Result<StreamId, S::Error>> {
        self.poll(WaitFor::Open(direction), cx, |state| {
            state.poll_open(direction)
        })
    }

    fn poll_accept(
        &mut self,
        direction: Direction,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<StreamId>, S::Error>> {
        self.poll(WaitFor::Accept(direction), cx, |state| {
            state.poll_accept(direction)
        })
    }

    /// Returns the next datagram of the peer; the twin of [`recv_datagram`](Self::recv_datagram).
    ///
    /// # Errors
    /// As for [`recv_datagram`](Self::recv_datagram).
    pub fn poll_recv_datagram(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, S::Error>> {
        self.poll(WaitFor::Datagram, cx, State::poll_recv_datagram)
    }

    /// Returns the reason once the connection is over; the twin of [`closed`](Self::closed).
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let closed = |_: &Handle, state: &mut State| state.poll_closed();
        self.handle.poll(WaitFor::End, cx, closed)
    }
}
