//! Ticket keys and sessions that servers share.

#[cfg(feature = "rustls")]
pub(crate) mod rustls;
#[cfg(all(unix, feature = "s2n-tls"))]
pub(crate) mod s2n;
#[cfg(feature = "rustls")]
pub(crate) mod sessions;

use std::fmt;
use std::sync::Arc;

/// Session tickets that several servers of one process share: ticket keys, and the sessions behind
/// tickets that only name them.
///
/// Clones are the same set. Give one to a configuration that replaces another, or that takes over
/// accepted connections of another, and clients can still resume. A key-exchange policy still
/// refuses tickets by their [`Lineage`], and a ticket is valid only where clients are asked for
/// certificates in the same way.
///
/// [`Lineage`]: crate::Lineage
#[derive(Clone, Default)]
pub struct Tickets(Arc<Parts>);

#[derive(Default)]
struct Parts {
    #[cfg(feature = "rustls")]
    rustls: rustls::Shared,
    #[cfg(all(unix, feature = "s2n-tls"))]
    s2n: s2n::Keys,
}

impl Tickets {
    /// Makes a new set. Its keys are made when they are first needed.
    pub fn new() -> Self {
        Self::default()
    }

    #[cfg(feature = "rustls")]
    pub(crate) fn rustls(&self) -> &rustls::Shared {
        &self.0.rustls
    }

    #[cfg(all(unix, feature = "s2n-tls"))]
    pub(crate) fn s2n(&self) -> &s2n::Keys {
        &self.0.s2n
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}
