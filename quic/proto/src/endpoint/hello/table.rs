//! Partial ClientHellos: a post-quantum ClientHello fills two datagrams, and until it is complete
//! it costs neither a TLS object nor a connection, only a place in this table.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    time::Instant,
};

use hybriq_tls::ClientHello;
use slab::Slab;

use crate::{
    buffer::Reassembler,
    connection::{AddressProof, Exchanged, FirstFlight, Setup, Situation},
    endpoint::admit::admission::Proof,
    owners::acks::Received,
    wire::{
        limits,
        packet::{Cid, DirectionKeys, PacketNumber, Version},
        udp::Local,
    },
};

/// A ClientHello, complete or partial.
pub(in crate::endpoint) struct Hello {
    pub(in crate::endpoint) peer: SocketAddr,
    pub(in crate::endpoint) local: Local,
    /// Version of the client's first flight, in which the answer is sent until the ClientHello is
    /// complete (RFC 9369 §4.1).
    pub(in crate::endpoint) version: Version,
    /// Connection id that the client chose for us.
    pub(in crate::endpoint) dcid: Cid,
    /// Connection id of the client.
    pub(in crate::endpoint) peer_cid: Cid,
    /// Connection id that we use from our first packet on.
    pub(in crate::endpoint) local_cid: Cid,
    /// Proof in the token of the first packet.
    pub(in crate::endpoint) proof: Proof,
    /// Keys of the client's Initials, until the connection takes them.
    pub(in crate::endpoint) keys: Option<Box<DirectionKeys>>,
    pub(in crate::endpoint) received: Received,
    pub(in crate::endpoint) next_pn: PacketNumber,
    pub(in crate::endpoint) bytes_received: u64,
    pub(in crate::endpoint) bytes_sent: u64,
    pub(in crate::endpoint) crypto: Crypto,
    /// Bytes for which `crypto` counts in the table.
    pub(in crate::endpoint) counted: usize,
    /// Time at which a partial ClientHello is acknowledged if no more arrives.
    pub(in crate::endpoint) ack_at: Option<Instant>,
    pub(in crate::endpoint) expires: Instant,
}

/// Bytes that a piece behind a gap counts for in addition to its data.
const PIECE_OVERHEAD: usize = 256;

/// Smallest growth of the start of a ClientHello, so that tiny pieces are not copied again and
/// again.
const GROWTH: usize = 256;

/// The CRYPTO data of a ClientHello.
#[derive(Default)]
pub(in crate::endpoint) struct Crypto {
    /// Data from the first byte to the first gap.
    start: Vec<u8>,
    /// Data behind gaps, if there are any.
    ahead: Option<Box<Reassembler>>,
}

/// The CRYPTO data exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct Exceeded;

impl Crypto {
    pub(in crate::endpoint) fn insert(&mut self, offset: u64, data: &[u8]) -> Result<(), Exceeded> {
        if offset.saturating_add(data.len() as u64) > limits::PARTIAL_HELLO_BYTES as u64 {
            return Err(Exceeded);
        }
        let end = self.start.len() as u64;
        let Some(ahead) = &mut self.ahead else {
            if let Some(known) = end.checked_sub(offset) {
                self.append(data.get(known as usize..).unwrap_or_default());
                return Ok(());
            }
            let mut ahead = Reassembler::beginning_at(end, limits::CRYPTO_PIECES);
            ahead.insert(offset, data).map_err(|_| Exceeded)?;
            self.ahead = Some(Box::new(ahead));
            return Ok(());
        };
        ahead.insert(offset, data).map_err(|_| Exceeded)?;
        while let Some(chunk) = self
            .ahead
            .as_mut()
            .and_then(|ahead| ahead.read_chunk(usize::MAX))
        {
            self.append(&chunk);
        }
        if self.ahead.as_ref().is_some_and(|ahead| ahead.pieces() == 0) {
            self.ahead = None;
        }
        Ok(())
    }

    /// Appends data to the start, which takes little more memory than its bytes.
    fn append(&mut self, data: &[u8]) {
        if self.start.capacity() - self.start.len() < data.len() {
            self.start.reserve_exact(data.len().max(GROWTH));
        }
        self.start.extend_from_slice(data);
    }

