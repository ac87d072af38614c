//! The system's randomness.

use aws_lc_rs::rand::SecureRandom as _;
use hybriq_proto::random::Random;

const BLOCK: usize = 512;

/// Random generator of the operating system. It draws blocks, so that a connection id costs no
/// system call.
///
/// # Panics
/// [`Random::fill`] panics if the system delivers no random bytes.
///
/// # Examples
/// ```
/// use hybriq::{fleet::ResetKey, transport::SystemRandom};
///
/// let key = ResetKey::generate(&mut SystemRandom::new());
/// ```
pub struct SystemRandom {
    block: [u8; BLOCK],
    used: usize,
}

impl std::fmt::Debug for SystemRandom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemRandom").finish_non_exhaustive()
    }
}

impl SystemRandom {
    /// Creates a generator that draws its first block at first use.
    pub const fn new() -> Self {
        Self {
            block: [0; BLOCK],
            used: BLOCK,
        }
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        let system = aws_lc_rs::rand::SystemRandom::new();
        let from = self.used;
        match self.block.get_mut(from..from + bytes.len()) {
            Some(source) => {
                bytes.copy_from_slice(source);
                source.fill(0);
                self.used += bytes.len();
            }
            None if bytes.len() > BLOCK => {
                system
                    .fill(bytes)
                    .expect("the system's random generator works");
            }
            None => {
                system
                    .fill(&mut self.block)
                    .expect("the system's random generator works");
                self.used = 0;
                self.fill(bytes);
            }
        }
    }
}
