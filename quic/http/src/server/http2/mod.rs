//! The frames of a connection over HTTP/2, in both directions. h2 and hyper do not tell what they do with
//! requests that fail, so the bytes are followed on their way.

mod frames;
mod streams;

#[cfg(test)]
mod tests;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::clock;
use frames::Frames;
use streams::Streams;

/// Resets of streams that h2 may hold because the client does not take them, before nothing more is read. Frames
/// that are in the buffer of h2 by then may add as many.
pub(super) const RESETS: usize = 1024;

/// Who is told what the frames say.
pub(super) trait Observer {
    /// Returns the number of requests that came, and of those that failed before that.
    fn requests(&self) -> u64;

    /// Notes a request that failed before it came: h2 has reset its stream for an error of the client.
    fn on_failed(&self);

    /// Notes the data of a DATA frame on an open stream.
    fn on_data(&self, len: u64);

    /// Notes since when a field block is not whole for which the server waits.
    fn on_field_block(&self, since: Option<Instant>);
}

/// A connection whose frames are followed, if there is an observer: that of HTTP/2.
pub(super) struct Observed<S, O> {
    stream: S,
    connection: Option<Connection<O>>,
}

/// What the frames of a connection have said.
struct Connection<O> {
    observer: Arc<O>,
    received: Frames,
    sent: Frames,
    streams: Streams,
    block: Option<Block>,
    pause: Pause,
}

/// A field block that has begun and not ended.
#[derive(Clone, Copy)]
struct Block {
    number: u64,
    since: Instant,
    is_told: bool,
}

/// Stops reading while h2 may hold too many resets. Their number is not known: h2 ignores some frames that could
/// make it reset a stream.
struct Pause {
    is_on: bool,
    /// Bytes that leave before a reset, at most.
    round: u64,
    /// Bytes that were sent during the pause.
    sent: u64,
    /// Nothing waits to be sent.
    is_flushed: bool,
    reader: Option<Waker>,
}

impl Pause {
    const fn new(round: u64) -> Self {
        Self {
            is_on: false,
            round,
            sent: 0,
            is_flushed: false,
            reader: None,
        }
    }

    fn begin(&mut self) {
        self.is_on = true;
        self.sent = 0;
        self.is_flushed = false;
    }

    /// Returns true if all resets have been sent that h2 held when the pause began.
    fn is_over(&self) -> bool {
        self.is_flushed || self.sent >= self.round
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl<S, O: Observer> Observed<S, O> {
    /// Follows the frames on a stream. At most `round` bytes of h2 leave before a reset that it holds.
    pub(super) fn new(stream: S, observer: Option<Arc<O>>, round: u64) -> Self {
        let connection = observer.map(|observer| Connection {
            observer,
            received: Frames::of_client(),
            sent: Frames::of_server(),
            streams: Streams::new(),
            block: None,
            pause: Pause::new(round),
        });
        Self { stream, connection }
    }
}

impl<O: Observer> Connection<O> {
    fn on_received(&mut self, bytes: &[u8]) {
        if let Some(Block { is_told: true, .. }) = self.block {
            self.tell_block(false);
        }
        let (streams, observer) = (&mut self.streams, &self.observer);
        self.received.follow(bytes, |frame| {
            if let Some(len) = streams.on_received(frame) {
                observer.on_data(len);
            }
        });
        let number = self.received.field_block();
        if number != self.block.map(|block| block.number) {
            self.block = number.map(|number| Block {
                number,
                since: clock::now(),
                is_told: false,
            });
        }
    }

    /// Notes that the server waits for the client: only then it is the client that takes its time.
    fn on_nothing_received(&mut self) {
        if let Some(Block { is_told: false, .. }) = self.block {
            self.tell_block(true);
        }
    }

    fn tell_block(&mut self, is_told: bool) {
        if let Some(block) = &mut self.block {
            block.is_told = is_told;
            let since = is_told.then_some(block.since);
            self.observer.on_field_block(since);
        }
    }

    fn on_sent(&mut self, bytes: &[u8]) {
        let (streams, observer) = (&mut self.streams, &self.observer);
        self.sent.follow(bytes, |frame| {
            if streams.on_sent(frame, || observer.requests()) {
                observer.on_failed();
            }
        });
        self.pause.sent += bytes.len() as u64;
        self.pause.is_flushed = false;
        if self.pause.is_over() || !self.is_full() {
            self.pause.wake();
        }
    }

    /// Notes that h2 has sent all that it can send now.
    fn on_flushed(&mut self) {
        self.pause.is_flushed = true;
        self.pause.wake();
    }

    fn is_full(&self) -> bool {
        self.streams.unsent_resets() >= RESETS
    }

    /// Waits while h2 may hold too many resets.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_full() {
            self.pause.is_on = false;
            return Poll::Ready(());
        }
        if !self.pause.is_on {
            self.pause.begin();
        }
        if self.pause.is_over() {
            self.streams.on_resets_sent();
            self.pause.is_on = false;
            return Poll::Ready(());
        }
        self.pause.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin, O: Observer> AsyncRead for Observed<S, O> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, connection } = self.get_mut();
        let stream = Pin::new(stream);
        let Some(connection) = connection else {
            return stream.poll_read(cx, buffer);
        };
        ready!(connection.poll_pause(cx));
        let before = buffer.filled().len();
        let read = stream.poll_read(cx, buffer);
        if read.is_pending() {
            connection.on_nothing_received();
        }
        ready!(read)?;
        connection.on_received(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin, O: Observer> AsyncWrite for Observed<S, O> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, connection } = self.get_mut();
        let len = ready!(Pin::new(stream).poll_write(cx, data))?;
        if let Some(connection) = connection {
            connection.on_sent(data.get(..len).unwrap_or(data));
        }
        Poll::Ready(Ok(len))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, connection } = self.get_mut();
        let len = ready!(Pin::new(stream).poll_write_vectored(cx, data))?;
        if let Some(connection) = connection {
            let mut rest = len;
            for part in data {
                let sent = part.get(..rest).unwrap_or(part);
                connection.on_sent(sent);
                rest -= sent.len();
            }
        }
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, connection } = self.get_mut();
        ready!(Pin::new(stream).poll_flush(cx))?;
        if let Some(connection) = connection {
            connection.on_flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
