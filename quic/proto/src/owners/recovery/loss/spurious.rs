//! Detection of spurious losses.

use std::{ops::RangeInclusive, time::Instant};

use crate::{
    owners::{
        congestion::{Controller as _, Spurious},
        recovery::{Recovery, path::reordering::Lateness, state::Newly},
    },
    wire::packet::{PacketNumber, Space},
};

/// Number of probe timeouts after which a lost packet is no longer expected to arrive.
const EXPIRY: u32 = 3;

impl<R: 'static> Recovery<R> {
    /// Finds acknowledged packets that had been declared lost: from then on, loss detection waits
    /// longer for late packets, and an unjustified reduction of the window is undone.
    ///
    /// Such a packet gives no sample of the round trip. It can be the largest of an ACK frame only
    /// if that frame was overtaken by another, and then the sample would measure just that.
    pub(in crate::owners::recovery) fn on_late(
        &mut self,
        now: Instant,
        space: Space,
        largest_before: Option<PacketNumber>,
        ranges: impl Iterator<Item = RangeInclusive<PacketNumber>>,
    ) {
        let state = self.spaces.at(space);
        if state.lost.is_empty() {
            return;
        }
        let keep = self.rtt.pto().saturating_mul(EXPIRY);
        state.lost.expire(now, keep);
        let round_trip = self.rtt.larger();
        let largest = largest_before.unwrap_or_default();
        let before = self.totals.spurious_losses;
        for range in ranges {
            for late in state.lost.take_range(*range.start(), *range.end()) {
                self.totals.spurious_losses += 1;
                self.delivery.on_late(now, late.size.into());
                self.episode.on_late(late.episode);
                let overtaken_by = largest.distance_from(late.pn);
                self.reordering.on_spurious(Lateness {
                    overtaken_by: overtaken_by - state.skipped.between(late.pn, largest),
                    took: now.saturating_duration_since(late.time_sent),
                    round_trip,
                });
            }
        }
        if self.totals.spurious_losses > before && self.episode.is_refuted() {
            self.controller.on_spurious(&Spurious {
                now,
                bytes_in_flight: self.bytes_in_flight,
            });
            self.update_pace(now);
        }
    }

    /// Checks the acknowledged packets of an ACK frame for reordering, and for the end of a round.
    pub(in crate::owners::recovery) fn on_order(
        &mut self,
        now: Instant,
        space: Space,
        largest_before: Option<PacketNumber>,
        newly: &Newly,
    ) {
        if let (Some((oldest, time_sent)), Some(largest)) = (newly.oldest, largest_before) {
            if largest >= oldest {
                let distance = largest.distance_from(oldest);
                let skipped = self.spaces.at(space).skipped.between(oldest, largest);
                self.reordering.on_reordered(Lateness {
                    overtaken_by: distance.saturating_sub(skipped),
                    took: now.saturating_duration_since(time_sent),
                    round_trip: self.rtt.larger(),
                });
            }
        }
        if let Some((_, newest_sent)) = newly.newest {
            self.reordering.on_acked(now, newest_sent);
        }
    }
}
