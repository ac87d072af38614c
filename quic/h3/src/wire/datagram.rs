//! HTTP Datagrams (RFC 9297 §2.1).

use bytes::{Buf as _, Bytes};
use hybriq_proto::StreamId;

use super::varint;
use crate::error::Violation;

/// Largest number of a stream divided by four.
const MAX_QUARTER: u64 = (1 << 60) - 1;

/// Returns the number of bytes before the payload of a datagram that belongs to the request on this stream.
pub const fn datagram_head_len(stream: StreamId) -> usize {
    varint::len(stream.0 / 4)
}

/// Appends what comes before the payload of a datagram that belongs to the request on this stream (RFC 9297 §2.1).
pub fn put_datagram_head(stream: StreamId, out: &mut Vec<u8>) {
    varint::put(stream.0 / 4, out);
}

/// Returns the stream of the request to which a datagram of the transport belongs, and its payload (RFC 9297 §2.1).
///
/// # Errors
/// It names no stream, which ends the connection.
pub fn read_datagram(datagram: Bytes) -> Result<(StreamId, Bytes), Violation> {
    let (quarter, payload) = split(datagram)
        .filter(|(quarter, _)| *quarter <= MAX_QUARTER)
        .ok_or(Violation::DatagramId)?;
    Ok((StreamId(4 * quarter), payload))
}

/// Returns the context id before the payload of an HTTP Datagram of UDP proxying, and the payload (RFC 9298 §4); `None`
/// if there is no whole id.
pub fn read_context(datagram: Bytes) -> Option<(u64, Bytes)> {
    split(datagram)
}

/// Takes an integer off the front of a datagram.
fn split(mut datagram: Bytes) -> Option<(u64, Bytes)> {
    let mut rest = &datagram[..];
    let number = varint::read(&mut rest)?;
    if rest.is_empty() {
        // An empty slice would keep the memory of the whole.
        return Some((number, Bytes::new()));
    }
    let len = datagram.len() - rest.len();
    datagram.advance(len);
    Some((number, datagram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_name_the_stream_of_their_request() {
        for (stream, payload) in [(0, &b"x"[..]), (400, b""), (4 * MAX_QUARTER, b"abc")] {
            let stream = StreamId(stream);
            let mut datagram = Vec::new();
            put_datagram_head(stream, &mut datagram);
            assert_eq!(datagram.len(), datagram_head_len(stream));
            datagram.extend(payload);
            let read = read_datagram(datagram.into());
            assert_eq!(read, Ok((stream, Bytes::from_static(payload))));
        }
        for malformed in [&[][..], &[0x40], &[0xd0, 0, 0, 0, 0, 0, 0, 0, 7]] {
            let read = read_datagram(Bytes::from_static(malformed));
            assert_eq!(read, Err(Violation::DatagramId), "{malformed:?}");
        }
    }
}
