//! Session tickets in handshake messages.

use bytes::BytesMut;

use super::framing;
use crate::{Alert, Error};

#[cfg(test)]
mod tests;

/// Type of a NewSessionTicket message (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE_REQUEST: u8 = 13;

/// Number of bytes before the nonce: lifetime and age_add.
const FIXED_LEN: usize = 8;
const HEADER_LEN: usize = 4;
const EARLY_DATA: u16 = 42;

/// Returns the newest ticket in the handshake bytes that a server sends after the handshake: that
/// of the last NewSessionTicket (RFC 8446 §4.6.1). Clients use the newest one first.
///
/// A client that resumes sends the same bytes back ([`ClientHello::ticket`]), with any TLS library,
/// and nobody else can know them. A server can store data about a session under their digest.
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

/// Checks and drops complete messages that a server sends after the handshake, once the session is
/// gone.
///
/// # Errors
/// A message is too long, or a server must not send it.
pub fn skip_tickets(bytes: &mut BytesMut) -> Result<(), Error> {
    while let Some(message) = framing::take(bytes)? {
        check(&message)?;
    }
    Ok(())
}

/// Refuses messages that a client must not accept after the handshake: anything but a
/// NewSessionTicket (RFC 9001 §4.4, §6), and one with an early-data limit that QUIC does not allow
/// (RFC 9001 §4.6.1).
pub(crate) fn check(message: &[u8]) -> Result<(), Error> {
    match message.first() {
        Some(&NEW_SESSION_TICKET) => {}
        Some(&CERTIFICATE_REQUEST) => {
            let detail = "a CertificateRequest after the handshake";
            return Err(Error::protocol_violation(detail));
        }
        Some(kind) => {
            let detail = format!("a handshake message of type {kind} after the handshake");
            return Err(Error::told(Alert::UNEXPECTED_MESSAGE, detail));
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

/// Reads the early-data limit of a NewSessionTicket. The TLS library refuses malformed ones.
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

/// Returns the ticket of the first message, and the bytes after it.
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
