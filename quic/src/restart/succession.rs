//! State of a worker between the process before it and the one after it.

use std::{
    io, mem,
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::{Arrival, Endpoint, Newcomers, Place};

use super::{
    Claimed,
    backlog::{Flushed, Held},
    relay::{Inlet, Letter, Reason, Relays, Unsent},
};
use crate::udp::Handle;

/// How long a client stays with the process with which it began a handshake. Longer handshakes
/// fail.
const CLAIM: Duration = Duration::from_secs(60);

/// Largest number of bytes that are forwarded in one message.
const TOGETHER: usize = 60 << 10;

/// State of a worker between the process before it and the one after it.
#[derive(Default)]
pub(crate) struct Succession {
    /// Relay from the successor, once there is one; the successor has the sockets then.
    inlet: Option<Inlet>,
    /// True while clients that arrived before the successor wait for a decision.
    deciding: bool,
    outgoing: Outgoing,
    /// Datagrams that earlier processes had no room for.
    held: Held,
}

/// Datagrams of one message that are forwarded together.
#[derive(Default)]
struct Outgoing {
    head: Option<(Place, Letter)>,
    bytes: Vec<u8>,
}

/// Datagrams whose process has ended: this process answers them.
pub(crate) struct Orphaned {
    /// Generation of the process.
    pub(crate) generation: u8,
    pub(crate) letter: Letter,
    pub(crate) datagrams: Vec<u8>,
}

impl Outgoing {
    /// Returns true if a datagram can join those to be forwarded together.
    fn takes(&self, to: Place, arrival: &Arrival, datagram: &[u8]) -> bool {
        self.head.as_ref().is_some_and(|(place, letter)| {
            let stride = usize::from(letter.stride);
            let known = &letter.arrival;
            *place == to
                && (known.peer, known.local, known.ecn)
                    == (arrival.peer, arrival.local, arrival.ecn)
                // Only the last datagram may be shorter.
                && self.bytes.len() % stride == 0
                && datagram.len() <= stride
                && self.bytes.len() + datagram.len() <= TOGETHER
        })
    }
}

impl Succession {
    /// Returns the number of waiting messages for earlier processes.
    pub(crate) fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Returns the relay of the successor.
    pub(crate) const fn inlet(&self) -> Option<&Inlet> {
        self.inlet.as_ref()
    }

    /// Returns the relay of the successor, to lend out its memory.
    pub(crate) const fn inlet_mut(&mut self) -> Option<&mut Inlet> {
        self.inlet.as_mut()
    }

    /// Returns true if the worker receives from its sockets.
    pub(crate) const fn has_sockets(&self) -> bool {
        self.inlet.is_none()
    }

    /// Returns the time at which datagrams must be forwarded again.
    pub(crate) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.held.next_timeout(now)
    }

    /// Returns the treatment of new clients.
    pub(crate) const fn newcomers(&self) -> Newcomers {
        if self.has_sockets() {
            Newcomers::Welcome
        } else {
            Newcomers::Ignored
        }
    }

    /// Receives from the successor's relay from now on.
    pub(crate) fn give_way(&mut self, relay: Handle) -> io::Result<()> {
        self.inlet = Some(Inlet::register(relay)?);
        Ok(())
    }

    /// Receives from the sockets again.
    pub(crate) fn go_on(&mut self) {
        self.inlet = None;
    }

    /// Finishes with the clients that arrived before the successor.
    pub(crate) const fn on_succeeded(&mut self) {
        self.deciding = true;
    }

    /// Returns true, once, when no client that arrived before the successor waits for a decision
    /// any longer.
    pub(crate) const fn has_decided(&mut self, undecided: usize) -> bool {
        let decided = self.deciding && undecided == 0;
        if decided {
            self.deciding = false;
        }
        decided
    }

    /// Returns true if a datagram can join those that were collected to be forwarded together.
    pub(crate) fn joins(&self, to: Place, arrival: &Arrival, datagram: &[u8]) -> bool {
        self.outgoing.takes(to, arrival, datagram)
    }

    /// Collects a datagram for an earlier process. If it does not [join](Self::joins) those that
    /// were collected, they must have been [sent](Self::send) before.
    pub(crate) fn collect(&mut self, to: Place, arrival: &Arrival, datagram: &[u8]) {
        self.outgoing.head.get_or_insert_with(|| {
            let letter = Letter {
                arrival: *arrival,
                reason: Reason::Id,
                stride: datagram.len().max(1) as u16,
            };
            (to, letter)
        });
        self.outgoing.bytes.extend_from_slice(datagram);
    }

    /// Forwards the collected datagrams, or holds them if the earlier process has no room.
    pub(crate) fn send(&mut self, now: Instant, relays: &Relays) -> Result<Flushed, Orphaned> {
        let Some((to, letter)) = self.outgoing.head.take() else {
            return Ok(Flushed::default());
        };
        let bytes = &self.outgoing.bytes;
        let count = bytes.len().div_ceil(letter.stride.into()) as u64;
        let mut flushed = Flushed::default();
        let sent = if self.held.has(to) {
            Err(Unsent::Full)
        } else {
            relays.send(to, letter, bytes)
        };
        match sent {
            Ok(()) => flushed.sent = count,
            Err(Unsent::Full) if self.held.push(now, to, letter, bytes) => {}
            Err(Unsent::Full) => flushed.dropped = count,
            Err(Unsent::Gone) => {
                return Err(Orphaned {
                    generation: to.generation,
                    letter,
                    datagrams: mem::take(&mut self.outgoing.bytes),
                });
            }
        }
        self.outgoing.bytes.clear();
        Ok(flushed)
    }

    /// Forwards datagrams that earlier processes had no room for.
    pub(crate) fn send_held(&mut self, now: Instant, relays: &Relays) -> Flushed {
        self.held.flush(now, relays)
    }
}

/// Returns the clients whose handshakes this worker finishes although it gives way to a successor. The
/// first worker adds those that earlier processes finish: every worker knows them.
pub(crate) fn claims(endpoint: &Endpoint, place: Place, now: Instant) -> Vec<Claimed> {
    let own = endpoint.claims().into_iter();
    let mut claims: Vec<Claimed> = own
        .map(|claim| Claimed {
            claim,
            place,
            lifetime: CLAIM,
        })
        .collect();
    if place.worker == 0 {
        let earlier = endpoint.earlier_claims(now);
        claims.extend(earlier.map(|(claim, place, until)| Claimed {
            claim,
            place,
            lifetime: until.saturating_duration_since(now),
        }));
    }
    claims
}
