//! Handshake messages as they stand in CRYPTO streams (RFC 8446 §4).

use bytes::BytesMut;

use crate::{Alert, Error, Level, PerLevel};

#[cfg(test)]
mod tests;

const HEADER_LEN: usize = 4;
/// Longest body taken from a peer; certificate chains are the long ones.
const MAX_BODY_LEN: usize = 64 * 1024;

/// Takes the first message off the front, header included, once it is whole.
pub(crate) fn take(bytes: &mut BytesMut) -> Result<Option<BytesMut>, Error> {
    let Some(&[_, high, middle, low]) = bytes.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let body = u32::from_be_bytes([0, high, middle, low]) as usize;
    if body > MAX_BODY_LEN {
        return Err(Error::new(
            Alert::DECODE_ERROR,
            "a handshake message longer than 64 KiB",
        ));
    }
    let len = HEADER_LEN + body;
    Ok((bytes.len() >= len).then(|| bytes.split_to(len)))
}

/// Whoever leaves bytes behind at a level that is over breaks RFC 9001 §4.1.3.
pub(crate) fn refuse_left_over(rx: &PerLevel<BytesMut>, level: Level) -> Result<(), Error> {
    let left = (level > Level::Initial && !rx.initial.is_empty())
        || (level > Level::Handshake && !rx.handshake.is_empty());
    if left {
        return Err(Error::protocol_violation(
            "handshake bytes at an encryption level that is over",
        ));
    }
    Ok(())
}
