use std::time::Instant;

use super::{Context, Outcome, Recovery, Settled, persistent};
use crate::proto::{
    congestion::{Lost, LostPacket, Severity},
    packet::Space,
};

/// How many packets may overtake one before it counts as lost (RFC 9002 §6.1.1).
const PACKET_THRESHOLD: u64 = 3;

impl<R> Recovery<R> {
    /// Declares lost what was sent long enough before an acknowledged packet (RFC 9002 §6.1), and
    /// sets the timer for what is not lost yet.
    pub(super) fn detect_lost(
        &mut self,
        now: Instant,
        space: Space,
        context: &Context,
        outcome: &mut Outcome<R>,
    ) {
        let delay = self.rtt.loss_delay();
        let duration = self.rtt.pto().saturating_add(context.peer_max_ack_delay);
        let mut run = persistent::Run::new(
            self.rtt.first_sample(),
            duration.saturating_mul(persistent::THRESHOLD),
        );
        let state = &mut self.spaces[space];
        let Some(largest_acked) = state.largest_acked else {
            return;
        };
        let mut loss_time: Option<Instant> = None;
        let (mut bytes, mut eliciting, mut count) = (0, 0, 0);
        let lost = &mut self.lost;
        lost.clear();
        state.sent.take_lost(
            largest_acked,
            |pn, packet| {
                if largest_acked - pn >= PACKET_THRESHOLD
                    || now.saturating_duration_since(packet.time_sent) >= delay
                {
                    return true;
                }
                let at = packet.time_sent + delay;
                loss_time = Some(loss_time.map_or(at, |earliest| earliest.min(at)));
                false
            },
            |pn, packet| {
                run.on_lost(pn, packet.ack_eliciting.then_some(packet.time_sent));
                count += 1;
                eliciting += u32::from(packet.ack_eliciting);
                if let Some(snapshot) = packet.snapshot {
                    bytes += packet.bytes_in_flight();
                    lost.push(LostPacket {
                        bytes: packet.size.into(),
                        time_sent: packet.time_sent,
                        snapshot,
                    });
                }
                outcome.lost.push(Settled { pn, packet });
            },
        );
        state.sent.compact();
        state.loss_time = loss_time;
        state.eliciting_in_flight -= eliciting;
        self.packets_lost += count;
        let prior_in_flight = self.bytes_in_flight;
        self.bytes_in_flight -= bytes;
        self.delivery.on_lost(bytes);
        let Some(newest) = self.lost.last() else {
            return;
        };
        let severity = if run.is_persistent() {
            outcome.persistent_congestion = true;
            self.rtt.on_persistent_congestion();
            Severity::PersistentCongestion
        } else {
            Severity::Congestion
        };
        self.controller.on_lost(&Lost {
            now,
            packets: &self.lost,
            bytes,
            newest_sent: newest.time_sent,
            prior_in_flight,
            bytes_in_flight: self.bytes_in_flight,
            delivered: self.delivery.delivered(),
            lost: self.delivery.lost(),
            severity,
        });
        self.update_pace();
    }
}
