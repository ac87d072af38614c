//! Streams and datagrams by the traits of the crates `futures-core` and `futures-sink`.
//!
//! Each of these types holds a handle of its connection. After an error, and after the end, there are no
//! more items.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use super::{
    connection::{Connection, Established, Stage},
    stream::{RecvStream, SendStream},
};
use crate::errors::SendDatagramError;

/// The bidirectional streams that the peer opens: [`Connection::accept_bidi`].
#[must_use = "it accepts nothing unless it is polled"]
#[derive(Debug)]
pub struct BidiStreams<S: Stage = Established>(Option<Connection<S>>);

/// The unidirectional streams that the peer opens: [`Connection::accept_uni`].
#[must_use = "it accepts nothing unless it is polled"]
#[derive(Debug)]
pub struct UniStreams<S: Stage = Established>(Option<Connection<S>>);

/// The datagrams of a connection: a `Stream` of [`Connection::recv_datagram`], and a `Sink` that waits for room in the
/// queue as [`Connection::send_datagram_wait`] does. Closing the sink does not close the connection.
#[must_use = "it moves no datagrams unless it is polled"]
#[derive(Debug)]
pub struct Datagrams {
    connection: Connection,
    /// A datagram for which the queue had no room.
    waiting: Option<Bytes>,
    received_all: bool,
}

impl<S: Stage + Clone> Connection<S> {
    /// Returns the bidirectional streams that the peer opens, as a `Stream`: see [`accept_bidi`](Self::accept_bidi).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) {
    /// use std::{future::poll_fn, pin::Pin};
    /// use futures_core::Stream as _;
    ///
    /// let mut streams = connection.bidi_streams();
    /// // Or `streams.next()` with the crate `futures-util`.
    /// while let Some(accepted) = poll_fn(|cx| Pin::new(&mut streams).poll_next(cx)).await {
    ///     println!("{accepted:?}");
    /// }
    /// # }
    /// ```
    pub fn bidi_streams(&self) -> BidiStreams<S> {
        BidiStreams(Some(self.clone()))
    }

    /// Returns the unidirectional streams that the peer opens, as a `Stream`: see [`accept_uni`](Self::accept_uni).
    pub fn uni_streams(&self) -> UniStreams<S> {
        UniStreams(Some(self.clone()))
    }
}

impl Connection {
    /// Returns the datagrams of the connection, as a `Stream` and a `Sink`.
    pub fn datagrams(&self) -> Datagrams {
        Datagrams {
            connection: self.clone(),
            waiting: None,
            received_all: false,
        }
    }
}

impl<S: Stage + Unpin> Stream for BidiStreams<S> {
    type Item = Result<(SendStream, RecvStream), S::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        poll_item(&mut self.get_mut().0, |connection| {
            connection.poll_accept_bidi(cx)
        })
    }
}

impl<S: Stage + Unpin> Stream for UniStreams<S> {
    type Item = Result<RecvStream, S::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        poll_item(&mut self.get_mut().0, |connection| {
            connection.poll_accept_uni(cx)
        })
    }
}

/// Returns the next item of a connection, whose handle is dropped at the end.
fn poll_item<C, T, E>(
    connection: &mut Option<C>,
    accept: impl FnOnce(&mut C) -> Poll<Result<Option<T>, E>>,
) -> Poll<Option<Result<T, E>>> {
    let Some(open) = connection else {
        return Poll::Ready(None);
    };
    let item = ready!(accept(open)).transpose();
    if !matches!(item, Some(Ok(_))) {
        *connection = None;
    }
    Poll::Ready(item)
}

impl Stream for Datagrams {
    type Item = Result<Bytes, <Established as Stage>::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.received_all {
            return Poll::Ready(None);
        }
        let item = ready!(this.connection.poll_recv_datagram(cx)).transpose();
        this.received_all = !matches!(item, Some(Ok(_)));
        Poll::Ready(item)
    }
}

impl Sink<Bytes> for Datagrams {
    type Error = SendDatagramError;

    fn poll_ready(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.poll_flush(cx)
    }

    /// Queues the datagram, or keeps it until there is room.
    fn start_send(self: Pin<&mut Self>, datagram: Bytes) -> Result<(), SendDatagramError> {
        let this = self.get_mut();
        match this.connection.try_send_datagram(&datagram) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                this.waiting = Some(datagram);
                Ok(())
            }
        }
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendDatagramError>> {
        let this = self.get_mut();
        let Some(datagram) = &this.waiting else {
            return Poll::Ready(Ok(()));
        };
        let sent = ready!(this.connection.poll_send_datagram(cx, datagram));
        this.waiting = None;
        Poll::Ready(sent)
    }

    fn poll_close(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.poll_flush(cx)
    }
}
