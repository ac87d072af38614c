//! Ticket keys and sessions that servers share.

use std::fmt;
use std::sync::Arc;

/// The session tickets that several servers of one process have in common: the keys of those that
/// carry their session, the sessions behind those that do not.
///
/// A clone is the same set. Give it to a configuration that replaces another, or that takes over
/// accepted connections of another, and its clients still resume. What a key-exchange policy
/// refuses is refused all the same, by the [`Lineage`] in each ticket; and a ticket is good only
/// where clients are asked for certificates in the same way.
///
/// [`Lineage`]: crate::Lineage
#[derive(Clone, Default)]
pub struct Tickets(Arc<Parts>);

#[derive(Default)]
struct Parts {
    #[cfg(feature = "rustls")]
    rustls: crate::rustls::tickets::Shared,
    #[cfg(all(unix, feature = "s2n-tls"))]
    s2n: crate::s2n::keys::Keys,
}

impl Tickets {
    /// A set of its own. Keys are made when they are first needed.
    pub fn new() -> Self {
        Self::default()
    }

    #[cfg(feature = "rustls")]
    pub(crate) fn rustls(&self) -> &crate::rustls::tickets::Shared {
        &self.0.rustls
    }

    #[cfg(all(unix, feature = "s2n-tls"))]
    pub(crate) fn s2n(&self) -> &crate::s2n::keys::Keys {
        &self.0.s2n
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}