    /// Returns the bytes that it counts for: at least as many as it holds. Data behind a gap takes
    /// up to twice its bytes.
    fn cost(&self) -> usize {
        let ahead = self.ahead.as_ref().map_or(0, |ahead| {
            2 * ahead.bytes_behind_gaps() + (1 + ahead.pieces()) * PIECE_OVERHEAD
        });
        self.start.capacity() + ahead
    }

    /// Drops the ClientHello, which was read, and everything behind a gap: only the data directly
    /// after the ClientHello is kept.
    pub(in crate::endpoint) fn release(&mut self, len: usize) {
        let behind = self.start.get(len..).unwrap_or_default().to_vec();
        *self = Self {
            start: behind,
            ..Self::default()
        };
    }

    /// Returns the data received without a gap: from the first byte on, or after the ClientHello
    /// once that was read.
    pub(in crate::endpoint) fn contiguous(&self) -> &[u8] {
        &self.start
    }
}

/// A complete ClientHello of a client that wants to connect. No resources have been spent on it
/// yet.
///
/// Pass it to [`crate::endpoint::Endpoint::accept`], [`crate::endpoint::Endpoint::retry`],
/// [`crate::endpoint::Endpoint::refuse`] or [`crate::endpoint::Endpoint::ignore`].
#[non_exhaustive]
pub struct Incoming {
    pub(in crate::endpoint) hello: Box<Hello>,
    pub(in crate::endpoint) client_hello: ClientHello,
}

impl Incoming {
    /// Returns the ClientHello.
    pub fn client_hello(&self) -> &ClientHello {
        &self.client_hello
    }

    /// Returns the client's address, which may be forged unless [`Incoming::is_validated`].
    pub fn peer_address(&self) -> SocketAddr {
        self.hello.peer
    }

    /// Returns our address that received it, if the socket reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.hello.local.ip
    }
}

impl Incoming {
    /// Forecasts the answers of a server with this setup, for each certificate that suits the
    /// client, the server's first choice first. Empty if the provider cannot forecast them.
    ///
    /// Takes into account the client's datagrams that arrived so far, and the proof of its address.
    pub fn first_flights(&self, setup: &Setup) -> Vec<FirstFlight> {
        let hello = &self.hello;
        setup.forecast(
            &self.client_hello,
            &Situation {
                exchanged: Exchanged {
                    received: hello.bytes_received,
                    sent: hello.bytes_sent,
                },
                proof: match (hello.proof.validated, hello.proof.original_dcid()) {
                    (false, _) => AddressProof::None,
                    (true, None) => AddressProof::Token,
                    (true, Some(_)) => AddressProof::Retry,
                },
                peer_cid: hello.peer_cid.len(),
                local_cid: hello.local_cid,
                ecn: hello.received.ecn_counts().is_some(),
            },
        )
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming")
            .field("peer", &self.hello.peer)
            .field("client_hello", &self.client_hello)
            .finish_non_exhaustive()
    }
}

/// Partial ClientHellos, limited in number and in bytes. When the table is full the oldest one is
/// dropped, preferably one whose address is not proven: a flood then competes with itself, and an
/// honest client needs its place for only one round trip. Meanwhile newcomers must prove their
/// address.
#[derive(Default)]
pub(in crate::endpoint) struct HelloTable {
    pub(in crate::endpoint) hellos: Slab<Hello>,
    /// Bytes of CRYPTO data in all places.
    pub(in crate::endpoint) bytes: usize,
    /// Places by age, to find the oldest: those of clients that did not prove their address, and the
    /// others. Entries may be stale.
    pub(in crate::endpoint) order: [VecDeque<(usize, Instant)>; 2],
    /// Places by the time of their acknowledgement.
    pub(in crate::endpoint) acks: VecDeque<(usize, Instant)>,
}

impl HelloTable {
    pub(in crate::endpoint) fn len(&self) -> usize {
        self.hellos.len()
    }

    /// Adds a hello and returns its place. Others may have to be dropped, before and after:
    /// [`HelloTable::pop_to_add`], [`HelloTable::pop_excess`].
    pub(in crate::endpoint) fn insert(&mut self, hello: Hello) -> usize {
        let (expires, order) = (hello.expires, usize::from(hello.proof.validated));
        let place = self.hellos.insert(hello);
        let [unproven, proven] = &mut self.order;
        if unproven.len() + proven.len() > 2 * limits::PARTIAL_HELLOS {
            forget_stale(unproven, &self.hellos, |hello| Some(hello.expires));
            forget_stale(proven, &self.hellos, |hello| Some(hello.expires));
            forget_stale(&mut self.acks, &self.hellos, |hello| hello.ack_at);
        }
        if let Some(order) = self.order.get_mut(order) {
            order.push_back((place, expires));
        }
        self.count(place);
        place
    }

