//! Node of the network that shows the attacker what passes, and does to it what the attacker wants.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hybriq::tls::Side;
use hybriq_sim::{Datagram, Hop, Node, ms};

/// Number of recent datagrams that the attacker remembers.
const REMEMBERED: usize = 64;

/// Number of faults that may wait for a datagram.
const FAULTS: usize = 16;

/// Bytes that the server may send to an unvalidated address per byte received (RFC 9000 §8.1). It is
/// separate from the core's constant, because it checks the core.
const AMPLIFICATION_FACTOR: usize = 3;

/// Change of one datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Drop,
    Repeat,
    Delay(u8),
    Flip(u16),
    Truncate(u16),
    Source(SocketAddr),
}

/// Knowledge of the attacker.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Recent datagrams towards the server and towards a client.
    pub(crate) recent: VecDeque<Datagram>,
    faults: [VecDeque<Fault>; 2],
    /// Bytes sent by and received from each address that no client has.
    spoofed: HashMap<IpAddr, (usize, usize)>,
}

impl Seen {
    /// Plans a change of the next datagram that has none.
    pub(crate) fn plan(&mut self, toward: Side, fault: Fault) {
        let faults = &mut self.faults[usize::from(toward.is_server())];
        if faults.len() < FAULTS {
            faults.push_back(fault);
        }
    }

    /// Drops all planned changes.
    pub(crate) fn spare_all(&mut self) {
        self.faults = Default::default();
    }

    /// Counts a datagram that the server is about to receive.
    pub(crate) fn count_received(&mut self, datagram: &Datagram) {
        if is_spoofed(datagram.source) {
            self.spoofed.entry(datagram.source.ip()).or_default().0 += datagram.payload.len();
        }
    }

    /// Counts a datagram of the server. Nobody receives at a spoofed address, so it is never
    /// validated.
    fn count_sent(&mut self, datagram: &Datagram) {
        if is_spoofed(datagram.destination) {
            let (received, sent) = self.spoofed.entry(datagram.destination.ip()).or_default();
            *sent += datagram.payload.len();
            assert!(
                *sent <= AMPLIFICATION_FACTOR * *received,
                "{sent} bytes to {}, which sent {received}",
                datagram.destination
            );
        }
    }
}

/// Returns a spoofed source address.
pub(crate) fn spoofed(choice: u8) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, choice % 4], 1000 + u16::from(choice)))
}

fn is_spoofed(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[..3] == [203, 0, 113])
}

/// Attacker on the path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap(Arc<Mutex<Seen>>);

impl Tap {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node for Tap {
    fn on_datagram(&mut self, mut datagram: Datagram, hop: &mut Hop<'_>) {
        let mut seen = self.seen();
        if !hop.toward.is_server() {
            seen.count_sent(&datagram);
        }
        if seen.recent.len() == REMEMBERED {
            seen.recent.pop_front();
        }
        seen.recent.push_back(datagram.clone());
        let fault = seen.faults[usize::from(hop.toward.is_server())].pop_front();
        let mut wait = ms(10);
        match fault {
            Some(Fault::Drop) => return,
            Some(Fault::Repeat) => hop.forward_after(wait, datagram.clone()),
            Some(Fault::Delay(longer)) => wait += ms(longer.into()),
            Some(Fault::Flip(at)) => flip(&mut datagram.payload, at),
            Some(Fault::Truncate(to)) => datagram.payload.truncate(usize::from(to).max(1)),
            Some(Fault::Source(source)) if hop.toward.is_server() => datagram.source = source,
            Some(Fault::Source(_)) | None => {}
        }
        if hop.toward.is_server() {
            seen.count_received(&datagram);
        }
        hop.forward_after(wait, datagram);
    }
}

/// Flips one bit: `at` counts bits, modulo the length.
pub(crate) fn flip(payload: &mut [u8], at: u16) {
    let bits = payload.len() * 8;
    if let Some(bit) = usize::from(at).checked_rem(bits) {
        payload[bit / 8] ^= 1 << (bit % 8);
    }
}
