//! CRYPTO frames of all encryption levels.

pub(super) mod flights;
pub(super) mod stream;
