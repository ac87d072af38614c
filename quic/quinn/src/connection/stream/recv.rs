//! The receiving end of a stream.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::ReadBuf;

use crate::{
    ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError, StreamId, VarInt,
};

/// The receiving end of a stream. Dropping it before its end was read stops the peer with code 0.
#[derive(Debug)]
pub struct RecvStream {
    stream: hybriq::RecvStream,
    /// Offset of the next byte of ordered reads.
    offset: u64,
    stopped: bool,
}

/// Data of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in the stream.
    pub offset: u64,
    /// The data.
    pub bytes: Bytes,
}

impl RecvStream {
    pub(crate) fn new(stream: hybriq::RecvStream) -> Self {
        Self {
            stream,
            offset: 0,
            stopped: false,
        }
    }

    /// Reads available bytes, in order, and returns their number; `None` means the end of the stream.
    ///
    /// # Errors
    /// The peer reset the stream, this end stopped it, or the connection is over.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let wanted = buf.len();
        let count = std::future::poll_fn(|cx| self.poll_read(cx, buf)).await?;
        Ok(Some(count).filter(|count| *count > 0 || wanted == 0))
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// The stream ended before, or cannot be read.
    pub async fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ReadExactError> {
        let mut done = 0;
        while done < buf.len() {
            let rest = buf.get_mut(done..).unwrap_or_default();
            match self.read(rest).await? {
                Some(count) => done += count,
                None => return Err(ReadExactError::FinishedEarly(done)),
            }
        }
        Ok(())
    }

    /// Reads available bytes, in order, and returns their number; 0 means the end of the stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        let read = self.stream.poll_read(cx, buf).map_err(ReadError::from);
        if let Poll::Ready(Ok(count)) = read {
            self.offset += count as u64;
        }
        read
    }

    /// Reads available bytes, in order; a buffer without more bytes means the end of the stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read_buf(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReadError>> {
        self.poll_read(cx, buf.initialize_unfilled())
            .map_ok(|count| buf.advance(count))
    }

    /// Reads up to `max_length` bytes without copying them, in order or as they arrived; `None` means the end of the
    /// stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read); an ordered read after an unordered one.
    pub async fn read_chunk(
        &mut self,
        max_length: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        if ordered {
            let bytes = self.stream.read_chunk(max_length).await?;
            return Ok(bytes.map(|bytes| Chunk {
                offset: self.advance(bytes.len()),
                bytes,
            }));
        }
        let chunk = self.stream.read_unordered(max_length).await?;
        Ok(chunk.map(|chunk| Chunk {
            offset: chunk.offset,
            bytes: chunk.bytes,
        }))
    }

    /// Counts bytes that were read in order. Returns the offset of the first.
    fn advance(&mut self, bytes: usize) -> u64 {
        let offset = self.offset;
        self.offset += bytes as u64;
        offset
    }

    /// Reads available data without copying it, into as many chunks as fit. Returns the number of chunks filled; `None`
    /// means the end of the stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub async fn read_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        let count = self.stream.read_chunks(bufs).await?;
        let filled = bufs.iter().take(count.unwrap_or(0));
        self.advance(filled.map(Bytes::len).sum());
        Ok(count)
    }

    /// Reads the rest of the stream, at most `size_limit` bytes.
    ///
    /// # Errors
    /// There is more, or the stream cannot be read.
    pub async fn read_to_end(&mut self, size_limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        match self.stream.read_to_end(size_limit).await {
            Ok(all) => {
                self.advance(all.len());
                Ok(all)
            }
            Err(hybriq::ReadError::TooLong { .. }) => Err(ReadToEndError::TooLong),
            Err(error) => Err(ReadToEndError::Read(error.into())),
        }
    }

    /// Asks the peer to stop sending, and drops unread data.
    ///
    /// # Errors
    /// The stream was already stopped, or its end was read.
    pub fn stop(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        if self.stopped || self.stream.is_finished() {
            return Err(ClosedStream::default());
        }
        self.stopped = true;
        self.stream.stop(error_code.into());
        Ok(())
    }

    /// Returns true on a server if some of the data arrived in 0-RTT packets, which an attacker can replay.
    pub fn is_0rtt(&self) -> bool {
        self.stream.is_early()
    }

    /// Returns the stream's id.
    pub fn id(&self) -> StreamId {
        self.stream.id().into()
    }

    /// Waits until the end of the stream is known, without reading: `Some` is the code with which the peer reset it.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ResetError> {
        match self.stream.received_reset().await {
            Ok(code) => Ok(code.map(VarInt::of_wire)),
            Err(hybriq::ReadError::Connection(error)) => {
                Err(ResetError::ConnectionLost(error.into()))
            }
            Err(_) => Err(ResetError::ZeroRttRejected),
        }
    }
}

impl tokio::io::AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_read_buf(cx, buf).map_err(Into::into)
    }
}

#[cfg(feature = "futures-io")]
impl futures_io::AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_read(self.get_mut(), cx, buf).map_err(Into::into)
    }
}
