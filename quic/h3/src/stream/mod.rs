//! The peer's streams: messages on bidirectional ones, and the connection's own business on unidirectional ones.

mod message;
mod uni;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::HeaderMap;
use hybriq_proto::StreamId;

pub use message::Receiver;
pub use uni::{Uni, UniReceiver};

/// What a bidirectional stream of the peer is.
///
/// Exhaustive: whoever reads the stream must handle each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A message.
    Message,
    /// A stream of the session of WebTransport on this stream; [`Receiver::take_rest`] has what arrived of it.
    Session(StreamId),
}

/// What was received.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received<H> {
    /// Nothing: more data is needed.
    NeedData,
    /// Nothing: many frames carried nothing. Let other tasks run, and poll again.
    Pause,
    /// Nothing: a field section waits for entries of the dynamic table. [`Connection::poll_event`](crate::Connection::poll_event) says when
    /// they have arrived.
    Blocked,
    /// The head of a message, or of an interim response (RFC 9110 §15.2).
    Head(H),
    /// The head is larger than the settings allow, and was not read. A server may answer with 431. Content and trailers
    /// after it are skipped.
    HeadTooLarge,
    /// Content.
    Data(Bytes),
    /// The trailers.
    Trailers(HeaderMap),
    /// The rest of the stream belongs to the session of WebTransport on this stream;
    /// [`Receiver::take_rest`] has what arrived of it.
    Session(StreamId),
    /// The end of the message.
    End,
}
