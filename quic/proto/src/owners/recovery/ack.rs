//! Processing of ACK frames.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use super::{Context, Outcome, Progress, Recovery, Settled, path::ecn, state::Newly};
use crate::{
    owners::congestion::{
        Acked, Controller as _, Marked, RoundTrip, Usage,
        delivery::{self, Sampling},
    },
    wire::{
        error::Violation,
        frame::EcnCounts,
        packet::{PacketNumber, Space},
    },
};

/// An ACK frame with times and packet numbers decoded.
///
/// Exhaustive: whoever drives the owner must decide on every field.
#[derive(Clone, Debug)]
pub struct Ack<I> {
    /// Packet-number space of the frame.
    pub space: Space,
    /// The largest number acknowledged.
    pub largest: PacketNumber,
    /// The peer's delay, scaled by its exponent.
    pub delay: Duration,
    /// All ranges acknowledged.
    pub ranges: I,
    /// ECN counts, if present.
    pub ecn: Option<EcnCounts>,
}

impl<R: 'static> Recovery<R> {
    /// Handles an ACK frame (RFC 9002 §A.7).
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if it acknowledges a packet that was not sent (RFC 9000 §13.1).
    pub fn on_ack<I>(
        &mut self,
        now: Instant,
        ack: Ack<I>,
        context: &Context,
        outcome: &mut Outcome<R>,
    ) -> Result<(), Violation>
    where
        I: Iterator<Item = RangeInclusive<PacketNumber>> + Clone,
    {
        let state = self.spaces.at(ack.space);
        state.check_ack(ack.largest, ack.ranges.clone())?;
        let before = state.largest_acked;
        let order = ecn::Order::of(before, ack.largest);
        state.largest_acked = state.largest_acked.max(Some(ack.largest));
        self.on_late(now, ack.space, before, ack.ranges.clone());
        let first_new = outcome.acked.len();
        let newly = self.spaces.at(ack.space).take_acked(ack.ranges, outcome);
        let prior_in_flight = self.bytes_in_flight;
        self.bytes_in_flight -= newly.bytes;
        self.left_paths.on_settled(newly.on_left_paths);
        if outcome.acked.len() == first_new {
            return Ok(());
        }
        let newest_in_order = newly.newest.filter(|(pn, _)| *pn == ack.largest);
        let sample = newest_in_order
            .filter(|_| newly.eliciting)
            .map(|(_, time_sent)| now.saturating_duration_since(time_sent));
        if let Some(sample) = sample {
            let delay = believed_delay(ack.space, ack.delay, context);
            self.rtt.on_sample(now, sample, delay);
        }
        self.handshake_acked |= ack.space == Space::Handshake;
        outcome.progress |= newly.eliciting;
        let (_, acked) = outcome.acked.split_at(first_new);
        let (sampling, packets) = self.on_delivered(now, acked);
        let lost_before = self.delivery.lost();
        self.on_order(now, ack.space, before, &newly);
        self.detect_lost(now, ack.space, context, outcome);
        let marks = self.on_counts(now, ack.space, ack.ecn, &newly, order);
        if let Some((_, newest_sent)) = newly.newest_in_flight {
            if let Some(rate) = self.delivery.finish(&sampling, self.rtt.min()) {
                let usage = self.usage(newest_sent);
                self.controller.on_acked(&Acked {
                    now,
                    bytes: newly.bytes,
                    packets,
                    bytes_lost: self.delivery.lost() - lost_before,
                    newest_sent,
                    prior_in_flight,
                    bytes_in_flight: self.bytes_in_flight,
                    usage,
                    rtt: RoundTrip {
                        sample,
                        smoothed: self.rtt.smoothed(),
                        min: self.rtt.min(),
                    },
                    rate,
                    delivered: self.delivery.delivered(),
                    marks,
                });
            }
        }
        self.update_pace(now);
        self.left_paths.on_acked();
        // A client resets its backoff only once the server can answer freely (RFC 9002 §6.2.1).
        if self.peer_validated_address(context) {
            self.pto_count = 0;
        }
        self.rearm(now);
        Ok(())
    }

    /// Checks the ECN counts of a frame and reports new marks to the controller.
    fn on_counts(
        &mut self,
        now: Instant,
        space: Space,
        counts: Option<EcnCounts>,
        newly: &Newly,
        order: ecn::Order,
    ) -> u64 {
        let counted = &mut self.spaces.at(space).ecn;
        let marks = self.ecn.on_ack(counted, counts, newly.marked, order);
        if let (1.., Some((_, newest_sent))) = (marks, newly.newest) {
            self.episode.on_marked(now, newest_sent);
            self.controller.on_marked(&Marked {
                now,
                marks,
                newest_sent,
                bytes_in_flight: self.bytes_in_flight,
            });
        }
        marks
    }

    /// Counts deliveries, and the packets in flight among them.
    fn on_delivered(&mut self, now: Instant, acked: &[Settled<R>]) -> (Sampling, u64) {
        let mut sampling = Sampling::default();
        let mut packets = 0;
        for Settled { pn, packet } in acked {
            let Some(snapshot) = packet.snapshot else {
                continue;
            };
            let acked = delivery::Acked {
                pn: *pn,
                time_sent: packet.time_sent,
                bytes: packet.size.into(),
                snapshot,
            };
            self.delivery.on_acked(now, &mut sampling, acked);
            packets += 1;
        }
        (sampling, packets)
    }

    /// Returns the use of the window while a packet was in flight. Only a full window shows that
    /// more data would fit (RFC 9002 §7.8).
    fn usage(&self, time_sent: Instant) -> Usage {
        if self.window_full_at.is_some_and(|full| time_sent <= full) {
            Usage::Full
        } else {
            Usage::Underused
        }
    }
}

/// Returns the part of the peer's delay to subtract from a sample (RFC 9002 §5.3). Before the
/// handshake is confirmed, the peer may wait for keys longer than it promised.
fn believed_delay(space: Space, delay: Duration, context: &Context) -> Duration {
    match (space, context.handshake) {
        (Space::Initial, _) => Duration::ZERO,
        (_, Progress::Confirmed) => delay.min(context.peer_max_ack_delay),
        _ => delay,
    }
}