    /// Counts the bytes of a hello that changed.
    pub(in crate::endpoint) fn count(&mut self, place: usize) {
        if let Some(hello) = self.hellos.get_mut(place) {
            let cost = hello.crypto.cost();
            self.bytes = self.bytes - hello.counted + cost;
            hello.counted = cost;
        }
    }

    /// Returns true if there is no room for another.
    pub(in crate::endpoint) fn is_full(&self) -> bool {
        self.hellos.len() >= limits::PARTIAL_HELLOS
    }

    /// Removes and returns the oldest hello, if there is no room for another.
    pub(in crate::endpoint) fn pop_to_add(&mut self) -> Option<Hello> {
        if self.is_full() {
            self.pop_oldest()
        } else {
            None
        }
    }

    /// Removes and returns the oldest hello, if all of them together hold too much.
    pub(in crate::endpoint) fn pop_excess(&mut self) -> Option<Hello> {
        let full = self.bytes > limits::PARTIAL_HELLOS_BYTES;
        if full { self.pop_oldest() } else { None }
    }

    fn pop_oldest(&mut self) -> Option<Hello> {
        for order in &mut self.order {
            while let Some((place, expires)) = order.pop_front() {
                let hello = self.hellos.get(place);
                if hello.is_some_and(|hello| hello.expires == expires) {
                    return self.remove(place);
                }
            }
        }
        None
    }

    pub(in crate::endpoint) fn get_mut(&mut self, place: usize) -> Option<&mut Hello> {
        self.hellos.get_mut(place)
    }

    pub(in crate::endpoint) fn remove(&mut self, place: usize) -> Option<Hello> {
        let removed = self.hellos.try_remove(place);
        self.bytes -= removed.as_ref().map_or(0, |hello| hello.counted);
        if self.hellos.is_empty() {
            self.order.iter_mut().for_each(VecDeque::clear);
            self.acks.clear();
            self.hellos.shrink_to_fit();
        }
        removed
    }

    pub(in crate::endpoint) fn schedule_ack(&mut self, place: usize, at: Instant) {
        if let Some(hello) = self.hellos.get_mut(place) {
            if hello.ack_at.is_none() {
                hello.ack_at = Some(at);
                self.acks.push_back((place, at));
            }
        }
    }

    /// Returns the next partial ClientHello whose acknowledgement is due.
    pub(in crate::endpoint) fn poll_ack(&mut self, now: Instant) -> Option<&mut Hello> {
        while let Some(&(place, at)) = self.acks.front() {
            if at > now {
                return None;
            }
            self.acks.pop_front();
            if self
                .hellos
                .get(place)
                .is_some_and(|hello| hello.ack_at == Some(at))
            {
                let hello = self.hellos.get_mut(place)?;
                hello.ack_at = None;
                return Some(hello);
            }
        }
        None
    }

    /// Removes and returns an expired hello.
    pub(in crate::endpoint) fn pop_expired(&mut self, now: Instant) -> Option<Hello> {
        for order in &mut self.order {
            while let Some(&(place, expires)) = order.front() {
                let hello = self.hellos.get(place);
                let live = hello.is_some_and(|hello| hello.expires == expires);
                if live && expires > now {
                    break;
                }
                order.pop_front();
                if live {
                    return self.remove(place);
                }
            }
        }
        None
    }

    pub(in crate::endpoint) fn next_timeout(&self) -> Option<Instant> {
        let ack = self.acks.front().map(|&(_, at)| at);
        let fronts = self.order.iter().filter_map(VecDeque::front);
        fronts.map(|&(_, at)| at).chain(ack).min()
    }
}

/// Drops entries whose hello is gone, so that the queues stay bounded like the table.
fn forget_stale(
    queue: &mut VecDeque<(usize, Instant)>,
    hellos: &Slab<Hello>,
    time: impl Fn(&Hello) -> Option<Instant>,
) {
    queue.retain(|&(place, at)| hellos.get(place).and_then(&time) == Some(at));
}
