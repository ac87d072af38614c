//! Rules for every datagram in a world, and for its hosts once everything is at rest: they hold no more than
//! when everything was new.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
};

use hybriq_proto::{connection::Connection, stats::census::Census, wire::packet::Cid};
use hybriq_tls::Side;

use crate::{Datagram, Host, PacketKind, Peer, Progress};

/// Amplification limit of RFC 9000 §8.1, as a separate constant from the core's, because it checks
/// the core.
const AMPLIFICATION_FACTOR: u64 = 3;
const MIN_DATAGRAM: usize = 1200;

/// Observer in front of the server, which checks the rules for both ends.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: HashMap<SocketAddr, Account>,
    /// Connection ids that the server's Retry packets gave to clients.
    retried: HashSet<(SocketAddr, Cid)>,
    /// Source connection id of the answer to each destination connection id.
    server_cids: HashMap<(SocketAddr, Cid), Cid>,
    /// True if clients may be rejected and start again under the same id.
    pub(crate) hostile_clients: bool,
}

#[derive(Debug, Default)]
struct Account {
    received: u64,
    sent: u64,
    validated: bool,
    /// True if the server's datagrams reach a client at this address.
    reached: bool,
}

impl Ledger {
    /// Notes that a datagram from the server reached a client.
    pub(crate) fn on_client_received(&mut self, datagram: &Datagram) {
        let account = self.accounts.entry(datagram.destination).or_default();
        account.reached = true;
    }

    /// Notes that a datagram reached the server. A Handshake packet proves the address, and so does
    /// an Initial to the id of a Retry (RFC 9000 §8.1). Later, a datagram large enough for the
    /// answer to a challenge may also prove it (§8.2.2), if the challenge can have arrived.
    pub(crate) fn on_server_received(&mut self, datagram: &Datagram) {
        let account = self.accounts.entry(datagram.source).or_default();
        account.received += datagram.payload.len() as u64;
        let mut may_answer = false;
        account.validated |= datagram.packets().iter().any(|packet| match packet.kind {
            PacketKind::Handshake => true,
            PacketKind::Initial => self.retried.contains(&(datagram.source, packet.dcid)),
            PacketKind::OneRtt if packet.range.len() >= MIN_DATAGRAM => {
                may_answer = true;
                account.reached
            }
            _ => false,
        });
        if may_answer && self.hostile_clients {
            // The answer to a challenge may come from a different address than the challenge went
            // to (RFC 9000 §8.2.2). The sender of the answer must have received the challenge,
            // which nobody has at a spoofed address.
            for account in self.accounts.values_mut() {
                account.validated |= account.reached;
            }
        }
    }

    /// Checks a datagram that an end sent.
    pub(crate) fn on_sent(&mut self, toward: Side, datagram: &Datagram) -> Result<(), String> {
        let packets = datagram.packets();
        let len = datagram.payload.len();
        if let Some(bad) = packets
            .iter()
            .find(|packet| packet.kind == PacketKind::Unknown)
        {
            return Err(format!("bytes {:?} of {len} are no packet", bad.range));
        }
        if packets.is_empty() {
            return Err("an empty datagram was sent".to_owned());
        }
        if toward.is_server() {
            let initial = packets
                .iter()
                .any(|packet| packet.kind == PacketKind::Initial);
            if initial && len < MIN_DATAGRAM {
                return Err(format!("a client's Initial in a datagram of {len} bytes"));
            }
            return Ok(());
        }
        self.on_server_sent(datagram)?;
        for packet in packets {
            if packet.kind == PacketKind::Retry {
                self.retried.insert((datagram.destination, packet.scid));
            }
            if matches!(packet.kind, PacketKind::Initial | PacketKind::Handshake) {
                let key = (datagram.destination, packet.dcid);
                let first = *self.server_cids.entry(key).or_insert(packet.scid);
                if first != packet.scid && !self.hostile_clients {
                    return Err(format!(
                        "the server's source connection id changed from {first} to {}",
                        packet.scid
                    ));
                }
            }
        }
        Ok(())
    }

    fn on_server_sent(&mut self, datagram: &Datagram) -> Result<(), String> {
        let account = self.accounts.entry(datagram.destination).or_default();
        account.sent += datagram.payload.len() as u64;
        let allowed = AMPLIFICATION_FACTOR * account.received;
        if !account.validated && account.sent > allowed {
            return Err(format!(
                "the server sent {} bytes to {}, which is not validated and sent {}",
                account.sent, datagram.destination, account.received
            ));
        }
        Ok(())
    }
}

/// Checks the hosts of a world in which nothing happens for a while.
pub(crate) fn check_rest<'a>(hosts: impl Iterator<Item = &'a Host> + Clone) -> Result<(), String> {
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
