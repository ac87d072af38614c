//! Traits for code that runs over a connection and over a session of a protocol above it.

use std::time::Duration;

use bytes::Bytes;
use hybriq_proto::{
    owners::streams::{Priority, StreamId},
    wire::error::ConnectionError,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    connection::{self, Stage},
    stream,
};
use crate::errors::{ReadError, SendDatagramError, WriteError};

/// Streams and datagrams of two ends: a [`Connection`](crate::Connection), or a session of a protocol above QUIC,
/// such as WebTransport in the crate `hybriq-http`. Clones are handles of the same connection or session.
///
/// The methods are those of [`Connection`](crate::Connection), which documents them. Application codes have 32 bits
/// here, because every protocol can carry those.
pub trait Connection: Clone + Send + Sync + 'static {
    /// The sending end of a stream.
    type SendStream: SendStream;
    /// The receiving end of a stream.
    type RecvStream: RecvStream;
    /// Reason why it is over.
    type Error: std::error::Error + Send + Sync + 'static;
    /// Reason why a datagram was not sent.
    type DatagramError: std::error::Error + Send + Sync + 'static;

    /// Opens a bidirectional stream, once the peer allows one.
    fn open_bidi(
        &self,
    ) -> impl Future<Output = Result<(Self::SendStream, Self::RecvStream), Self::Error>> + Send;

    /// Opens a unidirectional stream, once the peer allows one.
    fn open_uni(&self) -> impl Future<Output = Result<Self::SendStream, Self::Error>> + Send;

    /// Returns the next bidirectional stream of the peer; `None` after a clean end.
    #[expect(
        clippy::type_complexity,
        reason = "the type of `Connection::accept_bidi`, as a future"
    )]
    fn accept_bidi(
        &self,
    ) -> impl Future<Output = Result<Option<(Self::SendStream, Self::RecvStream)>, Self::Error>> + Send;

    /// Returns the next unidirectional stream of the peer; `None` after a clean end.
    fn accept_uni(
        &self,
    ) -> impl Future<Output = Result<Option<Self::RecvStream>, Self::Error>> + Send;

    /// Returns the largest datagram that can be sent now, in bytes; `None` if the peer takes none.
    fn max_datagram_size(&self) -> Option<usize>;

    /// Sends a datagram.
    ///
    /// # Errors
    /// It cannot be sent, or this is over.
    fn send_datagram(&self, data: Bytes) -> Result<(), Self::DatagramError>;

    /// Sends a datagram, unless it has to wait longer than `max_age`.
    ///
    /// # Errors
    /// As for [`send_datagram`](Self::send_datagram).
    fn send_datagram_for(&self, data: Bytes, max_age: Duration) -> Result<(), Self::DatagramError>;

    /// Returns the next datagram of the peer; `None` after a clean end.
    fn recv_datagram(&self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;

    /// Ends it at once with a code of the application.
    fn close(&self, code: u32, reason: &str);

    /// Waits until it is over, and returns the reason.
    fn closed(&self) -> impl Future<Output = Self::Error> + Send;
}

