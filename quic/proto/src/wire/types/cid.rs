//! Connection ids, and their stateless reset tokens.

use std::fmt;

use crate::wire::limits;

/// A connection id of at most 20 bytes (RFC 9000 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cid {
    len: u8,
    bytes: [u8; limits::MAX_CID_LEN],
}

/// A connection id, and the sequence number with which its owner issued it (RFC 9000 §5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberedCid {
    /// Sequence number.
    pub sequence: u64,
    /// Connection id.
    pub cid: Cid,
}

impl Cid {
    /// The empty connection id.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; limits::MAX_CID_LEN],
    };

    /// Copies a connection id. Returns `None` if it has more than 20 bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cid = Self::EMPTY;
        cid.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        cid.len = bytes.len() as u8;
        Some(cid)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(usize::from(self.len)).0
    }

    /// Returns the length in bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns true if the id is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl From<[u8; 8]> for Cid {
    fn from(bytes: [u8; 8]) -> Self {
        let mut cid = Self::EMPTY;
        cid.bytes[..8].copy_from_slice(&bytes);
        cid.len = 8;
        cid
    }
}

impl fmt::Debug for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A stateless reset token, which ends the connection it was issued for (RFC 9000 §10.3).
///
/// The token is a secret of the two ends: `Debug` does not show it, and comparing takes constant
/// time.
#[derive(Clone, Copy)]
pub struct ResetToken([u8; 16]);

impl ResetToken {
    /// Number of bytes.
    pub const LEN: usize = 16;

    /// Creates a token from its bytes.
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl From<[u8; Self::LEN]> for ResetToken {
    fn from(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }
}

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for ResetToken {}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::ResetToken;

    #[test]
    fn debug_tells_nothing_of_a_token() {
        let token = ResetToken::new([0xab; 16]);
        assert_eq!(format!("{token:?}"), "ResetToken(secret)");
        assert_eq!(token, ResetToken::from([0xab; 16]));
        assert_ne!(token, ResetToken::new([0; 16]));
    }
}
