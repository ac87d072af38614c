//! 0-RTT packets received before there is a connection: with an incomplete ClientHello, while the
//! application decides, or before any Initial (RFC 9000 §5.2.2, RFC 9001 §5.7).

use std::{collections::VecDeque, net::SocketAddr, time::Instant};

use hashbrown::HashMap;

use super::table::Hello;
use crate::{
    connection::{KeptPacket, Seen},
    endpoint::{Arrival, Endpoint, Routed},
    random::prf::KeyedHash,
    stats::DropReason,
    wire::{
        limits,
        packet::{self, Cid, Decoded, Kind, Packets, Protected},
    },
};

/// Bytes that a packet counts for in addition to its data.
pub(in crate::endpoint) const OVERHEAD: usize = 256;

/// Bytes that a client counts for in addition to its packets: its places in the table and in the
/// queue, both of which may be half empty.
const CLIENT: usize = 320;

/// Number of a client's 0-RTT packets beyond which a part of its ClientHello is not acknowledged.
///
/// With more packets, and the rest of the ClientHello, half an initial window (RFC 9002 §7.2) is
/// full. From the acknowledgement the client would learn that the other part was lost, halve its
/// window, and find no room to resend that part. It would then have no probe timer, because 0-RTT
/// packets have none; quinn 0.11 waits until its idle timeout. Without an acknowledgement, its
/// probe timer repairs the loss.
const FEW: usize = 3;

/// Sender of packets: the connection id that they were sent to, and their source address.
type Client = (Cid, SocketAddr);

/// 0-RTT packets waiting for a connection, limited per client and in total. When there are too
/// many, those of the oldest client are dropped, since they will be resent.
#[derive(Debug)]
pub(in crate::endpoint) struct EarlyPackets {
    pub(in crate::endpoint) clients: HashMap<Client, Kept, KeyedHash>,
    /// Clients in the order of their first packets. Entries may be stale.
    pub(in crate::endpoint) order: VecDeque<(Client, Instant)>,
    pub(in crate::endpoint) bytes: usize,
}

/// Packets kept for one client.
#[derive(Debug)]
pub(in crate::endpoint) struct Kept {
    pub(in crate::endpoint) packets: Vec<KeptPacket>,
    /// Bytes of datagrams not counted elsewhere, for the anti-amplification limit.
    pub(in crate::endpoint) credit: u64,
    bytes: usize,
    since: Instant,
}

impl EarlyPackets {
    pub(in crate::endpoint) fn new(key: [u8; 16]) -> Self {
        Self {
            clients: HashMap::with_hasher(KeyedHash(key)),
            order: VecDeque::new(),
            bytes: 0,
        }
    }

    fn keep(&mut self, client: Client, packet: packet::Kept, seen: Seen) {
        let cost = packet.len() + OVERHEAD;
        self.evict(seen.at);
        let held = self.clients.get(&client).map_or(CLIENT, |kept| kept.bytes);
        if held + cost > limits::EARLY_BYTES {
            return;
        }
        let kept = self.clients.entry(client).or_insert_with(|| {
            self.order.push_back((client, seen.at));
            self.bytes += CLIENT;
            Kept {
                packets: Vec::new(),
                credit: 0,
                bytes: CLIENT,
                since: seen.at,
            }
        });
        kept.bytes += cost;
        self.bytes += cost;
        // Only few packets fit, so none need room for more.
        kept.packets.reserve_exact(1);
        kept.packets.push(KeptPacket { packet, seen });
        self.evict(seen.at);
    }

    /// Drops expired packets, and the oldest while there are too many.
    fn evict(&mut self, now: Instant) {
        while let Some(&(client, since)) = self.order.front() {
            let live = self
                .clients
                .get(&client)
                .is_some_and(|kept| kept.since == since);
            let old = now.saturating_duration_since(since) >= limits::EARLY_LIFETIME;
            if live && !old && self.bytes <= limits::ALL_EARLY_BYTES {
                return;
            }
            self.order.pop_front();
            if live {
                self.take(&client);
            }
        }
    }

    /// Returns the number of clients with packets.
    pub(in crate::endpoint) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Returns the time at which the oldest packets expire.
    pub(in crate::endpoint) fn next_timeout(&self) -> Option<Instant> {
        let (_, since) = self.order.front()?;
        since.checked_add(limits::EARLY_LIFETIME)
    }

    /// Drops expired packets.
    pub(in crate::endpoint) fn on_timeout(&mut self, now: Instant) {
        self.evict(now);
    }

    fn credit(&mut self, client: &Client, bytes: u64) {
        if let Some(kept) = self.clients.get_mut(client) {
            kept.credit = kept.credit.saturating_add(bytes);
        }
    }

    pub(in crate::endpoint) fn take(&mut self, client: &Client) -> Option<Kept> {
        let kept = self.clients.remove(client)?;
        self.bytes -= kept.bytes;
        if self.clients.is_empty() {
            self.order.clear();
            self.clients.shrink_to_fit();
        }
        Some(kept)
    }

    /// Returns true if so many packets of a ClientHello's client are waiting that its congestion
    /// window may be full (see [`FEW`]).
    pub(in crate::endpoint) fn fill_half_a_window(&self, hello: &Hello) -> bool {
        let kept = self.clients.get(&(hello.dcid, hello.peer));
        kept.is_some_and(|kept| kept.packets.len() > FEW)
    }

    /// Takes the packets of a ClientHello's client, both under the id it chose for us and under our
    /// own.
    pub(in crate::endpoint) fn take_of(&mut self, hello: &Hello) -> Vec<Kept> {
        let ids = [hello.dcid, hello.local_cid];
        ids.iter()
            .filter_map(|cid| self.take(&(*cid, hello.peer)))
            .collect()
    }
}

impl Endpoint {
    /// Keeps the 0-RTT packets of a datagram, if our server may want them, and counts the datagram
    /// for the anti-amplification limit.
    pub(in crate::endpoint) fn keep_early(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        dcid: &Cid,
        packets: Packets<'_>,
    ) -> Routed<'static> {
        if !self.wants_early() {
            return Routed::Dropped(DropReason::TooEarly);
        }
        let len = packets.bytes().len() as u64;
        let packets = packets.map_while(|packet| match packet {
            Ok(Decoded::Protected(packet)) => Some(packet),
            _ => None,
        });
        self.keep_zero_rtt(now, arrival, dcid, packets);
        self.early.credit(&(*dcid, arrival.peer), len);
        Routed::Consumed
    }

    /// Keeps the 0-RTT packets for this connection id.
    pub(in crate::endpoint) fn keep_zero_rtt<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        dcid: &Cid,
        packets: impl IntoIterator<Item = Protected<'d>>,
    ) {
        let client = (*dcid, arrival.peer);
        let seen = Seen {
            at: now,
            ecn: arrival.ecn,
        };
        for packet in packets {
            if packet.kind == Kind::ZeroRtt && packet.dcid == *dcid {
                self.early.keep(client, packet.into(), seen);
            }
        }
    }

    /// Returns true if our server may want 0-RTT packets.
    pub(in crate::endpoint) fn wants_early(&self) -> bool {
        self.server
            .as_ref()
            .is_some_and(|server| server.provider.supports_early_data())
    }
}
