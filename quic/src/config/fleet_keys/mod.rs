//! Keys that the processes and machines of one service share, all derived from one secret.

pub(super) mod token_keys;

use std::{fmt, io, path::Path};

use aws_lc_rs::hkdf;
use hybriq_proto::owners::cids::ResetKey;
use hybriq_tls::Tickets;
use zeroize::Zeroizing;

use super::TokenKeys;

/// Smallest length of a secret, in bytes.
const MIN_SECRET: usize = 32;

/// Keys that all processes and machines of one service share, derived from one secret.
///
/// Each purpose has its own key (HKDF-SHA-256 with a label), so that one key reveals nothing
/// about another:
///
/// | key | what the machines can do with it |
/// |---|---|
/// | of address validation tokens | a client proves its address to one machine and returns to another |
/// | of [session tickets](Self::tickets) | a client resumes its session at another machine |
/// | of stateless resets | a process tells the clients of an earlier one that their connections are lost |
///
/// Clones, and the endpoints that are made with them, rotate together. The secret itself is not
/// kept.
///
/// # Rotation
/// 1. Every machine [accepts](Self::also_accept) the next secret.
/// 2. Then every machine [rotates](Self::rotate_to) to it. No token is lost: those of the last three
///    secrets stay valid until they expire.
/// 3. Processes that start later begin with the new secret, and
///    [keep the resets](Self::keep_resets_of) of the first one.
///
/// The reset key does not rotate with the others: peers hold reset tokens for as long as their
/// connections last. A process that starts without `keep_resets_of` cannot end the connections that
/// were made before the rotation, so their peers wait for their idle timeout.
///
/// # Security
/// Whoever knows the secret can forge tokens for any address and end connections. Keep it in a file
/// that only the service can read. The secret must be random; a password is not enough.
///
/// Machines do not tell each other which tokens were used: a token that one machine has accepted
/// works once more on each other machine, until it expires.
///
/// Stateless resets need routing under which a datagram reaches a machine that does not hold its
/// connection only if no other machine holds it: see [`ResetKey`]. Where routing is not so strict,
/// add
/// [`EndpointBuilder::without_stateless_reset`](crate::EndpointBuilder::without_stateless_reset).
///
/// # Examples
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig, fleet::FleetKeys};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let keys = FleetKeys::from_file("/run/secrets/fleet")?;
/// let server = Endpoint::builder()
///     .server(ServerConfig::new(identity).alpn(["echo"]).tickets(keys.tickets()))
///     .fleet_keys(&keys)
///     .bind("[::]:4433")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FleetKeys {
    tokens: TokenKeys,
    resets: ResetKey,
    tickets: Tickets,
}

impl FleetKeys {
    /// Derives the keys from a secret of at least 32 random bytes.
    ///
    /// # Errors
    /// The secret is too short.
    pub fn from_secret(secret: &[u8]) -> Result<Self, FleetKeysError> {
        let root = Root::new(secret)?;
        Ok(Self {
            tokens: TokenKeys::of(&root.key(Purpose::Tokens)),
            resets: root.resets(),
            tickets: Tickets::from_secret(*root.key(Purpose::Tickets)),
        })
    }

    /// Derives the keys from the whole contents of a file, including any line end.
    ///
    /// # Errors
    /// The file cannot be read, or has fewer than 32 bytes.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, FleetKeysError> {
        Self::from_secret(&Zeroizing::new(std::fs::read(path)?))
    }

    /// Returns the session tickets of the fleet, for
    /// [`ServerConfig::tickets`](crate::ServerConfig::tickets). Their keys change every twelve hours by
    /// the clock of each machine; a ticket is valid until the end of the twelve hours after its own.
    ///
    /// With [`accept_early_data`](crate::ServerConfig::accept_early_data) sessions stay in their
    /// process, because the 0-RTT data of each session may be accepted only once; other machines do
    /// a full handshake.
    pub fn tickets(&self) -> Tickets {
        self.tickets.clone()
    }

    /// Accepts tokens and tickets of this secret, without making any with it yet.
    ///
    /// # Errors
    /// The secret is too short.
    pub fn also_accept(&self, secret: &[u8]) -> Result<(), FleetKeysError> {
        let root = Root::new(secret)?;
        self.tokens.also_accept(*root.key(Purpose::Tokens));
        self.tickets.also_accept(*root.key(Purpose::Tickets));
        Ok(())
    }

    /// Makes new tokens and tickets with this secret. Those of the last three secrets stay valid until
    /// they expire; resets stay as they are.
    ///
    /// # Errors
    /// The secret is too short. The old one stays in use.
    pub fn rotate_to(&self, secret: &[u8]) -> Result<(), FleetKeysError> {
        let root = Root::new(secret)?;
        self.tokens.rotate_to(*root.key(Purpose::Tokens));
        self.tickets.rotate_to(*root.key(Purpose::Tickets));
        Ok(())
    }

    /// Takes the reset key from an earlier secret, for endpoints that are made from now on.
    ///
    /// # Errors
    /// The secret is too short.
    pub fn keep_resets_of(mut self, secret: &[u8]) -> Result<Self, FleetKeysError> {
        self.resets = Root::new(secret)?.resets();
        Ok(self)
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn token_keys(&self) -> TokenKeys {
        self.tokens.clone()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn reset_key(&self) -> ResetKey {
        self.resets.clone()
    }
}

impl fmt::Debug for FleetKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetKeys").finish_non_exhaustive()
    }
}

/// Reason why [`FleetKeys`] cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetKeysError {
    /// The secret has too few bytes.
    #[error("the secret of a fleet has {0} bytes; use at least 32 random ones")]
    TooShort(usize),
    /// The file of the secret cannot be read.
    #[error("cannot read the secret of the fleet: {0}")]
    File(io::Error),
}

impl From<io::Error> for FleetKeysError {
    fn from(cause: io::Error) -> Self {
        Self::File(cause)
    }
}

/// Use of a derived key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Tokens,
    Tickets,
    Resets,
}

impl Purpose {
    /// Returns the label of HKDF-Expand. Changing it makes a fleet of mixed releases disagree.
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Tokens => b"hybriq fleet address validation tokens",
            Self::Tickets => b"hybriq fleet session tickets",
            Self::Resets => b"hybriq fleet stateless resets",
        }
    }
}

/// Root of the keys, extracted from the secret.
struct Root(hkdf::Prk);

impl Root {
    fn new(secret: &[u8]) -> Result<Self, FleetKeysError> {
        if secret.len() < MIN_SECRET {
            return Err(FleetKeysError::TooShort(secret.len()));
        }
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"hybriq fleet keys");
        Ok(Self(salt.extract(secret)))
    }

    fn key(&self, purpose: Purpose) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        self.0
            .expand(&[purpose.label()], hkdf::HKDF_SHA256)
            .and_then(|output| output.fill(key.as_mut()))
            .expect("one block of output is never too long");
        key
    }

    fn resets(&self) -> ResetKey {
        ResetKey::from_secret(*self.key(Purpose::Resets))
    }
}

#[cfg(test)]
mod tests;
