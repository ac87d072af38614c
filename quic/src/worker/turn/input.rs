//! Handling of received datagrams.

use hybriq_proto::endpoint::{Arrival, Incoming, Routed, SocketId};
use hybriq_proto::stats::DropReason;

use crate::{
    restart::relay::Reason,
    sync::MutexGuard,
    udp::Buffers,
    worker::{
        Advice, Standing, State, Worker,
        admit::{
            admission::{Limit, TurnAway},
            refusal,
        },
        shared::{Turned, mailbox::Passed},
    },
};

/// Largest number of batches received from a socket in one turn.
const BATCHES: usize = 4;

impl Worker {
    /// Receives and processes waiting datagrams, up to a limit. Nothing is sent in between, so that
    /// the datagrams of one flight are answered together.
    pub(in crate::worker) fn receive(&mut self) {
        for id in self.sockets.take_turns() {
            self.receive_from(id);
        }
        self.receive_forwarded();
        self.forward_held();
    }

    fn receive_from(&mut self, id: SocketId) {
        for _ in 0..BATCHES {
            let received = self.sockets.receive(id, self.now, &mut self.buffers);
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => match self.on_receive_error(id, &error) {
                    Advice::GoOn => continue,
                    Advice::Rest(_) | Advice::GiveUp => return,
                },
            };
            self.stats.receive_calls += 1;
            self.process(id, count);
            if count < Buffers::MESSAGES {
                return;
            }
        }
    }

    fn process(&mut self, id: SocketId, count: usize) {
        // Taken out so that the messages and the rest of the worker can be borrowed at the same time.
        let mut buffers = std::mem::take(&mut self.buffers);
        for message in buffers.messages(count) {
            self.stats.bytes_received += message.bytes.len() as u64;
            self.stats.datagrams_received += message.bytes.len().div_ceil(message.stride) as u64;
            let mut arrival = message.arrival;
            arrival.local.socket = id;
            self.process_message(&arrival, message.bytes, message.stride);
        }
        self.buffers = buffers;
    }

    /// Processes datagrams from one address. Consecutive datagrams of one connection, usually all of
    /// them, are processed under one lock.
    pub(in crate::worker) fn process_message(
        &mut self,
        arrival: &Arrival,
        bytes: &mut [u8],
        stride: usize,
    ) {
        let mut datagrams = bytes.chunks_mut(stride);
        let mut next = None;
        loop {
            let routed = match next.take() {
                Some(routed) => routed,
                None => match datagrams.next() {
                    Some(datagram) => self.endpoint.on_datagram(self.now, arrival, datagram),
                    None => break,
                },
            };
            let (slot, packets) = match routed {
                Routed::Connection(slot, packets) => (slot, packets),
                other => {
                    self.on_unconnected(other, arrival);
                    continue;
                }
            };
            let Some(entry) = self.connections.get(slot) else {
                continue;
            };
            self.queues.touch(entry);
            let mut state: MutexGuard<'_, State> = entry.connection.lock();
            state.core.on_packets(self.now, arrival, packets);
            for datagram in datagrams.by_ref() {
                match self.endpoint.on_datagram(self.now, arrival, datagram) {
                    Routed::Connection(same, packets) if same == slot => {
                        state.core.on_packets(self.now, arrival, packets);
                    }
                    other => {
                        next = Some(other);
                        break;
                    }
                }
            }
        }
        self.flush_forwarded();
    }

    /// Processes a datagram that another worker received.
    pub(in crate::worker) fn process_passed(&mut self, passed: Passed) {
        let Passed {
            arrival,
            mut datagram,
            reason,
        } = passed;
        match reason {
            Reason::Id => {
                let len = datagram.len();
                self.process_message(&arrival, &mut datagram, len.max(1));
            }
            Reason::Stray => self.process_stray(&arrival, &mut datagram),
        }
    }

    /// Processes a datagram that may be a stateless reset for a connection of this worker.
    pub(in crate::worker) fn process_stray(&mut self, arrival: &Arrival, datagram: &mut [u8]) {
        if let Routed::Connection(slot, packets) = self.endpoint.on_stray(datagram) {
            if let Some(entry) = self.connections.get(slot) {
                self.queues.touch(entry);
                let mut state = entry.connection.lock();
                state.core.on_packets(self.now, arrival, packets);
            }
        }
    }

    pub(in crate::worker) fn on_unconnected(&mut self, routed: Routed<'_>, arrival: &Arrival) {
        match routed {
            Routed::Incoming(incoming) if self.standing != Standing::Open => {
                self.refuse(*incoming, refusal::STOPPED);
            }
            Routed::Incoming(incoming) => {
                // This client is counted among those of this worker.
                let elsewhere = self
                    .shared
                    .unfinished()
                    .saturating_sub(self.published.unfinished);
                let others = elsewhere + self.endpoint.unfinished().saturating_sub(1);
                let queued = self.shared.on_incoming(
                    self.index,
                    incoming,
                    self.now,
                    others,
                    &mut self.wakes,
                );
                match queued {
                    Ok(()) => {}
                    Err(Turned::Stopped(incoming)) => self.refuse(*incoming, refusal::STOPPED),
                    Err(Turned::Limited(answer, incoming)) => self.turn_away(answer, *incoming),
                    Err(Turned::Full(incoming)) => {
                        self.stats.incoming_ignored += 1;
                        self.endpoint.ignore(*incoming);
                    }
                }
            }
            Routed::Foreign(worker, datagram) => {
                let mailbox = self.shared.mailbox(worker);
                match mailbox.filter(|_| worker != self.index) {
                    Some(mailbox) if mailbox.push_foreign(*arrival, datagram, Reason::Id) => {
                        self.stats.datagrams_passed_on += 1;
                    }
                    Some(_) => self.stats.on_dropped(DropReason::Overload),
                    None => self.stats.on_dropped(DropReason::UnknownConnection),
                }
            }
            Routed::Earlier(place, datagram) => self.forward(place, arrival, datagram),
            Routed::Stray(datagram) => {
                self.forward_stray(arrival, datagram);
                self.stats.on_dropped(DropReason::UnknownConnection);
                for mailbox in self.shared.others(self.index) {
                    mailbox.push_foreign(*arrival, datagram, Reason::Stray);
                }
            }
            _ => {}
        }
    }

    /// Refuses a client that the application does not want.
    pub(in crate::worker) fn refuse(&mut self, incoming: Incoming, reason: &'static str) {
        self.stats.refused_by_application += 1;
        self.endpoint.refuse_because(incoming, reason);
    }

    /// Answers a client that the operator's limits do not admit.
    fn turn_away(&mut self, answer: TurnAway, incoming: Incoming) {
        let (limit, incoming) = match answer {
            TurnAway::Refuse(limit) => (limit, incoming),
            TurnAway::Retry(limit) => match self.endpoint.retry(self.now, incoming) {
                Ok(()) => return,
                // The client has already received packets of ours, and would ignore a Retry.
                Err(incoming) => (limit, *incoming),
            },
        };
        let (count, reason) = match limit {
            Limit::Backlog => {
                self.stats.incoming_ignored += 1;
                return self.endpoint.ignore(incoming);
            }
            Limit::Connections => (&mut self.stats.refused_too_many, refusal::TOO_MANY),
            Limit::Handshakes => (&mut self.stats.refused_too_busy, refusal::TOO_BUSY),
            Limit::Rate => (&mut self.stats.refused_too_fast, refusal::TOO_FAST),
        };
        *count += 1;
        self.endpoint.refuse_because(incoming, reason);
    }
}
