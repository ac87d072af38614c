//! Traits for protocols that run over more than sessions: those of `hybriq`, and those of `web-transport-trait`.

use std::time::Duration;

use bytes::Bytes;
use hybriq::{StreamId, generic, transport::Priority};
use web_transport_trait as traits;

use super::{RecvStream, SendStream, Session, SessionError, StreamError};

/// Counters and estimates of a session's connection.
struct Stats(hybriq::Connection);

impl traits::Error for SessionError {
    fn session_error(&self) -> Option<(u32, String)> {
        match self {
            Self::Closed { code, reason } => Some((*code, reason.clone())),
            _ => None,
        }
    }
}

impl traits::Error for StreamError {
    fn session_error(&self) -> Option<(u32, String)> {
        match self {
            Self::Session(error) => error.session_error(),
            _ => None,
        }
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Reset(code) | Self::Stopped(code) => *code,
            _ => None,
        }
    }
}

impl traits::Stats for Stats {
    fn rtt(&self) -> Option<Duration> {
        Some(self.0.rtt())
    }

    fn estimated_send_rate(&self) -> Option<u64> {
        self.0.path_stats().delivery_rate.map(|rate| rate * 8)
    }
}

impl traits::Session for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = SessionError;

    async fn accept_uni(&self) -> Result<RecvStream, SessionError> {
        self.next_uni().await
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        self.next_bidi().await
    }

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        self.open_bidi().await
    }

    async fn open_uni(&self) -> Result<SendStream, SessionError> {
        self.open_uni().await
    }

    fn send_datagram(&self, payload: Bytes) -> Result<(), SessionError> {
        self.send_datagram(payload)
    }

    async fn recv_datagram(&self) -> Result<Bytes, SessionError> {
        self.next_datagram().await
    }

    fn max_datagram_size(&self) -> usize {
        self.max_datagram_size().unwrap_or_default()
    }

    fn close(&self, code: u32, reason: &str) {
        self.close(code, reason);
    }

    async fn closed(&self) -> SessionError {
        self.closed().await
    }

    fn stats(&self) -> impl traits::Stats {
        Stats(self.connection().clone())
    }
}

impl traits::SendStream for SendStream {
    type Error = StreamError;

    async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        self.write(data).await
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), StreamError> {
        self.write_chunk(chunk).await
    }

    /// Maps the sign of the order to three urgencies.
    fn set_priority(&mut self, order: i32) {
        let urgency = match order {
            1.. => 2,
            0 => 3,
            _ => 4,
        };
        self.set_priority(Priority::new(urgency));
    }

    fn finish(&mut self) -> Result<(), StreamError> {
        self.try_finish()
    }

    fn reset(&mut self, code: u32) {
        self.reset(code);
    }

    async fn closed(&mut self) -> Result<(), StreamError> {
        let stopped = self.stopped().await?;
        stopped.map_or(Ok(()), |code| Err(StreamError::Stopped(Some(code))))
    }
}

impl traits::RecvStream for RecvStream {
    type Error = StreamError;

    async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, StreamError> {
        let count = self.read(buffer).await?;
        Ok((count > 0 || buffer.is_empty()).then_some(count))
    }

    async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        self.read_chunk(max).await
    }

    fn stop(&mut self, code: u32) {
        self.stop(code);
    }

    async fn closed(&mut self) -> Result<(), StreamError> {
        let reset = self.received_reset().await?;
        reset.map_or(Ok(()), |code| Err(StreamError::Reset(Some(code))))
    }
}

impl generic::Connection for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = SessionError;
    type DatagramError = SessionError;

    async fn open_bidi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        self.open_bidi().await
    }

    async fn open_uni(&self) -> Result<SendStream, SessionError> {
        self.open_uni().await
    }

    async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, SessionError> {
        self.accept_bidi().await
    }

    async fn accept_uni(&self) -> Result<Option<RecvStream>, SessionError> {
        self.accept_uni().await
    }

    fn max_datagram_size(&self) -> Option<usize> {
        self.max_datagram_size()
    }

    fn send_datagram(&self, data: Bytes) -> Result<(), SessionError> {
        self.send_datagram(data)
    }

    fn send_datagram_for(&self, data: Bytes, max_age: Duration) -> Result<(), SessionError> {
        self.send_datagram_for(data, max_age)
    }

    async fn recv_datagram(&self) -> Result<Option<Bytes>, SessionError> {
        self.recv_datagram().await
    }

    fn close(&self, code: u32, reason: &str) {
        self.close(code, reason);
    }

    async fn closed(&self) -> SessionError {
        self.closed().await
    }
}

impl generic::SendStream for SendStream {
    type Error = StreamError;

    fn id(&self) -> StreamId {
        self.id()
    }

    fn set_priority(&mut self, priority: Priority) {
        self.set_priority(priority);
    }

    async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        self.write(data).await
    }

    async fn write_all(&mut self, data: &[u8]) -> Result<(), StreamError> {
        self.write_all(data).await
    }

    async fn write_chunk(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.write_chunk(data).await
    }

    fn finish(&mut self) {
        self.finish();
    }

    fn reset(&mut self, code: u32) {
        self.reset(code);
    }

    async fn stopped(&self) -> Result<Option<u64>, StreamError> {
        Ok(self.stopped().await?.map(u64::from))
    }

    async fn acknowledged(&mut self) -> Result<(), StreamError> {
        self.acknowledged().await
    }
}

impl generic::RecvStream for RecvStream {
    type Error = StreamError;

    fn id(&self) -> StreamId {
        self.id()
    }

    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        self.read(buffer).await
    }

    async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        self.read_chunk(max).await
    }

    async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, StreamError> {
        self.read_to_end(limit).await
    }

    fn stop(&mut self, code: u32) {
        self.stop(code);
    }

    async fn received_reset(&mut self) -> Result<Option<u64>, StreamError> {
        Ok(self.received_reset().await?.map(u64::from))
    }
}
