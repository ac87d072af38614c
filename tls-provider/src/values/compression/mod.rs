//! Compression of certificates (RFC 8879).

use std::fmt;

#[cfg(test)]
mod tests;

/// An algorithm that makes the certificates of a handshake smaller (RFC 8879).
///
/// Each is behind a cargo feature of its name, `brotli` and `zlib`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateCompression {
    /// Brotli (RFC 7932): smaller results, and supported by browsers.
    Brotli,
    /// Zlib (RFC 1950).
    Zlib,
}

/// A compressed certificate chain, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compressed {
    pub(crate) algorithm: CertificateCompression,
    /// Compressed bytes.
    pub(crate) len: usize,
}

impl CertificateCompression {
    /// All algorithms, the one with the smallest results first.
    pub const ALL: [Self; 2] = [Self::Brotli, Self::Zlib];

    /// Returns the name in the IANA registry, which is also that of the cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "brotli",
            Self::Zlib => "zlib",
        }
    }

    /// Returns the IANA value.
    pub const fn iana(self) -> u16 {
        match self {
            Self::Zlib => 1,
            Self::Brotli => 2,
        }
    }

    /// Returns the algorithm of an IANA value, if it is known here.
    pub const fn from_iana(value: u16) -> Option<Self> {
        match value {
            1 => Some(Self::Zlib),
            2 => Some(Self::Brotli),
            _ => None,
        }
    }
}

impl fmt::Display for CertificateCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The message in which the peer presented its certificates, as it was on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CertificateMessage {
    /// Bytes of the handshake message, with its header.
    pub len: u32,
    /// Bytes after decompression; the same as `len` if it was not compressed.
    pub uncompressed_len: u32,
    /// Algorithm with which it was compressed, if it was.
    pub compression: Option<CertificateCompression>,
}

#[cfg(feature = "rustls")]
const CERTIFICATE: u8 = 11;
#[cfg(feature = "rustls")]
const COMPRESSED_CERTIFICATE: u8 = 25;
#[cfg(feature = "rustls")]
const HEADER_LEN: u32 = 4;

#[cfg(feature = "rustls")]
impl CertificateMessage {
    /// Reads the facts from a handshake message; `None` if it contains no certificates.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        match *message {
            [CERTIFICATE, ..] => Some(Self {
                len: message.len() as u32,
                uncompressed_len: message.len() as u32,
                compression: None,
            }),
            [COMPRESSED_CERTIFICATE, _, _, _, high, low, a, b, c, ..] => Some(Self {
                len: message.len() as u32,
                uncompressed_len: HEADER_LEN + u32::from_be_bytes([0, a, b, c]),
                compression: CertificateCompression::from_iana(u16::from_be_bytes([high, low])),
            }),
            _ => None,
        }
    }
}
