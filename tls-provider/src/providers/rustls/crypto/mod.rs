//! Groups, cipher suites and keys for rustls, and preparations made ahead of time.

pub(super) mod compress;
pub(super) mod groups;
mod hkdf;
pub(super) mod keys;
pub(super) mod suites;
