//! Receiving ends of streams.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId};

use crate::{
    H3_REQUEST_CANCELLED, error,
    frames::{Frames, PriorityUpdate, Scope, Violation},
    id, priority,
    transport::Transport,
    uni::Opened,
};

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
pub struct RecvStream {
    stream: hybriq::RecvStream,
    /// Bytes that were read before `h3` had the stream, and the number of those of its type.
    unread: Option<(Bytes, usize)>,
    frames: Frames,
    transport: Transport,
}

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream, frames: Frames, transport: Transport) -> Self {
        Self {
            stream,
            unread: None,
            frames,
            transport,
        }
    }

    /// Returns a unidirectional stream whose type is known.
    pub(crate) fn opened(opened: Opened, frames: Frames, transport: Transport) -> Self {
        Self {
            stream: opened.stream,
            unread: Some((opened.head, opened.type_len)),
            frames,
            transport,
        }
    }

    /// Follows the frames in received data.
    fn follow(&mut self, data: &[u8]) -> Result<(), Violation> {
        let transport = &self.transport;
        let update = |update: PriorityUpdate| {
            transport.set_priority(hybriq::StreamId(update.stream), priority(&update.field));
        };
        self.frames.follow(data, update)
    }

    /// Returns the next data, or the peer's fault in it.
    pub(crate) fn poll_checked(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Fault>> {
        let (read, behind) = if let Some((head, type_len)) = self.unread.take() {
            (Some(head), type_len)
        } else {
            let read = ready!(self.stream.poll_read_chunk(cx, usize::MAX));
            (
                read.map_err(|error| Fault::Transport(error::read(error)))?,
                0,
            )
        };
        if let Some(data) = &read {
            if let Some(requests) = self.transport.early_requests() {
                if self.stream.is_early() {
                    requests.insert(self.stream.id());
                }
            }
            if let Err(violation) = self.follow(data.get(behind..).unwrap_or_default()) {
                self.end(&violation);
                return Poll::Ready(Err(Fault::Peer(violation)));
            }
        }
        Poll::Ready(Ok(read))
    }

    /// Ends the stream or the connection for a fault of the peer.
    fn end(&mut self, violation: &Violation) {
        self.stream.stop(violation.code);
        if violation.scope == Scope::Connection {
            let reason = violation.reason.as_bytes();
            self.transport.close(violation.code, reason);
        }
    }

    /// Returns true if data that was read so far came in 0-RTT packets, which can be replayed: see
    /// [`hybriq::RecvStream::is_early`].
    pub fn is_early(&self) -> bool {
        self.stream.is_early()
    }
}

/// Reason why no more can be read.
pub(crate) enum Fault {
    /// The end of the stream or the connection.
    Transport(StreamErrorIncoming),
    /// The peer broke a rule or a limit.
    Peer(Violation),
}

impl Fault {
    pub(crate) fn into_stream_error(self) -> StreamErrorIncoming {
        match self {
            Self::Transport(error) => error,
            Self::Peer(violation) if violation.scope == Scope::Connection => {
                error::on_stream(quic::ConnectionErrorIncoming::ApplicationClose {
                    error_code: violation.code,
                })
            }
            Self::Peer(violation) => StreamErrorIncoming::Unknown(Box::new(violation)),
        }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.poll_checked(cx).map_err(Fault::into_stream_error)
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
