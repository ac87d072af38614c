//! Processes that follow one another on the same sockets: the worker makes way for its successor,
//! and forwards the datagrams of its predecessors.

use std::{
    io, mem,
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::{Arrival, Newcomers, Place, Routed};
use hybriq_proto::stats::DropReason;
use tokio::sync::oneshot;

use crate::{
    restart::{
        backlog::{Flushed, Held},
        earlier::Claimed,
        relay::{Handle, Inlet, Letter, Reason, Unsent},
    },
    worker::Worker,
};

/// How long a client stays with the process with which it began a handshake. Longer handshakes
/// fail.
const CLAIM: Duration = Duration::from_secs(60);

/// Largest number of messages that are received from the successor in one turn.
const MESSAGES: usize = 256;

/// Largest number of bytes that are forwarded in one message.
const TOGETHER: usize = 60 << 10;

/// State of a worker towards its successor.
#[derive(Default)]
pub(in crate::worker) struct Succession {
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

    fn open(&mut self, to: Place, arrival: &Arrival, datagram: &[u8]) {
        let letter = Letter {
            arrival: *arrival,
            reason: Reason::Id,
            stride: datagram.len().max(1) as u16,
        };
        self.head = Some((to, letter));
    }
}

impl Succession {
    /// Returns the number of waiting messages for earlier processes.
    pub(in crate::worker) fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Returns the relay of the successor.
    pub(in crate::worker) const fn inlet(&self) -> Option<&Inlet> {
        self.inlet.as_ref()
    }

    /// Returns true if the worker receives from its sockets.
    pub(in crate::worker) const fn has_sockets(&self) -> bool {
        self.inlet.is_none()
    }

    /// Returns the time at which datagrams must be forwarded again.
    pub(in crate::worker) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.held.next_timeout(now)
    }

    /// Returns the treatment of new clients.
    pub(in crate::worker) const fn newcomers(&self) -> Newcomers {
        if self.has_sockets() {
            Newcomers::Welcome
        } else {
            Newcomers::Ignored
        }
    }
}

impl Worker {
    /// Stops receiving from the sockets, receives from the successor's relay, and reports which
    /// clients have not finished their handshake.
    pub(in crate::worker) fn give_way(
        &mut self,
        relay: Handle,
        reply: oneshot::Sender<Vec<Claimed>>,
    ) {
        // Dropping the reply reports that the worker has failed.
        match Inlet::register(relay) {
            Ok(inlet) => {
                self.succession.inlet = Some(inlet);
                self.sockets.give_away();
            }
            Err(error) => {
                tracing::warn!(%error, "cannot give way to a successor");
                return;
            }
        }
        self.endpoint.set_newcomers(Newcomers::Ignored);
        let place = Place {
            generation: self.settings.inheritance.generation,
            worker: self.index,
        };
        let own = self.endpoint.claims().into_iter();
        let mut claims: Vec<Claimed> = own
            .map(|claim| Claimed {
                claim,
                place,
                lifetime: CLAIM,
            })
            .collect();
        // Every worker knows the claims of earlier processes, so one reports them.
        if self.index == 0 {
            let now = self.now;
            let earlier = self.endpoint.earlier_claims(now);
            claims.extend(earlier.map(|(claim, place, until)| {
                let lifetime = until.saturating_duration_since(now);
                Claimed {
                    claim,
                    place,
                    lifetime,
                }
            }));
        }
        if reply.send(claims).is_err() {
            self.go_on();
        }
    }

    /// Receives from the sockets again: there is no successor, or no longer one.
    pub(in crate::worker) fn go_on(&mut self) {
        self.succession.inlet = None;
        self.sockets.take_back();
        if !self.shared.has_successor() {
            self.endpoint.set_newcomers(Newcomers::Welcome);
        }
    }

    /// Finishes with the clients that arrived before the successor.
    pub(in crate::worker) const fn on_succeeded(&mut self) {
        self.succession.deciding = true;
    }

    /// Accepts no more clients once all that arrived before the successor are decided on.
    pub(in crate::worker) fn finish_deciding(&mut self) {
        if self.succession.deciding && self.endpoint.undecided() == 0 {
            self.succession.deciding = false;
            self.shared.on_decided(&mut self.wakes);
        }
    }

