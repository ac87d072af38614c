//! A server's preferred address (RFC 9000 §9.6).

use std::{
    net::{IpAddr, SocketAddr},
    time::Instant,
};

use super::Connection;
use crate::{
    cids,
    config::TransportConfig,
    params::PreferredAddress,
    path::{Address, Role},
    udp::Local,
};

/// What a server tells, with a connection id for it.
pub(super) fn announced(
    config: &TransportConfig,
    issued: Option<cids::Issued>,
) -> Option<PreferredAddress> {
    issued.map(|(cid, reset_token)| PreferredAddress {
        v4: config.migration.preferred_v4,
        v6: config.migration.preferred_v6,
        cid,
        reset_token,
    })
}

/// The address of the family that is in use: the other one may not be reachable from here. A socket
/// for both families writes IPv4 addresses its own way.
fn of_family(preferred: &PreferredAddress, in_use: SocketAddr) -> Option<SocketAddr> {
    let is_v4 = in_use.ip().to_canonical().is_ipv4();
    match in_use {
        SocketAddr::V4(_) => preferred.v4.map(SocketAddr::V4),
        SocketAddr::V6(_) if is_v4 => preferred.v4.map(|v4| {
            let ip = IpAddr::V6(v4.ip().to_ipv6_mapped());
            SocketAddr::new(ip, v4.port())
        }),
        SocketAddr::V6(_) => preferred.v6.map(SocketAddr::V6),
    }
}

impl Connection {
    /// The handshake is confirmed: a client sees whether it can reach the server where it would
    /// rather be, and moves there if so (RFC 9000 §9.6.1).
    pub(super) fn seek_preferred(&mut self, now: Instant) {
        let preferred = self.peer_params.as_ref();
        let preferred = preferred.and_then(|params| params.preferred_address.as_ref());
        let Some(peer) = preferred.and_then(|it| of_family(it, self.path.peer())) else {
            return;
        };
        let local = self.path.local();
        // Without ids of ours nothing that comes from there would be found to be ours.
        if peer != self.path.peer() && self.local_cids.cid_len() > 0 {
            // There is an id for it, and if not, the server stays where it is.
            let _ = self.probe_path(now, Address { peer, local });
        }
    }

    /// The preferred address that a client is about to move to.
    pub(super) fn preferred_candidate(&self) -> Option<SocketAddr> {
        let in_use = self.path.peer();
        let mut candidates = self.paths.iter().filter(|it| it.role == Role::Candidate);
        candidates
            .find(|path| path.peer() != in_use)
            .map(crate::path::Path::peer)
    }

    /// Whether it is where a server would rather be: anywhere but where it was found first.
    pub(super) fn is_preferred(&self, local: Local) -> bool {
        let first = self.first_local;
        let other_ip = first.ip.zip(local.ip).is_some_and(|(a, b)| a != b);
        self.side.is_server() && (first.socket != local.socket || other_ip)
    }

    /// Whether a client went to where the server prefers to be.
    pub(super) fn used_preferred(&self) -> bool {
        self.path.peer() != self.first_peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Cid;

    #[test]
    fn the_family_in_use_decides() {
        let preferred = PreferredAddress {
            v4: Some("192.0.2.7:4".parse().unwrap()),
            v6: Some("[2001:db8::7]:6".parse().unwrap()),
            cid: Cid::EMPTY,
            reset_token: [0; 16],
        };
        let chosen = |in_use: &str| {
            let chosen = of_family(&preferred, in_use.parse().unwrap());
            chosen.map(|address| address.to_string())
        };
        assert_eq!(chosen("198.51.100.1:1").unwrap(), "192.0.2.7:4");
        assert_eq!(chosen("[2001:db8::1]:1").unwrap(), "[2001:db8::7]:6");
        let mapped = chosen("[::ffff:198.51.100.1]:1").unwrap();
        assert_eq!(mapped, "[::ffff:192.0.2.7]:4");
        let only_v6 = PreferredAddress {
            v4: None,
            ..preferred
        };
        assert_eq!(of_family(&only_v6, "198.51.100.1:1".parse().unwrap()), None);
    }
}
