//! Messages of a server's handshake (RFC 8446 §4), as far as a verdict needs them.

use crate::witness::Cursor;

/// Types of messages.
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const COMPRESSED_CERTIFICATE: u8 = 25;
/// Type of an extension, and of a transport parameter.
const TRANSPORT_PARAMETERS: u16 = 0x39;
const MAX_STREAMS_BIDI: u64 = 0x08;

/// Returns the handshake messages in a CRYPTO stream: types and contents.
fn messages(stream: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut cursor = Cursor::new(stream);
    std::iter::from_fn(move || {
        let kind = cursor.byte()?;
        let len = cursor.take(3)?.iter();
        let len = len.fold(0, |value, &byte| value << 8 | usize::from(byte));
        Some((kind, cursor.take(len)?))
    })
}

/// Returns true if a server's messages have a certificate.
pub(super) fn has_certificate(stream: &[u8]) -> bool {
    messages(stream).any(|(kind, _)| matches!(kind, CERTIFICATE | COMPRESSED_CERTIFICATE))
}

/// Returns `initial_max_streams_bidi` of a server's transport parameters (RFC 9000 §18.2).
pub(super) fn streams(stream: &[u8]) -> Option<u64> {
    let (_, extensions) = messages(stream).find(|(kind, _)| *kind == ENCRYPTED_EXTENSIONS)?;
    let mut cursor = Cursor::new(extensions);
    cursor.take(2)?;
    let number = |cursor: &mut Cursor<'_>| {
        let bytes = cursor.take(2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    };
    loop {
        let kind = number(&mut cursor)?;
        let len = number(&mut cursor)?;
        let body = cursor.take(len.into())?;
        if kind == TRANSPORT_PARAMETERS {
            cursor = Cursor::new(body);
            break;
        }
    }
    loop {
        let id = cursor.varint()?;
        let len = usize::try_from(cursor.varint()?).ok()?;
        let value = cursor.take(len)?;
        if id == MAX_STREAMS_BIDI {
            return Cursor::new(value).varint();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_streams_is_read_from_the_extensions() {
        // The length of the list, ALPN, then parameters 0x01 and 0x08.
        let parameters = [0x01, 1, 7, MAX_STREAMS_BIDI as u8, 2, 0x43, 0xe8];
        let mut extensions = vec![0, 0, 0, 16, 0, 1, 9, 0, 0x39, 0, parameters.len() as u8];
        extensions.extend(parameters);
        let mut stream = vec![ENCRYPTED_EXTENSIONS, 0, 0, extensions.len() as u8];
        stream.extend(extensions);
        assert_eq!(streams(&stream), Some(1000));
        assert!(!has_certificate(&stream));
        for len in 0..stream.len() {
            assert_eq!(streams(&stream[..len]), None, "{len}");
        }
        stream.extend([CERTIFICATE, 0, 0, 0]);
        assert!(has_certificate(&stream));
    }
}