/// The sending end of a stream of a [`Connection`]. The methods are those of
/// [`SendStream`](crate::SendStream), which documents them.
pub trait SendStream: AsyncWrite + Unpin + Send + 'static {
    /// Reason why the stream takes no more.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the stream's number on its QUIC connection.
    fn id(&self) -> StreamId;

    /// Sets the stream's priority among the streams of its QUIC connection.
    fn set_priority(&mut self, priority: Priority);

    /// Writes some of the data, and returns the number of bytes.
    fn write(&mut self, data: &[u8]) -> impl Future<Output = Result<usize, Self::Error>> + Send;

    /// Writes all of the data.
    fn write_all(&mut self, data: &[u8]) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Writes all of the data without copying it.
    fn write_chunk(&mut self, data: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Ends the stream after the data written so far.
    fn finish(&mut self);

    /// Abandons the stream with a code of the application.
    fn reset(&mut self, code: u32);

    /// Waits until the peer needs nothing more of the stream. `Some` is the code of its STOP_SENDING.
    fn stopped(&self) -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send;

    /// Finishes the stream, and waits until the peer has acknowledged all of it.
    fn acknowledged(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// The receiving end of a stream of a [`Connection`]. The methods are those of
/// [`RecvStream`](crate::RecvStream), which documents them.
pub trait RecvStream: AsyncRead + Unpin + Send + 'static {
    /// Reason why the stream cannot be read.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns the stream's number on its QUIC connection.
    fn id(&self) -> StreamId;

    /// Reads available bytes, and returns their number; 0 is the end of the stream.
    fn read(
        &mut self,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<usize, Self::Error>> + Send;

    /// Reads up to `max` bytes without copying them; `None` is the end of the stream.
    fn read_chunk(
        &mut self,
        max: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;

    /// Reads the rest of the stream, at most `limit` bytes.
    fn read_to_end(
        &mut self,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;

    /// Asks the peer to stop sending, with a code of the application, and drops unread data.
    fn stop(&mut self, code: u32);

    /// Waits until the end of the stream is known, without reading. `Some` is the code with which the peer reset it.
    fn received_reset(&mut self) -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send;
}

impl<S: Stage + Clone + Send + Sync + 'static> Connection for connection::Connection<S> {
    type SendStream = stream::SendStream;
    type RecvStream = stream::RecvStream;
    type Error = S::Error;
    type DatagramError = SendDatagramError;

    async fn open_bidi(&self) -> Result<(stream::SendStream, stream::RecvStream), S::Error> {
        self.open_bidi().await
    }

    async fn open_uni(&self) -> Result<stream::SendStream, S::Error> {
        self.open_uni().await
    }

    async fn accept_bidi(
        &self,
    ) -> Result<Option<(stream::SendStream, stream::RecvStream)>, S::Error> {
        self.accept_bidi().await
    }

    async fn accept_uni(&self) -> Result<Option<stream::RecvStream>, S::Error> {
        self.accept_uni().await
    }

    fn max_datagram_size(&self) -> Option<usize> {
        self.max_datagram_size()
    }

    fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram(data)
    }

    fn send_datagram_for(&self, data: Bytes, max_age: Duration) -> Result<(), SendDatagramError> {
        self.send_datagram_for(data, max_age)
    }

    async fn recv_datagram(&self) -> Result<Option<Bytes>, S::Error> {
        self.recv_datagram().await
    }

    fn close(&self, code: u32, reason: &str) {
        self.close(code.into(), reason.as_bytes());
    }

    async fn closed(&self) -> S::Error {
        let end: ConnectionError = self.closed().await;
        end.into()
    }
}

impl SendStream for stream::SendStream {
    type Error = WriteError;

    fn id(&self) -> StreamId {
        self.id()
    }

    fn set_priority(&mut self, priority: Priority) {
        self.set_priority(priority);
    }

    async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.write(data).await
    }

    async fn write_all(&mut self, data: &[u8]) -> Result<(), WriteError> {
        self.write_all(data).await
    }

    async fn write_chunk(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.write_chunk(data).await
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn reset(&mut self, code: u32) {
        self.reset(code.into());
    }

    async fn stopped(&self) -> Result<Option<u64>, WriteError> {
        self.stopped().await
    }

    async fn acknowledged(&mut self) -> Result<(), WriteError> {
        self.acknowledged().await
    }
}

impl RecvStream for stream::RecvStream {
    type Error = ReadError;

    fn id(&self) -> StreamId {
        self.id()
    }

    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.read(buffer).await
    }

    async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        self.read_chunk(max).await
    }

    async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        self.read_to_end(limit).await
    }

    fn stop(&mut self, code: u32) {
        self.stop(code.into());
    }

    async fn received_reset(&mut self) -> Result<Option<u64>, ReadError> {
        self.received_reset().await
    }
}
