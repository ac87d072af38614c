//! The two providers, and the choice between them.

pub(crate) mod backend;
#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(all(unix, feature = "s2n-tls"))]
pub mod s2n;
