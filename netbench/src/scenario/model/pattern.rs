//! Content of all streams, known to both ends, so that every byte that arrives can be compared.

use bytes::Bytes;
use hybriq_sim::Rng;

use crate::system::outcome::{Failed, Kind};

/// Length of the pattern. It fits a core's second-level cache, and is prime, so that repetitions
/// never line up with packets or windows.
const PERIOD: usize = 65_521;

/// Seed of the pattern; both ends have the same.
const SEED: u64 = 0x6e65_7462_656e_6368;

/// Block of pseudo-random bytes that streams repeat.
struct Pattern(Bytes);

thread_local! {
    static PATTERN: Pattern = Pattern::new();
}

/// Returns at least one and at most `most` bytes of a stream at that offset.
pub(crate) fn bytes_at(offset: u64, most: u64) -> Bytes {
    PATTERN.with(|pattern| pattern.expected(offset, most))
}

/// Compares received bytes with those of a stream at that offset.
pub(crate) fn compare(offset: u64, received: &[u8]) -> Result<(), Failed> {
    PATTERN.with(|pattern| pattern.compare(offset, received))
}

impl Pattern {
    fn new() -> Self {
        // Two periods, so that a whole period can be read from any offset.
        let mut block = vec![0; PERIOD];
        Rng::new(SEED).fill(&mut block);
        block.extend_from_within(..);
        Self(block.into())
    }

    fn expected(&self, offset: u64, most: u64) -> Bytes {
        let start = (offset % PERIOD as u64) as usize;
        let len = most.min(PERIOD as u64) as usize;
        self.0.slice(start..start + len)
    }

    fn compare(&self, offset: u64, received: &[u8]) -> Result<(), Failed> {
        let mut at = offset;
        for part in received.chunks(PERIOD) {
            let start = (at % PERIOD as u64) as usize;
            if self.0.get(start..start + part.len()) != Some(part) {
                return Err(Failed::new(
                    Kind::Mismatch,
                    format_args!("the {} bytes at {at} are not what was sent", part.len()),
                ));
            }
            at += part.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, bytes_at, compare};

    #[test]
    fn a_changed_missing_or_moved_byte_is_found() {
        let period = bytes_at(0, PERIOD as u64);
        let mut stream = period.repeat(3);
        assert!(compare(0, &stream).is_ok());
        assert!(compare(70_000, &stream[70_000..]).is_ok());
        assert!(compare(0, &stream[1..]).is_err());
        assert!(compare(1200, &stream[2400..3600]).is_err());
        stream[PERIOD + 5] ^= 1;
        assert!(compare(0, &stream).is_err());
    }

    #[test]
    fn no_more_is_taken_than_was_asked_for() {
        assert_eq!(bytes_at(PERIOD as u64 - 1, 7).len(), 7);
        assert_eq!(bytes_at(5, u64::MAX).len(), PERIOD);
    }
}
