//! Follows the frames of an HTTP/2 connection, in both directions, because h2 and hyper do not report what they do
//! with streams that fail.

pub(crate) mod frames;
pub(crate) mod inflow;
pub(crate) mod pause;
mod streams;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) use self::{
    pause::Late,
    streams::{Side, Streams},
};
use pause::Pause;

/// Follows the frames of a connection.
pub(crate) trait Follower {
    /// Notes that h2 wants to read.
    fn on_turn(&mut self) {}

    /// Reads from the stream, and follows the frames that arrive. Notes those for which h2 may hold something
    /// although their stream is not open.
    fn poll_read<S: AsyncRead>(
        &mut self,
        stream: Pin<&mut S>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        late: &mut Late,
    ) -> Poll<io::Result<()>>;

    /// Follows bytes that were sent.
    fn on_sent(&mut self, bytes: &[u8], late: &mut Late);

    /// Returns the number of open streams that the peer has begun: h2 may hold a reset for each.
    fn peer_streams(&self) -> usize;
}

/// A connection whose frames are followed, if there is a follower. Nothing is read while h2 may hold too many resets.
pub(crate) struct Followed<S, F> {
    stream: S,
    followed: Option<(F, Pause)>,
}

impl<S, F: Follower> Followed<S, F> {
    /// Follows the frames on a stream. h2 sends at most `round` bytes before a reset that it holds.
    pub(crate) fn new(stream: S, follower: Option<F>, round: u64) -> Self {
        let followed = follower.map(|follower| (follower, Pause::new(round)));
        Self { stream, followed }
    }

    /// Follows bytes that were written in these parts.
    fn on_written<'a>(
        &mut self,
        written: &Poll<io::Result<usize>>,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) {
        let Some((follower, pause)) = &mut self.followed else {
            return;
        };
        let mut rest = match written {
            Poll::Ready(Ok(len)) => *len,
            Poll::Ready(Err(_)) => return,
            Poll::Pending => return pause.on_blocked(),
        };
        for part in parts {
            let sent = part.get(..rest).unwrap_or(part);
            follower.on_sent(sent, &mut pause.late);
            pause.on_sent(sent.len(), follower.peer_streams());
            rest -= sent.len();
        }
    }
}

#[cfg(test)]
impl<S, F> Followed<S, F> {
    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(crate) fn follower(&self) -> &F {
        &self.followed.as_ref().unwrap().0
    }

    /// Returns how often reading has paused.
    pub(crate) fn pauses(&self) -> std::sync::Arc<std::sync::atomic::AtomicU64> {
        self.followed.as_ref().unwrap().1.count.clone()
    }
}

impl<S: AsyncRead + Unpin, F: Follower + Unpin> AsyncRead for Followed<S, F> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, followed } = self.get_mut();
        let stream = Pin::new(stream);
        let Some((follower, pause)) = followed else {
            return stream.poll_read(cx, buffer);
        };
        follower.on_turn();
        ready!(pause.poll(cx, follower.peer_streams()));
        let read = follower.poll_read(stream, cx, buffer, &mut pause.late);
        pause.on_read(read.is_pending());
        read
    }
}

impl<S: AsyncWrite + Unpin, F: Follower + Unpin> AsyncWrite for Followed<S, F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.on_written(&written, [data]);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.on_written(&written, data.iter().map(|part| &**part));
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if let Some((_, pause)) = &mut self.followed {
            match flushed {
                Poll::Ready(Ok(())) => pause.on_flushed(),
                Poll::Ready(Err(_)) => {}
                Poll::Pending => pause.on_blocked(),
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
