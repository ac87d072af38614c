//! QPACK: compression of field sections (RFC 9204).
//!
//! [`Encoder`] and [`Decoder`] do no I/O: they take the bytes of the peer's QPACK streams, and return the bytes to
//! send on ours. A connection has one of each.

mod blocked;
mod decoder;
mod encoder;
mod fixed;
mod line;
mod policy;
mod primitives;
mod table;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use primitives::put_string;

pub use decoder::{Decoded, Decoder, Field};
pub use encoder::Encoder;
pub use line::FieldRef;
pub(crate) use line::LONG_AUTHORITY;

/// Error of QPACK, which ends the connection (RFC 9204 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// QPACK_DECOMPRESSION_FAILED: a field section cannot be decoded.
    #[error("a field section cannot be decoded: {0}")]
    Section(&'static str),
    /// QPACK_ENCODER_STREAM_ERROR: the peer's encoder stream cannot be followed.
    #[error("the encoder stream cannot be followed: {0}")]
    EncoderStream(&'static str),
    /// QPACK_DECODER_STREAM_ERROR: the peer's decoder stream cannot be followed.
    #[error("the decoder stream cannot be followed: {0}")]
    DecoderStream(&'static str),
}

impl Error {
    /// Returns the code of the error (RFC 9204 §6).
    pub const fn code(self) -> u64 {
        match self {
            Self::Section(_) => 0x0200,
            Self::EncoderStream(_) => 0x0201,
            Self::DecoderStream(_) => 0x0202,
        }
    }
}
