//! Bits of the first byte that all packets share, and reasons to drop a packet.

use crate::wire::Eof;

/// Set in long headers.
pub(super) const LONG: u8 = 0x80;
/// Set in every packet of versions 1 and 2 (RFC 9000 §17.2, §17.3).
pub(super) const FIXED: u8 = 0x40;
/// Bits of the type of a long header (RFC 9000 §17.2).
pub(super) const TYPE_MASK: u8 = 0x30;
/// Step from one type of a long header to the next.
pub(super) const TYPE_STEP: u8 = 0x10;

/// Reason to drop a packet silently. The connection is not at fault: anybody can send such bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// The datagram ends before the header, or before the length it states.
    #[error("packet is cut short")]
    Truncated,
    /// The fixed bit is 0 (RFC 9000 §17.2, §17.3).
    #[error("packet without the fixed bit")]
    FixedBit,
    /// A connection id of more than 20 bytes (RFC 9000 §17.2).
    #[error("connection id longer than 20 bytes")]
    CidTooLong,
    /// A Retry without a token (RFC 9000 §17.2.5.2).
    #[error("Retry without a token")]
    EmptyRetryToken,
    /// The packet is too short to sample for header protection (RFC 9001 §5.4.2).
    #[error("packet too short to be protected")]
    NoSample,
}

impl From<Eof> for DropReason {
    fn from(Eof: Eof) -> Self {
        Self::Truncated
    }
}
