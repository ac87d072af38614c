//! Receiving ends of streams.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId};

use crate::adapter::{
    H3_REQUEST_CANCELLED,
    common::Common,
    error,
    frames::{Frames, Notice, Scope, Violation},
    id, priority,
    settings::MAX_FIELD_SECTION_SIZE,
    uni::Opened,
    unread::Unread,
};

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
// `h3` moves its streams many times for each request.
pub struct RecvStream(Box<Reading>);

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").finish_non_exhaustive()
    }
}

/// State of a receiving end.
struct Reading {
    stream: hybriq::RecvStream,
    unread: Unread,
    common: Arc<Common>,
    /// Number of bytes that are counted as held.
    counted: usize,
    /// True if the stream is noted as one with early data.
    early: bool,
    /// True if the stream is noted as one whose field `:protocol` was renamed.
    renamed: bool,
}

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream, frames: Frames, common: Arc<Common>) -> Self {
        let mut unread = Unread::new(frames);
        if common.protocols.is_some() {
            unread = unread.with_renaming();
        }
        Self(Box::new(Reading {
            stream,
            unread,
            common,
            counted: 0,
            early: false,
            renamed: false,
        }))
    }

    /// Sets bytes that were read already, and the number of those of the type.
    pub(crate) fn with_unread(mut self, head: Bytes, type_len: usize) -> Self {
        self.0.unread.set_head(head, type_len);
        self
    }

    /// Returns a unidirectional stream whose type is known.
    pub(crate) fn opened(opened: Opened, frames: Frames, common: Arc<Common>) -> Self {
        Self::new(opened.stream, frames, common).with_unread(opened.head, opened.type_len)
    }

    /// Returns the next data, or the peer's fault in it.
    pub(crate) fn poll_checked(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Fault>> {
        self.0.poll_checked(cx)
    }

    /// Returns true if data that was read so far came in 0-RTT packets, which can be replayed: see
    /// [`hybriq::RecvStream::is_early`].
    pub fn is_early(&self) -> bool {
        self.0.stream.is_early()
    }
}

impl Reading {
    /// Returns the next data for `h3` of what was received.
    fn next(&mut self) -> Result<Option<Bytes>, Violation> {
        let common = &*self.common;
        let next = self.unread.next(|notice| match notice {
            Notice::Priority(update) => {
                let priority = priority(&update.field);
                let stream = hybriq::StreamId(update.stream);
                common.transport.set_priority(stream, priority);
            }
            Notice::Settings(settings) => {
                if let Some((_, most)) = settings
                    .iter()
                    .find(|(id, _)| *id == MAX_FIELD_SECTION_SIZE)
                {
                    common.counts.set_most_fields(*most);
                }
                if let Some(arrival) = &common.settings {
                    arrival.set(settings);
                }
            }
        });
        let held = self.unread.held();
        if held != self.counted {
            common.counts.on_held(self.counted, held);
            self.counted = held;
        }
        if self.unread.has_renamed() && !self.renamed {
            self.renamed = true;
            if let Some(protocols) = &common.protocols {
                protocols.insert(self.stream.id());
            }
        }
        next
    }

    fn poll_checked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            ready!(self.unread.poll_turn(cx));
            match self.next() {
                Ok(Some(data)) => return Poll::Ready(Ok(Some(data))),
                Ok(None) if self.unread.is_turn_over() => continue,
                Ok(None) => {}
                Err(violation) => return Poll::Ready(Err(self.end(violation))),
            }
            let read = ready!(self.stream.poll_read_chunk(cx, usize::MAX));
            let read = read.map_err(|error| Fault::Transport(error::read(error)))?;
            let Some(data) = read else {
                let last = self.unread.at_end();
                return Poll::Ready(last.map_err(|violation| self.end(violation)));
            };
            if !self.early {
                if let Some(requests) = self.common.transport.early_requests() {
                    self.early = self.stream.is_early();
                    if self.early {
                        requests.insert(self.stream.id());
                    }
                }
            }
            self.unread.push(data);
        }
    }

    /// Ends the stream or the connection for a fault of the peer.
    fn end(&mut self, violation: Violation) -> Fault {
        self.stream.stop(violation.code);
        if violation.scope == Scope::Stream && self.unread.is_past_head() {
            // The sending half has an owner of its own by now.
            self.common.counts.on_broken();
            let id = self.stream.id();
            self.common.transport.reset_stream(id, violation.code);
        }
        if violation.scope == Scope::Connection {
            let reason = violation.reason.as_bytes();
            self.common.transport.close(violation.code, reason);
        }
        Fault::Peer(violation)
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
        self.0.stream.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        id::of(self.0.stream.id())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let common = &*self.common;
        if self.renamed {
            if let Some(protocols) = &common.protocols {
                protocols.forget(self.stream.id());
            }
        }
        if self.early {
            if let Some(requests) = common.transport.early_requests() {
                requests.forget(self.stream.id());
            }
        }
        if self.counted > 0 {
            common.counts.on_held(self.counted, 0);
        }
        // Without effect after the end of the stream.
        self.stream.stop(H3_REQUEST_CANCELLED);
    }
}
