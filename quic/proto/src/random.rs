//! Randomness as an argument.

/// Source of unpredictable bytes, from which the core draws connection ids, tokens and challenges.
///
/// The core has no generator of its own: `hybriq::SystemRandom` draws from the system; simulations
/// and tests draw from a seed.
///
/// # Security
/// The bytes must come from a cryptographic generator wherever peers are not trusted.
pub trait Random: Send {
    /// Fills the buffer with random bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}
