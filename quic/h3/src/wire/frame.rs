//! Types of frames and of streams, and the heads of frames (RFC 9114 §6.2 and §7).

use bytes::{Buf, Bytes};

use super::varint;

/// DATA (RFC 9114 §7.2.1).
pub(crate) const DATA: u64 = 0x00;
/// HEADERS (RFC 9114 §7.2.2).
pub(crate) const HEADERS: u64 = 0x01;
/// CANCEL_PUSH (RFC 9114 §7.2.3).
pub(crate) const CANCEL_PUSH: u64 = 0x03;
/// SETTINGS (RFC 9114 §7.2.4).
pub(crate) const SETTINGS: u64 = 0x04;
/// PUSH_PROMISE (RFC 9114 §7.2.5).
pub(crate) const PUSH_PROMISE: u64 = 0x05;
/// GOAWAY (RFC 9114 §7.2.6).
pub(crate) const GOAWAY: u64 = 0x07;
/// MAX_PUSH_ID (RFC 9114 §7.2.7).
pub(crate) const MAX_PUSH_ID: u64 = 0x0d;
/// The signal that the rest of a bidirectional stream belongs to a session of WebTransport.
pub(crate) const WEBTRANSPORT_STREAM: u64 = 0x41;
/// PRIORITY_UPDATE for a request (RFC 9218 §7.2).
pub(crate) const PRIORITY_UPDATE: u64 = 0xf_0700;
/// PRIORITY_UPDATE for a push (RFC 9218 §7.2).
pub(crate) const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

/// Returns true for the types of HTTP/2 that HTTP/3 forbids (RFC 9114 §7.2.8).
pub(crate) const fn is_of_http2(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Returns true for the types that mean something on a bidirectional stream, or are forbidden there. Others are
/// skipped (RFC 9114 §9).
pub(crate) const fn is_known(kind: u64) -> bool {
    let is_of_http3 = matches!(
        kind,
        DATA | HEADERS
            | CANCEL_PUSH
            | SETTINGS
            | PUSH_PROMISE
            | GOAWAY
            | MAX_PUSH_ID
            | WEBTRANSPORT_STREAM
            | PRIORITY_UPDATE
            | PRIORITY_UPDATE_PUSH
    );
    is_of_http3 || is_of_http2(kind)
}

/// Types of unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
pub(crate) mod uni {
    pub(crate) const CONTROL: u64 = 0x00;
    pub(crate) const PUSH: u64 = 0x01;
    pub(crate) const ENCODER: u64 = 0x02;
    pub(crate) const DECODER: u64 = 0x03;
    pub(crate) const WEBTRANSPORT: u64 = 0x54;
}

/// Type and length of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: u64,
    pub(crate) len: u64,
}

/// Integers that may arrive in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    bytes: [u8; 16],
    len: u8,
}

impl Partial {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; 16],
            len: 0,
        }
    }

    /// Returns true if the beginning of an integer was taken.
    pub(crate) const fn is_begun(&self) -> bool {
        self.len > 0
    }

    /// Takes what `read` finds at the start of the data, or all of the data if that is not whole. What is read has
    /// at most 16 bytes.
    pub(crate) fn take<T>(
        &mut self,
        data: &mut Bytes,
        read: impl Fn(&mut &[u8]) -> Option<T>,
    ) -> Option<T> {
        if !self.is_begun() {
            let mut rest = &data[..];
            if let Some(value) = read(&mut rest) {
                data.advance(data.len() - rest.len());
                return Some(value);
            }
        }
        while data.has_remaining() {
            let byte = data.get_u8();
            if let Some(place) = self.bytes.get_mut(usize::from(self.len)) {
                *place = byte;
                self.len += 1;
            }
            let mut all = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
            if let Some(value) = read(&mut all) {
                self.len = 0;
                return Some(value);
            }
        }
        None
    }
}

impl Head {
    /// Reads a head if it is whole.
    pub(crate) fn read(data: &mut &[u8]) -> Option<Self> {
        let mut rest = *data;
        let kind = varint::read(&mut rest)?;
        let len = varint::read(&mut rest)?;
        *data = rest;
        Some(Self { kind, len })
    }

    /// Appends the head.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        varint::put(self.kind, out);
        varint::put(self.len, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_however_they_are_cut() {
        let head = Head {
            kind: PRIORITY_UPDATE,
            len: 70_000,
        };
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        bytes.push(7);
        for cut in 0..bytes.len() {
            let mut partial = Partial::default();
            let (first, second) = bytes.split_at(cut);
            let mut first = Bytes::copy_from_slice(first);
            let mut second = Bytes::copy_from_slice(second);
            let read = partial.take(&mut first, Head::read);
            let read = read.or_else(|| partial.take(&mut second, Head::read));
            assert_eq!(read, Some(head), "cut at {cut}");
            assert!(!partial.is_begun());
            assert_eq!([first, second].concat(), [7]);
        }
    }
}
