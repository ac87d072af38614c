//! Receiving ends of streams.

use std::task::{Context, Poll};

use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId};

use crate::{H3_REQUEST_CANCELLED, error, id};

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
pub struct RecvStream(hybriq::RecvStream);

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream) -> Self {
        Self(stream)
    }

    /// Returns true if data that was read so far came in 0-RTT packets, which can be replayed: see
    /// [`hybriq::RecvStream::is_early`].
    pub fn is_early(&self) -> bool {
        self.0.is_early()
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.0.poll_read_chunk(cx, usize::MAX).map_err(error::read)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.0.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        id::of(self.0.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Without effect after the end of the stream.
        self.0.stop(H3_REQUEST_CANCELLED);
    }
}
