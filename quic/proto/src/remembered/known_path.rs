//! State of a path saved by an earlier connection, and the key under which it is stored.

use std::net::IpAddr;

use aws_lc_rs::digest;

use crate::owners::congestion::careful_resume::Observed;

/// State of a path at the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// Observed capacity and round trip.
    pub observed: Observed,
    /// The peer's address.
    pub peer: IpAddr,
    /// Our address, if it was known.
    pub local: Option<IpAddr>,
}

impl KnownPath {
    /// Returns true if a path between these addresses may be the same one (RFC 9959 §3.2).
    pub fn is_between(&self, local: Option<IpAddr>, peer: IpAddr) -> bool {
        let same_local = match (self.local, local) {
            (Some(then), Some(now)) => then == now,
            _ => true,
        };
        same_local && self.peer.to_canonical() == peer.to_canonical()
    }
}

/// Key under which a path is stored: a digest, from which its inputs cannot be recovered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathKey([u8; 16]);

impl PathKey {
    /// Returns the key of a server's path to the client that presents this session ticket, which
    /// only that client knows.
    pub fn of_ticket(ticket: &[u8]) -> Self {
        Self::digest(&[b"ticket", ticket])
    }

    /// Returns the key of a client's path to a server.
    pub fn of_server(name: &str, address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self::digest(&[b"server", &address.octets(), name.as_bytes()])
    }

    fn digest(parts: &[&[u8]]) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(part);
        }
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
