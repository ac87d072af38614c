//! Stateless resets in answer to packets of unknown connections (RFC 9000 §10.3).

use std::time::{Duration, Instant};

use crate::{
    endpoint::{Arrival, Endpoint, Routed},
    stats::DropReason,
    wire::{
        limits,
        packet::{Cid, Packets},
    },
};

/// Size in bytes up to which a packet is answered with a reset that is one byte shorter (RFC 9000
/// §10.3).
const SHORT_PACKET: usize = 43;

/// Time after which one more reset may be sent.
const INTERVAL: Duration = Duration::from_millis(1);

/// Limit of stateless resets: a token bucket.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct ResetLimit {
    /// Time at which the bucket is full again; `None` while it is full.
    full_at: Option<Instant>,
}

impl ResetLimit {
    /// Takes a reset from the bucket. Returns false if it is empty.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let missing = full_at.saturating_duration_since(now);
        let room = missing < INTERVAL * limits::STATELESS_RESETS;
        if room {
            self.full_at = full_at.checked_add(INTERVAL);
        }
        room
    }
}

impl Endpoint {
    /// Handles a packet with a short header for an unknown id: one of another worker, of an earlier
    /// process, or of a connection that was lost.
    pub(in crate::endpoint) fn on_stranger<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: Packets<'d>,
        dcid: &Cid,
    ) -> Routed<'d> {
        if !arrival.is_answerable() {
            return Routed::Dropped(DropReason::ImpossibleSource);
        }
        if let Some(owner) = self.ids.other_owner(dcid) {
            return owner.routed(packets);
        }
        let answered = self
            .reset(now, arrival, packets.bytes().len(), dcid)
            .is_some();
        self.stats.stateless_resets += u64::from(answered);
        // The ids of resets are random, so the system may have given one to any worker.
        let has_others = self.ids.has_others() || self.ids.has_earlier();
        if has_others && packets.reset_token().is_some() && self.stray_limit.take(now) {
            return Routed::Stray(packets.into_bytes());
        }
        if answered {
            Routed::Consumed
        } else {
            Routed::Dropped(DropReason::UnknownConnection)
        }
    }

    /// Handles a Handshake packet for an unknown id. A client whose handshake is complete but not
    /// confirmed knows the reset token, and has no other way to learn that the server lost the
    /// connection.
    pub(in crate::endpoint) fn on_stranger_in_handshake<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: Packets<'d>,
        dcid: &Cid,
    ) -> Routed<'d> {
        if let Some(owner) = self.ids.other_owner(dcid) {
            return owner.routed(packets);
        }
        let len = packets.bytes().len();
        if dcid.len() != self.ids.len() || self.reset(now, arrival, len, dcid).is_none() {
            return Routed::Dropped(DropReason::UnknownConnection);
        }
        self.stats.stateless_resets += 1;
        Routed::Consumed
    }

    /// Routes a datagram for which another worker knew no connection: it may be a stateless reset
    /// of a connection on this worker. Anything else is dropped.
    pub fn on_stray<'d>(&self, datagram: &'d mut [u8]) -> Routed<'d> {
        let Ok(packets) = Packets::read(datagram, self.ids.len()) else {
            return Routed::Dropped(DropReason::Malformed);
        };
        let token = packets.reset_token();
        match token.and_then(|token| self.resets.find(&token)) {
            Some(slot) => Routed::Connection(slot, packets),
            None => Routed::Dropped(DropReason::UnknownConnection),
        }
    }

    /// Queues a stateless reset that looks like any 1-RTT packet and is smaller than the packet it
    /// answers, so that two ends that both lost their state soon fall silent (RFC 9000 §10.3.3).
    fn reset(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        trigger_len: usize,
        dcid: &Cid,
    ) -> Option<()> {
        let largest = trigger_len.checked_sub(1)?;
        let may = largest >= limits::MIN_STATELESS_RESET && self.ids.has_token(dcid);
        // The token is computed only after the limit was checked: strangers decide how often this
        // is called.
        if !may || !self.reset_limit.take(now) {
            return None;
        }
        let token = self.ids.token(dcid)?;
        let mut buffer = [0; 2 * SHORT_PACKET];
        self.random.fill(&mut buffer);
        let len = if trigger_len <= SHORT_PACKET {
            largest
        } else {
            let more = usize::from(buffer.last().copied()?) % SHORT_PACKET;
            largest.min(SHORT_PACKET - 1 + more)
        };
        let packet = buffer.get_mut(..len)?;
        let first = packet.first_mut()?;
        *first = *first & 0x3f | 0x40;
        *packet.last_chunk_mut()? = *token.as_bytes();
        self.answers.push(arrival, packet).then_some(())
    }
}
