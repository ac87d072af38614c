//! What a worker does for a [hot restart](crate::restart): it makes way for its successor, and forwards
//! the datagrams of its predecessors.

use std::io;

use hybriq_proto::{
    endpoint::{Arrival, Newcomers, Place, Routed},
    stats::DropReason,
};
use tokio::sync::oneshot;

use crate::{
    restart::{
        Claimed,
        backlog::Flushed,
        relay::{Letter, Reason},
        succession::{Orphaned, claims},
    },
    udp::Handle,
    worker::Worker,
};

/// Largest number of messages that are received from the successor in one turn.
const MESSAGES: usize = 256;

impl Worker {
    /// Stops receiving from the sockets, receives from the successor's relay, and reports which
    /// clients have not finished their handshake.
    pub(in crate::worker) fn give_way(
        &mut self,
        relay: Handle,
        reply: oneshot::Sender<Vec<Claimed>>,
    ) {
        if let Err(error) = self.succession.give_way(relay) {
            // Dropping the reply reports that the worker has failed.
            tracing::warn!(%error, "cannot give way to a successor");
            return;
        }
        self.sockets.give_away();
        self.endpoint.set_newcomers(Newcomers::Ignored);
        let place = Place {
            generation: self.settings.inheritance.generation,
            worker: self.index,
        };
        let claims = claims(&self.endpoint, place, self.now);
        if reply.send(claims).is_err() {
            self.go_on();
        }
    }

    /// Receives from the sockets again: there is no successor, or no longer one.
    pub(in crate::worker) fn go_on(&mut self) {
        self.succession.go_on();
        self.sockets.take_back();
        if !self.shared.has_successor() {
            self.endpoint.set_newcomers(Newcomers::Welcome);
        }
    }

    /// Accepts no more clients once all that arrived before the successor are decided on.
    pub(in crate::worker) fn finish_deciding(&mut self) {
        if self.succession.has_decided(self.endpoint.undecided()) {
            self.shared.on_decided(&mut self.wakes);
        }
    }

    /// Receives and processes datagrams that the successor forwards.
    pub(in crate::worker) fn receive_forwarded(&mut self) {
        let Some(inlet) = self.succession.inlet_mut() else {
            return;
        };
        // Taken out so that the messages and the rest of the worker can be borrowed at the same
        // time.
        let mut memory = inlet.take_memory();
        for _ in 0..MESSAGES {
            let Some(inlet) = self.succession.inlet() else {
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
        if let Some(inlet) = self.succession.inlet_mut() {
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
        if !self.succession.joins(to, arrival, datagram) {
            self.flush_forwarded();
        }
        self.succession.collect(to, arrival, datagram);
    }

    /// Forwards the collected datagrams.
    pub(in crate::worker) fn flush_forwarded(&mut self) {
        let relays = &self.settings.inheritance.relays;
        match self.succession.send(self.now, relays) {
            Ok(flushed) => self.count_forwarded(flushed),
            Err(orphaned) => self.process_orphaned(orphaned),
        }
    }

    /// Forwards datagrams that earlier processes had no room for.
    pub(in crate::worker) fn forward_held(&mut self) {
        let relays = &self.settings.inheritance.relays;
        let flushed = self.succession.send_held(self.now, relays);
        self.count_forwarded(flushed);
    }

    fn count_forwarded(&mut self, flushed: Flushed) {
        self.stats.datagrams_forwarded += flushed.sent;
        self.stats.forwards_dropped += flushed.dropped;
    }

    fn process_orphaned(&mut self, orphaned: Orphaned) {
        let Orphaned {
            generation,
            letter,
            mut datagrams,
        } = orphaned;
        self.endpoint.forget_generation(generation);
        for datagram in datagrams.chunks_mut(letter.stride.into()) {
            let routed = self
                .endpoint
                .on_datagram(self.now, &letter.arrival, datagram);
            // Nobody else can own it: the generation is forgotten.
            if !matches!(routed, Routed::Earlier(..)) {
                self.on_unconnected(routed, &letter.arrival);
            }
        }
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
