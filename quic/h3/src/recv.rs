//! Receiving ends of streams.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId};

use crate::{
    H3_EXCESSIVE_LOAD, H3_REQUEST_CANCELLED, error,
    frames::{Frames, PriorityUpdate},
    id, priority,
    transport::Transport,
};

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
pub struct RecvStream {
    stream: hybriq::RecvStream,
    frames: Frames,
    transport: Transport,
}

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream, frames: Frames, transport: Transport) -> Self {
        Self {
            stream,
            frames,
            transport,
        }
    }

    /// Follows the frames in received data.
    fn follow(&mut self, data: &[u8]) -> Result<(), StreamErrorIncoming> {
        let transport = &self.transport;
        let update = |update: PriorityUpdate| {
            transport.set_priority(hybriq::StreamId(update.stream), priority(&update.field));
        };
        let Err(error) = self.frames.follow(data, update) else {
            return Ok(());
        };
        self.stream.stop(H3_EXCESSIVE_LOAD);
        if self.stream.id().direction() == hybriq::Direction::Uni {
            // The control stream, without which there is no connection.
            self.transport
                .close(H3_EXCESSIVE_LOAD, error.to_string().as_bytes());
        }
        Err(StreamErrorIncoming::Unknown(Box::new(error)))
    }

    /// Returns true if data that was read so far came in 0-RTT packets, which can be replayed: see
    /// [`hybriq::RecvStream::is_early`].
    pub fn is_early(&self) -> bool {
        self.stream.is_early()
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(self.stream.poll_read_chunk(cx, usize::MAX));
        let read = read.map_err(error::read)?;
        if let Some(data) = &read {
            if self.stream.is_early() {
                if let Some(requests) = self.transport.early_requests() {
                    requests.insert(self.stream.id());
                }
            }
            self.follow(data)?;
        }
        Poll::Ready(Ok(read))
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        id::of(self.stream.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Without effect after the end of the stream.
        self.stream.stop(H3_REQUEST_CANCELLED);
    }
}
