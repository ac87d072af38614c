//! Encoding and decoding that all frames share.

use crate::wire::{VarInt, Writer, error::Violation};

/// A frame that can be written.
pub trait Encode {
    /// True if the peer must acknowledge a packet that carries the frame (RFC 9000 §13.2).
    const ACK_ELICITING: bool = true;

    /// Returns the bytes of the encoded frame, its type included.
    fn size(&self) -> usize;

    /// Writes the frame. The writer has [`Encode::size`] bytes left.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// Checks that no byte lies beyond the largest offset a stream can have (RFC 9000 §19.6, §19.8).
pub(super) const fn check_end(
    offset: u64,
    data: &[u8],
    violation: Violation,
) -> Result<(), Violation> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= VarInt::MAX.get() => Ok(()),
        _ => Err(violation),
    }
}

/// Implements [`Encode`] for frames that are a list of variable-length integers: their `fields`,
/// the type first.
macro_rules! fields {
    ($($frame:ty),* $(,)?) => {$(
        impl Encode for $frame {
            #[inline]
            fn size(&self) -> usize {
                self.fields().into_iter().map(|field| VarInt::saturating(field).size()).sum()
            }

            #[inline]
            fn encode(&self, writer: &mut Writer<'_>) {
                self.fields().into_iter().for_each(|field| writer.varint(field));
            }
        }
    )*};
}

pub(super) use fields;
