//! The receiving end of a flow.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{FlowReport, FlowSetup, NOTHING, PACKET_OVERHEAD, PING_EVERY, stand_in};
use crate::{Datagram, StandIn, world::peer::Clock};
use hybriq_proto::{
    owners::acks::{AckEliciting, Received},
    wire::{frame::FrameWriter, packet::PacketNumber},
};

/// The end of a flow that receives data and acknowledges it.
pub(super) struct Receiver {
    received: Received,
    arrived: Chunks,
    size: u64,
    delivered: u64,
    repeated: u64,
    progress_at: Duration,
    next_number: u64,
    buffer: [u8; 1200],
}

impl Receiver {
    pub(super) fn new(setup: &FlowSetup) -> Self {
        Self {
            received: Received::delayed(setup.max_ack_delay),
            arrived: Chunks::default(),
            size: setup.datagram_size.into(),
            delivered: 0,
            repeated: 0,
            progress_at: Duration::ZERO,
            next_number: 0,
            buffer: [0; 1200],
        }
    }

    pub(super) fn on_datagram(&mut self, clock: Clock, datagram: &Datagram) {
        let [pn, chunk, known] = datagram.stand_in.label;
        let pn = PacketNumber::saturating(pn);
        if self.received.is_duplicate(pn) {
            return;
        }
        self.received
            .on_packet(clock.instant(), pn, AckEliciting::Yes, datagram.ecn);
        if known != NOTHING {
            self.received.on_ack_of_ack(PacketNumber::saturating(known));
        }
        if self.arrived.insert(chunk) {
            self.delivered += self.size;
            self.progress_at = clock.now;
        } else {
            self.repeated += self.size;
        }
    }

    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.received.next_timeout()
    }

    /// Returns the acknowledgement that is due.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(Vec<u8>, StandIn)> {
        self.received.on_timeout(now);
        if !self.received.is_ack_due(now) {
            return None;
        }
        let delay = self.received.ack_delay(now).as_micros() as u64;
        let mut frames = FrameWriter::new(&mut self.buffer);
        let told = frames.ack(delay, self.received.ranges(), self.received.ecn_counts())?;
        let len = frames.len();
        self.received.on_ack_sent(told);
        let label = [self.next_number, 0, 0];
        self.next_number += 1;
        let payload = self.buffer.get(..len)?.to_vec();
        let ping = u32::from(label[0] % PING_EVERY == 0);
        Some((payload, stand_in(PACKET_OVERHEAD + ping, label)))
    }

    pub(super) fn report(&self, report: &mut FlowReport) {
        report.delivered = self.delivered;
        report.repeated = self.repeated;
        report.progress_at = self.progress_at;
        report.held += self.received.ranges().len() + self.arrived.words.len();
    }
}

/// A set of chunks that is almost complete up to the newest: one bit each, starting at the first
/// missing one.
#[derive(Debug, Default)]
struct Chunks {
    words: VecDeque<u64>,
    /// Number of full words before the first stored one.
    full: u64,
}

impl Chunks {
    /// Adds a chunk, and returns true if it is new.
    fn insert(&mut self, chunk: u64) -> bool {
        let Some(index) = (chunk / 64).checked_sub(self.full) else {
            return false;
        };
        let (index, bit) = (index as usize, 1 << (chunk % 64));
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        let Some(word) = self.words.get_mut(index) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.full += 1;
        }
        is_new
    }
}
