//! Handshake messages in CRYPTO streams (RFC 8446 §4).

use bytes::BytesMut;

use crate::{Alert, Error, Level, PerLevel};
#[cfg(all(unix, feature = "s2n-tls"))]
use crate::{Group, KeyShare};

#[cfg(test)]
mod tests;

const HEADER_LEN: usize = 4;
/// Maximum length of a message body from a peer. Certificate chains are the longest.
const MAX_BODY_LEN: usize = 64 * 1024;

/// Takes the first message off the front, header included, once it is complete.
pub(crate) fn take(bytes: &mut BytesMut) -> Result<Option<BytesMut>, Error> {
    let Some(&[_, high, middle, low]) = bytes.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let body = u32::from_be_bytes([0, high, middle, low]) as usize;
    if body > MAX_BODY_LEN {
        return Err(Error::told(
            Alert::DECODE_ERROR,
            "a handshake message longer than 64 KiB",
        ));
    }
    let len = HEADER_LEN + body;
    Ok((bytes.len() >= len).then(|| bytes.split_to(len)))
}

const KEY_UPDATE: u8 = 24;

/// Refuses bytes left at a level that is over (RFC 9001 §4.1.3). A KeyUpdate has its own alert at
/// every level (RFC 9001 §6).
pub(crate) fn refuse_left_over(rx: &PerLevel<BytesMut>, level: Level) -> Result<(), Error> {
    if level > Level::Handshake && rx.handshake.first() == Some(&KEY_UPDATE) {
        return Err(Error::told(
            Alert::UNEXPECTED_MESSAGE,
            "a TLS KeyUpdate, which QUIC forbids",
        ));
    }
    let left = (level > Level::Initial && !rx.initial.is_empty())
        || (level > Level::Handshake && !rx.handshake.is_empty());
    if left {
        return Err(Error::protocol_violation(
            "handshake bytes at an encryption level that is over",
        ));
    }
    Ok(())
}

const SERVER_HELLO: u8 = 2;
/// Random of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Returns true if a message is a HelloRetryRequest. rustls reports one only if no ticket was used.
pub(crate) fn is_hello_retry(message: &[u8]) -> bool {
    message.first() == Some(&SERVER_HELLO) && message.get(6..38) == Some(&RETRY_RANDOM)
}

/// Type of the extension with key shares (RFC 8446 §4.2).
#[cfg(all(unix, feature = "s2n-tls"))]
const KEY_SHARE: [u8; 2] = [0, 51];

/// Returns the key share of a ServerHello.
#[cfg(all(unix, feature = "s2n-tls"))]
pub(crate) fn server_share(message: &[u8]) -> Option<KeyShare> {
    if message.first() != Some(&SERVER_HELLO) || is_hello_retry(message) {
        return None;
    }
    // The session id follows the header, the version and the random; after it come the suite, the
    // compression method, and the length of the extensions.
    let session_id = usize::from(*message.get(38)?);
    let mut rest = message.get(39 + session_id + 3 + 2..)?;
    loop {
        let ([kind @ .., high, low], tail) = rest.split_first_chunk::<4>()?;
        let len = u16::from_be_bytes([*high, *low]);
        let (body, next) = tail.split_at_checked(len.into())?;
        if *kind == KEY_SHARE {
            let (group, share) = body.split_first_chunk::<2>()?;
            return Some(KeyShare {
                group: Group(u16::from_be_bytes(*group)),
                len: share.get(2..)?.len(),
            });
        }
        rest = next;
    }
}
