//! Follows the frames of an HTTP/2 client, to learn about its requests.

mod requests;

#[cfg(test)]
mod tests;

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    server::clock,
    versions::http2::{
        Followed, Follower, Late,
        frames::{CONTINUATION, Frames},
    },
};
use requests::Requests;

/// Receiver of what the frames say.
pub(super) trait Observer {
    /// Returns the number of requests that arrived, including those that failed before they could.
    fn requests(&self) -> u64;

    /// Notes a request that failed before it arrived: it was malformed, its fields were too large, or there were too
    /// many at once.
    fn on_failed(&self);

    /// Notes the data of a DATA frame on an open stream.
    fn on_data(&self, len: u64);

    /// Notes a field block of trailers with this length. Returns the bytes of memory that they take.
    fn on_trailers(&self, len: u64) -> u64;

    /// Notes the end of streams whose trailers take this many bytes of memory.
    fn on_closed(&self, bytes: u64);

    /// Notes how much of an incomplete field block has arrived.
    fn on_partial_block(&self, len: u64);

    /// Notes since when the server has been waiting for the rest of a field block.
    fn on_field_block(&self, since: Option<Instant>);
}

/// What the frames of a connection have said.
pub(super) struct Observed<O> {
    observer: Arc<O>,
    received: Frames,
    sent: Frames,
    requests: Requests,
    block: Option<Block>,
    /// Requests that had arrived when h2 had handled everything it had read.
    came: Option<u64>,
}

/// A field block that has begun but not ended.
#[derive(Clone, Copy)]
struct Block {
    number: u64,
    since: Instant,
    is_told: bool,
}

/// Follows the frames of a client if there is an observer, which is the case for HTTP/2. h2 sends at most `round`
/// bytes before a reset that it holds.
pub(super) fn observe<S, O: Observer>(
    stream: S,
    observer: Option<Arc<O>>,
    round: u64,
) -> Followed<S, Observed<O>> {
    let observed = observer.map(|observer| Observed {
        observer,
        received: Frames::of_client(),
        sent: Frames::of_server(),
        requests: Requests::new(),
        block: None,
        came: None,
    });
    Followed::new(stream, observed, round)
}

impl<O: Observer> Observed<O> {
    fn on_received(&mut self, mut bytes: &[u8], late: &mut Late) {
        if let Some(Block { is_told: true, .. }) = self.block {
            self.tell_block(false);
        }
        while let Some(frame) = self.received.next_in(&mut bytes) {
            if frame.kind != CONTINUATION {
                self.on_whole_block();
            }
            if let Some(len) = self.requests.on_received(frame, late) {
                self.observer.on_data(len);
            }
        }
        let number = self.received.field_block();
        let came = self
            .requests
            .block()
            .saturating_sub(self.received.missing());
        let came = number.map_or(0, |_| came);
        if came > 0 || self.block.is_some() {
            self.observer.on_partial_block(came);
        }
        if number.is_none() {
            self.on_whole_block();
        }
        self.tell_closed();
        if number != self.block.map(|block| block.number) {
            self.block = number.map(|number| Block {
                number,
                since: clock::now(),
                is_told: false,
            });
        }
    }

    fn on_whole_block(&mut self) {
        let count = |len| self.observer.on_trailers(len);
        self.requests.on_whole_block(count);
    }

    fn tell_closed(&mut self) {
        let bytes = self.requests.take_closed();
        if bytes > 0 {
            self.observer.on_closed(bytes);
        }
    }

    /// Notes that the server waits for the client: the client is slow only then.
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
}

impl<O: Observer> Follower for Observed<O> {
    /// Finds the requests that failed. Nothing tells which they are: h2 resets some, answers some itself, and sends
    /// nothing for others. But hyper takes all requests that h2 has for it, one after another, and lets h2 read again
    /// after each. If none arrived since a read was pending, none of those that h2 has read will.
    fn on_turn(&mut self) {
        if self.came == Some(self.observer.requests()) {
            let is_in_block = self.received.field_block().is_some();
            let whole = self.requests.whole(is_in_block);
            for _ in self.observer.requests()..whole {
                self.observer.on_failed();
            }
        }
        self.came = Some(self.observer.requests());
    }

    fn poll_read<S: AsyncRead>(
        &mut self,
        stream: Pin<&mut S>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        late: &mut Late,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = stream.poll_read(cx, buffer);
        if read.is_pending() {
            self.on_nothing_received();
        }
        ready!(read)?;
        self.came = None;
        self.on_received(buffer.filled().get(before..).unwrap_or_default(), late);
        Poll::Ready(Ok(()))
    }

    fn on_sent(&mut self, mut bytes: &[u8], late: &mut Late) {
        while let Some(frame) = self.sent.next_in(&mut bytes) {
            self.requests.on_sent(frame, late);
        }
        self.tell_closed();
    }

    fn peer_streams(&self) -> usize {
        self.requests.open()
    }
}
