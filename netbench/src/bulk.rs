//! A stream of known bytes, so that every byte that arrives can be compared.

use crate::Failure;

/// Bytes of the pattern. Small enough to stay in a core's second-level cache, and prime, so that
/// its repetition never lines up with packets or windows.
const PERIOD: usize = 65_521;

/// A block of pseudo-random bytes, repeated for as long as the stream is.
pub(crate) struct Pattern(Vec<u8>);

impl Pattern {
    pub(crate) fn new() -> Self {
        // Twice the period, so that a whole period can be read from any offset.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block: Vec<u8> = (0..PERIOD)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        block.extend_from_within(..);
        Self(block)
    }

    /// Whether these are the bytes of the stream at that offset.
    pub(crate) fn compare(&self, offset: u64, chunk: &[u8]) -> Result<(), Failure> {
        let mut at = offset;
        for part in chunk.chunks(PERIOD) {
            if self.expected(at, part.len() as u64) != Some(part) {
                return Err(
                    format!("the {} bytes at {at} are not what was sent", part.len()).into(),
                );
            }
            at += part.len() as u64;
        }
        Ok(())
    }

    /// The bytes that are repeated.
    pub(crate) fn period(&self) -> &[u8] {
        self.expected(0, PERIOD as u64).unwrap_or_default()
    }

    /// The bytes of the stream at an offset, at most a period. `None`: none are left.
    fn expected(&self, offset: u64, left: u64) -> Option<&[u8]> {
        let start = (offset % PERIOD as u64) as usize;
        let len = left.min(PERIOD as u64) as usize;
        self.0
            .get(start..start + len)
            .filter(|block| !block.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Pattern};

    #[test]
    fn a_changed_missing_or_moved_byte_is_found() {
        let pattern = Pattern::new();
        let stream: Vec<u8> = (0..3)
            .flat_map(|_| pattern.expected(0, PERIOD as u64).unwrap())
            .copied()
            .collect();
        assert!(pattern.compare(0, &stream).is_ok());
        assert!(pattern.compare(70_000, &stream[70_000..]).is_ok());
        assert!(pattern.compare(0, &stream[1..]).is_err());
        assert!(pattern.compare(1200, &stream[2400..3600]).is_err());
        let mut changed = stream;
        changed[PERIOD + 5] ^= 1;
        assert!(pattern.compare(0, &changed).is_err());
    }
}
