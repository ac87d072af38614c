//! Receiving ends of streams.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use h3::{
    error::Code,
    quic::{self, StreamErrorIncoming, StreamId},
};

use crate::{
    H3_REQUEST_CANCELLED, error, fields,
    frames::{Frames, Notice, Scope, Violation},
    id,
    pieces::{End, Pieces},
    priority,
    protocols::Protocols,
    settings::Arrival,
    transport::Transport,
    uni::Opened,
};

/// Parts of HTTP/3 that are not always on.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    /// Streams of extended CONNECT.
    pub(crate) protocols: Option<Protocols>,
    /// The settings of the peer.
    pub(crate) settings: Option<Arrival>,
}

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
// `h3` moves its streams many times for each request.
pub struct RecvStream(Box<Reading>);

/// State of a receiving end.
struct Reading {
    stream: hybriq::RecvStream,
    /// Bytes that were read and `h3` has not got yet.
    pieces: Pieces,
    /// Number of bytes of the stream's type at the start of those.
    type_len: usize,
    frames: Frames,
    transport: Transport,
    extensions: Option<Arc<Extensions>>,
    /// Data that was read while the fields of the request were not whole.
    held: Vec<Bytes>,
    /// Number of bytes that `h3` got, or gets next.
    passed: u64,
    /// True if the field `:protocol` was renamed.
    renamed: bool,
}

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream, frames: Frames, transport: Transport) -> Self {
        Self(Box::new(Reading {
            stream,
            pieces: if frames.is_message() {
                Pieces::of_message()
            } else {
                Pieces::uncut()
            },
            type_len: 0,
            frames,
            transport,
            extensions: None,
            held: Vec::new(),
            passed: 0,
            renamed: false,
        }))
    }

    /// Sets bytes that were read already, and the number of those of the type.
    pub(crate) fn with_unread(mut self, head: Bytes, type_len: usize) -> Self {
        self.0.pieces.push(head);
        self.0.type_len = type_len;
        self
    }

    /// Sets the parts of HTTP/3 that are on.
    pub(crate) fn with_extensions(mut self, extensions: Option<Arc<Extensions>>) -> Self {
        self.0.extensions = extensions;
        self
    }

    /// Returns a unidirectional stream whose type is known.
    pub(crate) fn opened(opened: Opened, frames: Frames, transport: Transport) -> Self {
        Self::new(opened.stream, frames, transport).with_unread(opened.head, opened.type_len)
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
    /// Follows the frames in received data.
    fn follow(&mut self, data: &[u8]) -> Result<(), Violation> {
        let (transport, extensions) = (&self.transport, self.extensions.as_deref());
        let notice = |notice| match notice {
            Notice::Priority(update) => {
                let priority = priority(&update.field);
                transport.set_priority(hybriq::StreamId(update.stream), priority);
            }
            Notice::Settings(settings) => {
                if let Some(arrival) = extensions.and_then(|on| on.settings.as_ref()) {
                    arrival.set(settings);
                }
            }
        };
        self.frames.follow(data, notice)
    }

    /// Renames the field `:protocol`, for which the fields must be whole: returns `None` before that.
    fn rename(&mut self, data: Bytes) -> Option<Bytes> {
        let protocols = self
            .extensions
            .as_deref()
            .and_then(|on| on.protocols.as_ref());
        let Some(protocols) = protocols else {
            return Some(data);
        };
        if self.frames.is_in_fields() {
            self.held.push(data);
            return None;
        }
        let at = self.frames.take_protocol();
        let start = self.passed;
        let held: usize = self.held.iter().map(Bytes::len).sum();
        self.passed += (held + data.len()) as u64;
        if at.is_none() && held == 0 {
            return Some(data);
        }
        let mut whole = BytesMut::with_capacity(held + data.len());
        self.held
            .drain(..)
            .for_each(|part| whole.extend_from_slice(&part));
        whole.extend_from_slice(&data);
        let at = at.and_then(|at| usize::try_from(at - start).ok());
        if let Some(first) = at.and_then(|at| whole.get_mut(at)) {
            fields::rename(first);
            self.renamed = true;
            protocols.insert(self.stream.id());
        }
        Some(whole.freeze())
    }

    fn poll_checked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            while let Some(piece) = self.pieces.next() {
                let behind = std::mem::take(&mut self.type_len);
                if let Err(violation) = self.follow(piece.get(behind..).unwrap_or_default()) {
                    return Poll::Ready(Err(self.end(violation)));
                }
                if let Some(data) = self.rename(piece) {
                    return Poll::Ready(Ok(Some(data)));
                }
            }
            let read = ready!(self.stream.poll_read_chunk(cx, usize::MAX));
            let read = read.map_err(|error| Fault::Transport(error::read(error)))?;
            let Some(data) = read else {
                return Poll::Ready(self.at_end());
            };
            if let Some(requests) = self.transport.early_requests() {
                if self.stream.is_early() {
                    requests.insert(self.stream.id());
                }
            }
            self.pieces.push(data);
        }
    }

    /// Returns what `h3` gets last, for it finds most ends in the middle of a frame.
    fn at_end(&mut self) -> Result<Option<Bytes>, Fault> {
        match self.pieces.end() {
            End::Clean if self.held.is_empty() => Ok(None),
            End::Clean => Ok(Some(self.held.remove(0))),
            End::InHeader(start) => Ok(Some(start)),
            End::InData => {
                let reason = "the stream ends in the middle of a DATA frame";
                Err(self.end(Violation::on_connection(Code::H3_FRAME_ERROR, reason)))
            }
        }
    }

    /// Ends the stream or the connection for a fault of the peer.
    fn end(&mut self, violation: Violation) -> Fault {
        self.stream.stop(violation.code);
        if violation.scope == Scope::Connection {
            let reason = violation.reason.as_bytes();
            self.transport.close(violation.code, reason);
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
        let extensions = self.extensions.as_deref();
        if let Some(protocols) = extensions.and_then(|on| on.protocols.as_ref()) {
            if self.renamed {
                protocols.forget(self.stream.id());
            }
        }
        // Without effect after the end of the stream.
        self.stream.stop(H3_REQUEST_CANCELLED);
    }
}
