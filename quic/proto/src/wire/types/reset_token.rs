//! Stateless reset tokens (RFC 9000 §10.3).

use std::fmt;

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
