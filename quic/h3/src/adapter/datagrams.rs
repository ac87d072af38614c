//! HTTP Datagrams (RFC 9297).

use bytes::{Buf as _, BufMut, Bytes, BytesMut};
use hybriq::StreamId;
use hybriq::{Connection, ConnectionError, error::SendDatagramError};

use crate::{error::Code, wire::varint};

/// Largest number of a stream divided by four (RFC 9297 §2.1).
const MAX_QUARTER: u64 = (1 << 60) - 1;

/// The HTTP Datagrams of a connection, each of which belongs to the stream of a request (RFC 9297
/// §2.1). Clones share them.
#[derive(Clone)]
pub struct Datagrams(Connection);

impl std::fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Datagrams").finish_non_exhaustive()
    }
}

/// Error of receiving an HTTP Datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramError {
    /// The peer's datagram names no stream of a request. The connection was closed with
    /// H3_DATAGRAM_ERROR.
    Malformed,
    /// The connection is over.
    Connection(ConnectionError),
}

impl std::fmt::Display for DatagramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed => f.write_str("the peer's HTTP Datagram names no stream"),
            Self::Connection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DatagramError {}

impl Datagrams {
    /// Returns the HTTP Datagrams of a connection. Its peer takes them if its SETTINGS say so
    /// (H3_DATAGRAM, RFC 9297 §2.1.1).
    pub fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Returns the largest size of a datagram's payload for the stream of a request now, in bytes.
    /// `None` if the peer takes no datagrams.
    pub fn max_size(&self, stream: StreamId) -> Option<usize> {
        let max = self.0.max_datagram_size()?;
        max.checked_sub(varint::len(quarter(stream)))
    }

    /// Sends a datagram that belongs to the stream of a request. The payload is copied.
    ///
    /// # Errors
    /// The peer takes no datagrams, the payload is too large, the queue is full, or the connection is
    /// over.
    pub fn send(&self, stream: StreamId, payload: &[u8]) -> Result<(), SendDatagramError> {
        let quarter = quarter(stream);
        let mut datagram = BytesMut::with_capacity(varint::len(quarter) + payload.len());
        varint::put(quarter, &mut datagram);
        datagram.put_slice(payload);
        self.0.send_datagram(datagram.freeze())
    }

    /// Returns the next datagram of the peer, and the stream of the request to which it belongs. `None`
    /// once the connection was closed cleanly.
    ///
    /// # Errors
    /// The peer's datagram is malformed, or the connection is over.
    ///
    /// # Cancel safety
    /// Takes no datagram if the future is dropped before it is ready.
    pub async fn recv(&self) -> Result<Option<(StreamId, Bytes)>, DatagramError> {
        let datagram = match self.0.recv_datagram().await {
            Ok(Some(datagram)) => datagram,
            Ok(None) => return Ok(None),
            Err(error) if super::is_clean(&error) => return Ok(None),
            Err(error) => return Err(DatagramError::Connection(error)),
        };
        if let Some(decoded) = decode(datagram) {
            return Ok(Some(decoded));
        }
        self.0
            .close(Code::H3_DATAGRAM_ERROR.0, b"datagram without a stream");
        Err(DatagramError::Malformed)
    }
}

fn quarter(stream: StreamId) -> u64 {
    stream.0 / 4
}

/// Returns the stream and the payload of a datagram.
fn decode(mut datagram: Bytes) -> Option<(StreamId, Bytes)> {
    let mut rest = &datagram[..];
    let quarter = varint::read(&mut rest)?;
    let len = datagram.len() - rest.len();
    if quarter > MAX_QUARTER {
        return None;
    }
    let stream = StreamId(quarter.checked_mul(4)?);
    if len == datagram.len() {
        // An empty slice would keep the memory of the whole.
        return Some((stream, Bytes::new()));
    }
    datagram.advance(len);
    Some((stream, datagram))
}
