//! A server's preferred address (RFC 9000 §9.6).

use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Preferred addresses of a server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Preferred {
    /// Address for IPv4.
    pub v4: Option<SocketAddrV4>,
    /// Address for IPv6.
    pub v6: Option<SocketAddrV6>,
}

impl Preferred {
    /// Returns the address of the family in use, because the other family may not be reachable from
    /// here. Dual-stack sockets write IPv4 addresses as IPv6.
    pub(in crate::owners::path) fn of_family(self, in_use: SocketAddr) -> Option<SocketAddr> {
        let is_v4 = in_use.ip().to_canonical().is_ipv4();
        match in_use {
            SocketAddr::V4(_) => self.v4.map(SocketAddr::V4),
            SocketAddr::V6(_) if is_v4 => self.v4.map(|v4| {
                let ip = IpAddr::V6(v4.ip().to_ipv6_mapped());
                SocketAddr::new(ip, v4.port())
            }),
            SocketAddr::V6(_) => self.v6.map(SocketAddr::V6),
        }
    }
}

#[cfg(test)]
mod tests;
