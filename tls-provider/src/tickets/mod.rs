//! Ticket keys and sessions that servers share.

pub(crate) mod store;

#[cfg(feature = "rustls")]
pub(crate) mod rustls;
#[cfg(all(unix, feature = "s2n-tls"))]
pub(crate) mod s2n;
#[cfg_attr(
    not(any(feature = "rustls", all(unix, feature = "s2n-tls"))),
    expect(dead_code, reason = "the providers use it")
)]
pub(crate) mod secrets;
#[cfg(feature = "rustls")]
pub(crate) mod sessions;

use std::{fmt, sync::Arc};

/// Session tickets that several servers share: ticket keys, and the sessions of tickets that only
/// name them.
///
/// Clones are the same set. Give one to a configuration that replaces another, or that handles some
/// of another's accepted connections, so that clients can still resume. A key-exchange policy still
/// refuses tickets by their [`Lineage`], and a ticket is valid only where clients are asked for
/// certificates in the same way.
///
/// Processes and machines can share a set with a [secret](Self::from_secret), too. The sessions of
/// tickets that allow 0-RTT data stay in their process, since each may be used only once; other
/// servers do a full handshake.
///
/// [`Lineage`]: crate::Lineage
#[derive(Clone, Default)]
pub struct Tickets(Arc<Parts>);

#[derive(Default)]
struct Parts {
    /// Secrets from which the keys derive, if there are any.
    secrets: Option<secrets::Secrets>,
    #[cfg(feature = "rustls")]
    rustls: rustls::Shared,
    #[cfg(all(unix, feature = "s2n-tls"))]
    s2n: s2n::Keys,
}

impl Tickets {
    /// Creates a new set. Its keys are generated when they are first needed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a set whose keys derive from a secret of 32 random bytes: sets with the same secret
    /// accept each other's tickets. The keys change every twelve hours by the clock, and the
    /// previous ones stay valid, so the clocks of the machines need to agree only roughly.
    ///
    /// # Security
    /// Whoever knows the secret can read the tickets of all servers, including past ones, and forge
    /// sessions.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        let secrets = secrets::Secrets::new(secret);
        Self(Arc::new(Parts {
            #[cfg(feature = "rustls")]
            rustls: rustls::Shared::of(secrets.clone()),
            #[cfg(all(unix, feature = "s2n-tls"))]
            s2n: s2n::Keys::of(secrets.clone()),
            secrets: Some(secrets),
        }))
    }

    /// Makes new tickets with keys of this secret from now on. Tickets of the last three secrets
    /// stay valid until they expire. Has no effect on sets without a secret.
    pub fn rotate_to(&self, secret: [u8; 32]) {
        if let Some(secrets) = &self.0.secrets {
            secrets.rotate_to(secret);
        }
    }

    /// Accepts tickets with keys of this secret, without making any with them yet. Has no effect on
    /// sets without a secret.
    pub fn also_accept(&self, secret: [u8; 32]) {
        if let Some(secrets) = &self.0.secrets {
            secrets.also_accept(secret);
        }
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
