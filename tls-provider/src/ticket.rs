//! Session tickets as they stand in handshake messages.

#[cfg(test)]
mod tests;

/// NewSessionTicket is message type 4 (RFC 8446 §4).
const NEW_SESSION_TICKET: u8 = 4;

/// Lifetime and age_add come before the nonce.
const FIXED_LEN: usize = 8;

/// The ticket in what a server sends after the handshake: that of the first message, if it is a
/// NewSessionTicket (RFC 8446 §4.6.1).
///
/// A client that resumes brings the same bytes back ([`ClientHello::ticket`]), whatever TLS library
/// either end has, and nobody else can know them. So a server can keep something about a session,
/// by a digest of them.
///
/// [`ClientHello::ticket`]: crate::ClientHello::ticket
pub fn issued_ticket(messages: &[u8]) -> Option<&[u8]> {
    let (&kind, rest) = messages.split_first()?;
    let (&[high, middle, low], rest) = rest.split_first_chunk()?;
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    let body = rest.get(..len).filter(|_| kind == NEW_SESSION_TICKET)?;
    let (&nonce_len, rest) = body.get(FIXED_LEN..)?.split_first()?;
    let (&len, rest) = rest.get(nonce_len.into()..)?.split_first_chunk()?;
    rest.get(..u16::from_be_bytes(len).into())
        .filter(|ticket| !ticket.is_empty())
}
