//! State of a path saved by an earlier connection, and the key under which a server stores it.

use std::net::IpAddr;

use aws_lc_rs::digest;

use crate::owners::congestion::careful_resume::Observed;

/// State of a path at the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownPath {
    /// Observed capacity and round trip.
    pub observed: Observed,
    /// The peer's address.
    pub peer: IpAddr,
    /// Our address, if it was known.
    pub local: Option<IpAddr>,
}

impl KnownPath {
    /// Creates the state of a path between these addresses.
    pub const fn new(observed: Observed, peer: IpAddr, local: Option<IpAddr>) -> Self {
        Self {
            observed,
            peer,
            local,
        }
    }

    /// Returns true if a path between these addresses may be the same one (RFC 9959 §3.2).
    pub fn is_between(&self, local: Option<IpAddr>, peer: IpAddr) -> bool {
        let same_local = match (self.local, local) {
            (Some(then), Some(now)) => then == now,
            _ => true,
        };
        same_local && self.peer.to_canonical() == peer.to_canonical()
    }
}

/// Key under which a server stores the path to a client: a digest, from which its input cannot be
/// recovered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathKey([u8; 16]);

impl PathKey {
    /// Returns the key of a server's path to the client that presents this session ticket, which
    /// only that client knows.
    pub fn of_ticket(ticket: &[u8]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"ticket");
        context.update(ticket);
        let digest = context.finish();
        let first = digest.as_ref().first_chunk().copied();
        Self(first.unwrap_or_default())
    }
}

impl std::fmt::Debug for PathKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PathKey(..)")
    }
}