    /// Receives and processes datagrams that the successor forwards.
    pub(in crate::worker) fn receive_forwarded(&mut self) {
        let Some(inlet) = &mut self.succession.inlet else {
            return;
        };
        // Taken out so that the messages and the rest of the worker can be borrowed at the same
        // time.
        let mut memory = inlet.take_memory();
        for _ in 0..MESSAGES {
            let Some(inlet) = &self.succession.inlet else {
                break;
            };
            match inlet.receive(&mut memory) {
                Ok(Some((letter, datagrams))) => self.process_forwarded(letter, datagrams),
                Ok(None) => self.stats.on_dropped(DropReason::Malformed),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    tracing::warn!(%error, "the successor has ended; this process receives again");
                    self.go_on();
                    self.shared.on_resumed();
                }
            }
        }
        if let Some(inlet) = &mut self.succession.inlet {
            inlet.give_back(memory);
        }
    }

    fn process_forwarded(&mut self, letter: Letter, datagrams: &mut [u8]) {
        let stride = usize::from(letter.stride);
        self.stats.forwards_received += datagrams.len().div_ceil(stride) as u64;
        match letter.reason {
            Reason::Id => self.process_message(&letter.arrival, datagrams, stride),
            Reason::Stray => self.process_stray(&letter.arrival, datagrams),
        }
    }

    /// Forwards a datagram to the earlier process that it belongs to, together with those of the
    /// same message that follow: [`Worker::flush_forwarded`] must be called after the last one.
    pub(in crate::worker) fn forward(&mut self, to: Place, arrival: &Arrival, datagram: &[u8]) {
        if !self.succession.outgoing.takes(to, arrival, datagram) {
            self.flush_forwarded();
            self.succession.outgoing.open(to, arrival, datagram);
        }
        self.succession.outgoing.bytes.extend_from_slice(datagram);
    }

    /// Forwards the collected datagrams.
    pub(in crate::worker) fn flush_forwarded(&mut self) {
        let Some((to, letter)) = self.succession.outgoing.head.take() else {
            return;
        };
        let mut bytes = mem::take(&mut self.succession.outgoing.bytes);
        let stride = usize::from(letter.stride);
        let count = bytes.len().div_ceil(stride) as u64;
        let relays = &self.settings.inheritance.relays;
        let held = &mut self.succession.held;
        let sent = if held.has(to) {
            Err(Unsent::Full)
        } else {
            relays.send(to, letter, &bytes)
        };
        match sent {
            Ok(()) => self.stats.datagrams_forwarded += count,
            Err(Unsent::Full) if held.push(self.now, to, letter, &bytes) => {}
            Err(Unsent::Full) => self.stats.forwards_dropped += count,
            Err(Unsent::Gone) => {
                self.endpoint.forget_generation(to.generation);
                for datagram in bytes.chunks_mut(stride) {
                    let routed = self
                        .endpoint
                        .on_datagram(self.now, &letter.arrival, datagram);
                    // Nobody else can own it: the generation is forgotten.
                    if !matches!(routed, Routed::Earlier(..)) {
                        self.on_unconnected(routed, &letter.arrival);
                    }
                }
            }
        }
        bytes.clear();
        self.succession.outgoing.bytes = bytes;
    }

    /// Forwards datagrams that earlier processes had no room for.
    pub(in crate::worker) fn forward_held(&mut self) {
        if self.succession.held.is_empty() {
            return;
        }
        let relays = &self.settings.inheritance.relays;
        let Flushed { sent, dropped } = self.succession.held.flush(self.now, relays);
        self.stats.datagrams_forwarded += sent;
        self.stats.forwards_dropped += dropped;
    }

    /// Passes a datagram to all workers of earlier processes: it may be a stateless reset.
    pub(in crate::worker) fn forward_stray(&self, arrival: &Arrival, datagram: &[u8]) {
        let letter = Letter {
            arrival: *arrival,
            reason: Reason::Stray,
            stride: datagram.len() as u16,
        };
        let relays = &self.settings.inheritance.relays;
        for place in relays.places() {
            // The datagram is most likely not a reset, so losing it does no harm.
            let _ = relays.send(place, letter, datagram);
        }
    }
}
