//! Datagrams that leave together in one call (GSO).

use std::net::{IpAddr, SocketAddr};

use quinn_udp::Transmit;

use super::Socket;
use crate::run::link::schedule::{Held, Way};

/// Maximum number of bytes that the system takes in one call.
const LONGEST: usize = 65_000;

/// Datagrams with the same way, mark and size; the last may be shorter.
#[derive(Default)]
pub(crate) struct Train {
    head: Option<Head>,
    bytes: Vec<u8>,
    count: usize,
    closed: bool,
}

struct Head {
    way: Way,
    ecn: Option<quinn_udp::EcnCodepoint>,
    size: usize,
}

/// Destination of a train.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) address: SocketAddr,
    pub(crate) from: Option<IpAddr>,
}

impl Train {
    /// Returns true if a datagram may join.
    pub(crate) fn takes(&self, held: &Held, most: usize) -> bool {
        self.head.as_ref().is_none_or(|head| {
            !self.closed
                && (head.way, head.ecn) == (held.way, held.ecn)
                && !held.bytes.is_empty()
                && held.bytes.len() <= head.size
                && self.count < most
                && self.bytes.len() + held.bytes.len() <= LONGEST
        })
    }

    pub(crate) fn push(&mut self, held: &Held) {
        let size = self
            .head
            .get_or_insert(Head {
                way: held.way,
                ecn: held.ecn,
                size: held.bytes.len(),
            })
            .size;
        self.closed = held.bytes.len() < size || size == 0;
        self.bytes.extend_from_slice(&held.bytes);
        self.count += 1;
    }

    /// Returns its way; `None` while it is empty.
    pub(crate) fn way(&self) -> Option<Way> {
        self.head.as_ref().map(|head| head.way)
    }

    /// Sends and empties it. Returns the number of datagrams and bytes that were not sent.
    pub(crate) fn send(&mut self, to: Option<Destination<'_>>) -> (u64, u64) {
        let unsent = match (&self.head, to) {
            (Some(head), Some(to)) => self.send_to(head, to),
            _ => (self.count as u64, self.bytes.len() as u64),
        };
        self.head = None;
        self.bytes.clear();
        self.count = 0;
        self.closed = false;
        unsent
    }

    fn send_to(&self, head: &Head, to: Destination<'_>) -> (u64, u64) {
        let send = |contents: &[u8], segment_size| {
            to.socket.send(&Transmit {
                destination: to.address,
                ecn: head.ecn,
                contents,
                segment_size,
                src_ip: to.from,
            })
        };
        let together = (self.count > 1).then_some(head.size);
        match send(&self.bytes, together) {
            Ok(()) => (0, 0),
            Err(_) if self.count == 1 => (1, self.bytes.len() as u64),
            // The system joins none here, so each is sent alone.
            Err(_) => self
                .bytes
                .chunks(head.size)
                .filter(|datagram| send(datagram, None).is_err())
                .fold((0, 0), |(count, bytes), datagram| {
                    (count + 1, bytes + datagram.len() as u64)
                }),
        }
    }
}
