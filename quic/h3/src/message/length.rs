//! The length of content (RFC 9110 §8.6, RFC 9114 §4.1.2).

use http::{HeaderMap, header::CONTENT_LENGTH};

use crate::error::Violation;

/// Content that a message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any amount.
    Any,
    /// Exactly this many more bytes.
    Exactly(u64),
    /// None, regardless of `content-length`: the answer to HEAD, or a status that has none.
    Nothing,
}

impl Content {
    /// Counts bytes that came.
    pub(crate) fn on_data(&mut self, bytes: usize) -> Result<(), Violation> {
        match self {
            Self::Any => Ok(()),
            Self::Exactly(left) => {
                let rest = left.checked_sub(bytes as u64);
                *left = rest.ok_or(Violation::ContentLengthDiffers)?;
                Ok(())
            }
            Self::Nothing if bytes == 0 => Ok(()),
            Self::Nothing => Err(Violation::ContentNotAllowed),
        }
    }

    /// Checks that nothing is missing at the end.
    pub(crate) fn on_end(self) -> Result<(), Violation> {
        match self {
            Self::Exactly(left) if left > 0 => Err(Violation::ContentLengthDiffers),
            _ => Ok(()),
        }
    }
}

/// Returns the length that the fields of a message announce, if they do.
///
/// # Errors
/// A value is not a number, or several values differ.
pub fn content_length(fields: &HeaderMap) -> Result<Option<u64>, Violation> {
    const INVALID: Violation = Violation::ContentLengthInvalid;
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    let digits = first.as_bytes();
    if values.any(|other| other != first) || digits.is_empty() {
        return Err(INVALID);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    });
    number.map(Some).ok_or(INVALID)
}
