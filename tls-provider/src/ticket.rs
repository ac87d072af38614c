//! Session tickets as they stand in handshake messages.

#[cfg(test)]
mod tests;

/// NewSessionTicket is message type 4 (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;

/// Lifetime and age_add come before the nonce.
const FIXED_LEN: usize = 8;

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
