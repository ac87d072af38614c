//! Checks what hosts hold once everything is at rest: no more than when everything was new.

use super::{Host, Peer, Progress};
use hybriq_proto::{connection::Connection, stats::census::Census};

/// Checks the hosts of a world in which nothing happens for a while.
pub(super) fn check<'a>(hosts: impl Iterator<Item = &'a Host> + Clone) -> Result<(), String> {
    let mut peers = hosts.clone().flat_map(Host::peers);
    if peers.all(is_done) {
        for peer in hosts.clone().flat_map(Host::peers) {
            check_peer(peer)?;
        }
    }
    for host in hosts.filter(|host| host.is_empty()) {
        let left = host.census().grown_since(host.fresh());
        if !left.is_empty() {
            return Err(format!("{} without connections holds {left}", host.address));
        }
    }
    Ok(())
}

/// Returns true if a connection is over, or its application has finished its work.
fn is_done(peer: &Peer) -> bool {
    peer.closed.is_some() || peer.connection.is_none() || peer.progress() == Progress::Done
}

fn check_peer(peer: &Peer) -> Result<(), String> {
    let open = peer.closed.is_none() && peer.confirmed_at.is_some();
    let connection = peer.connection.as_ref().filter(|_| open);
    let census = connection.map(Connection::census).unwrap_or_default();
    // The network may have lost what should come next.
    let waits = [
        "packets that must be acknowledged",
        "acknowledgements to send",
    ];
    if waits.iter().any(|name| census.entries(name) > 0) {
        return Ok(());
    }
    match census.leftovers() {
        left if left == Census::default() => Ok(()),
        left => Err(format!(
            "the {:?}'s connection at rest holds {left}",
            peer.side
        )),
    }
}
