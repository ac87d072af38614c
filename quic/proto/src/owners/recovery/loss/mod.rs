//! Detection of lost packets (RFC 9002 §6.1).

pub(super) mod persistent;
pub(super) mod spurious;

use std::time::Instant;

use super::{Context, Outcome, Recovery, Settled};
use crate::{
    owners::congestion::{Controller, Lost, LostPacket, Severity},
    wire::packet::Space,
};

/// Sums over packets that were declared lost.
#[derive(Default)]
struct Sums {
    /// Packets of at most a full datagram.
    count: u64,
    /// Bytes in flight of these.
    bytes: u64,
    /// Bytes in flight of larger ones.
    oversize_bytes: u64,
    /// Bytes that were sent on other paths.
    on_left_paths: u64,
    eliciting: u32,
    /// Packets with an ECN mark.
    marked: u64,
}

impl Sums {
    /// Adds the packets up. Those in flight of at most a full datagram go to `lost`, for the controller.
    fn of<R>(packets: &[Settled<R>], datagram_size: u16, lost: &mut Vec<LostPacket>) -> Self {
        let mut sums = Self::default();
        for Settled { packet, .. } in packets {
            sums.marked += u64::from(packet.ecn.is_some());
            sums.eliciting += u32::from(packet.ack_eliciting);
            sums.on_left_paths += packet.bytes_on_left_paths();
            if packet.size > datagram_size {
                sums.oversize_bytes += packet.bytes_in_flight();
                continue;
            }
            sums.count += 1;
            if let Some(snapshot) = packet.snapshot {
                sums.bytes += packet.bytes_in_flight();
                lost.push(LostPacket {
                    bytes: packet.size.into(),
                    time_sent: packet.time_sent,
                    snapshot,
                });
            }
        }
        sums
    }
}

impl<R: 'static> Recovery<R> {
    /// Declares packets lost that were sent long enough before an acknowledged one (RFC 9002 §6.1).
    pub(super) fn detect_lost(
        &mut self,
        now: Instant,
        space: Space,
        context: &Context,
        outcome: &mut Outcome<R>,
    ) {
        let first = outcome.lost.len();
        self.classify(now, space, &mut outcome.lost);
        let fresh = outcome.lost.get(first..).unwrap_or_default();
        let severity = self.severity(space, context, fresh);
        outcome.persistent_congestion |= self.account(now, space, fresh, severity);
    }

    /// Moves the lost packets of a space to `lost`, and sets the timer for those that may still be
    /// acknowledged.
    fn classify(&mut self, now: Instant, space: Space, lost: &mut Vec<Settled<R>>) {
        let delay = self.reordering.delay(self.rtt.larger());
        let state = self.spaces.at(space);
        let Some(largest_acked) = state.largest_acked else {
            return;
        };
        let overtaken = state
            .skipped
            .overtaken_by(self.reordering.packets(), largest_acked);
        let mut loss_time = None;
        state.sent.take_lost(
            largest_acked,
            |pn, packet| {
                if overtaken.is_some_and(|last| pn <= last)
                    || now.saturating_duration_since(packet.time_sent) >= delay
                {
                    return true;
                }
                loss_time = Some(packet.time_sent + delay);
                false
            },
            |pn, packet| lost.push(Settled { pn, packet }),
        );
        state.sent.compact();
        state.loss_time = loss_time;
    }

    /// Returns whether packets that were lost together amount to persistent congestion (RFC 9002
    /// §7.6).
    fn severity(&mut self, space: Space, context: &Context, lost: &[Settled<R>]) -> Severity {
        let duration = self.rtt.pto().saturating_add(context.peer_max_ack_delay);
        let mut run = persistent::Run::new(
            self.rtt.first_sample(),
            duration.saturating_mul(persistent::THRESHOLD),
        );
        let datagram_size = self.datagram_size;
        let state = self.spaces.at(space);
        for Settled { pn, packet } in lost {
            let counts =
                packet.ack_eliciting && packet.size <= datagram_size && *pn >= state.first_pn;
            run.on_lost(&state.skipped, *pn, counts.then_some(packet.time_sent));
        }
        if run.is_persistent() {
            Severity::PersistentCongestion
        } else {
            Severity::Congestion
        }
    }

    /// Takes lost packets out of the bytes in flight, and reports those to the controller that are
    /// a sign of congestion. Returns true if it was told of persistent congestion.
    ///
    /// A packet larger than a full datagram of the path was an MTU probe, or proved to be too
    /// large: its loss is not a sign of congestion (RFC 9000 §14.4).
    fn account(
        &mut self,
        now: Instant,
        space: Space,
        lost: &[Settled<R>],
        severity: Severity,
    ) -> bool {
        let state = self.spaces.at(space);
        let sums = Sums::of(lost, self.datagram_size, &mut self.lost);
        state.eliciting_in_flight -= sums.eliciting;
        self.totals.packets_lost += sums.count;
        self.ecn.on_lost(sums.marked);
        self.left_paths.on_settled(sums.on_left_paths);
        self.bytes_in_flight -= sums.oversize_bytes;
        let prior_in_flight = self.bytes_in_flight;
        self.bytes_in_flight -= sums.bytes;
        self.delivery.on_lost(sums.bytes);
        let Some(newest) = self.lost.last() else {
            return false;
        };
        let episode = self
            .episode
            .on_lost(now, newest.time_sent, self.lost.len() as u64);
        state.remember(now, episode, self.datagram_size, lost);
        let is_persistent = severity == Severity::PersistentCongestion;
        if is_persistent {
            self.rtt.on_persistent_congestion();
        }
        self.controller.on_lost(&Lost {
            now,
            packets: &self.lost,
            bytes: sums.bytes,
            newest_sent: newest.time_sent,
            prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            delivered: self.delivery.delivered(),
            lost: self.delivery.lost(),
            severity,
        });
        self.lost.clear();
        self.update_pace(now);
        is_persistent
    }
}
