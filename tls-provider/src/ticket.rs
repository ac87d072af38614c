//! Session tickets as they stand in handshake messages.

use bytes::BytesMut;

use crate::{Alert, Error, message};

#[cfg(test)]
mod tests;

/// NewSessionTicket is message type 4 (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE_REQUEST: u8 = 13;

/// Lifetime and age_add come before the nonce.
const FIXED_LEN: usize = 8;
const HEADER_LEN: usize = 4;
const EARLY_DATA: u16 = 42;

/// The newest ticket in what a server sends after the handshake, which is the one that clients use
/// first: that of the last NewSessionTicket (RFC 8446 §4.6.1).
///
/// A client that resumes brings the same bytes back ([`ClientHello::ticket`]), whatever TLS library
/// either end has, and nobody else can know them. So a server can keep something about a session,
/// by a digest of them.
///
/// [`ClientHello::ticket`]: crate::ClientHello::ticket
pub fn issued_ticket(mut messages: &[u8]) -> Option<&[u8]> {
    let mut newest = None;
    while let Some((ticket, rest)) = first_ticket(messages) {
        newest = Some(ticket);
        messages = rest;
    }
    newest
}

/// Reads what a server sends after the handshake, once no session is there any more: the messages
/// that are whole are checked and dropped.
///
/// # Errors
/// A message that a server must not send, or that is too long.
pub fn skip_tickets(bytes: &mut BytesMut) -> Result<(), Error> {
    while let Some(message) = message::take(bytes)? {
        check(&message)?;
    }
    Ok(())
}

/// Refuses what a client must not read after the handshake: anything but a NewSessionTicket
/// (RFC 9001 §4.4, §6), and one that limits 0-RTT data otherwise than QUIC does (RFC 9001 §4.6.1).
pub(crate) fn check(message: &[u8]) -> Result<(), Error> {
    match message.first() {
        Some(&NEW_SESSION_TICKET) => {}
        Some(&CERTIFICATE_REQUEST) => {
            let detail = "a CertificateRequest after the handshake";
            return Err(Error::protocol_violation(detail));
        }
        Some(kind) => {
            let detail = format!("a handshake message of type {kind} after the handshake");
            return Err(Error::new(Alert::UNEXPECTED_MESSAGE, detail));
        }
        None => return Ok(()),
    }
    match early_data_size(message) {
        None | Some(u32::MAX) => Ok(()),
        Some(size) => Err(Error::protocol_violation(format!(
            "a session ticket with max_early_data_size {size:#x}"
        ))),
    }
}

/// What a NewSessionTicket says of early data. Malformed ones are left to the TLS library.
fn early_data_size(message: &[u8]) -> Option<u32> {
    let body = message.get(HEADER_LEN..)?;
    let (&nonce_len, rest) = body.get(FIXED_LEN..)?.split_first()?;
    let (&len, rest) = rest.get(nonce_len.into()..)?.split_first_chunk()?;
    let (_, mut rest) = rest
        .get(u16::from_be_bytes(len).into()..)?
        .split_first_chunk::<2>()?;
    loop {
        let (&kind, tail) = rest.split_first_chunk()?;
        let (&len, tail) = tail.split_first_chunk()?;
        let (content, tail) = tail.split_at_checked(u16::from_be_bytes(len).into())?;
        if u16::from_be_bytes(kind) == EARLY_DATA {
            return content.try_into().ok().map(u32::from_be_bytes);
        }
        rest = tail;
    }
}

/// The ticket of the first message, and what follows it.
fn first_ticket(messages: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&kind, rest) = messages.split_first()?;
    let (&[high, middle, low], rest) = rest.split_first_chunk()?;
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    let (body, after) = rest.split_at_checked(len)?;
    if kind != NEW_SESSION_TICKET {
        return None;
    }
    let (&nonce_len, rest) = body.get(FIXED_LEN..)?.split_first()?;
    let (&len, rest) = rest.get(nonce_len.into()..)?.split_first_chunk()?;
    let ticket = rest.get(..u16::from_be_bytes(len).into())?;
    (!ticket.is_empty()).then_some((ticket, after))
}
