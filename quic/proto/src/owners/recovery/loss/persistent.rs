//! Detection of persistent congestion (RFC 9002 §7.6).

use std::time::{Duration, Instant};

use crate::{owners::recovery::sent::skipped::Skipped, wire::packet::PacketNumber};

/// Number of probe timeouts without an acknowledgement that make congestion persistent (RFC 9002
/// §7.6.1).
pub(in crate::owners::recovery) const THRESHOLD: u32 = 3;

/// Detects persistent congestion in packets that are declared lost together (RFC 9002 §7.6.2).
///
/// Looks for a run of consecutive packet numbers, all lost, whose ack-eliciting ends were sent
/// further apart than `duration`. Only packets sent after the first RTT sample count. A number
/// missing from the run was acknowledged (or never recorded) and ends the run, unless it was
/// skipped.
#[derive(Debug)]
pub(in crate::owners::recovery) struct Run {
    duration: Duration,
    /// Time before which sent packets do not count; `None` without an RTT sample.
    since: Option<Instant>,
    start: Option<Instant>,
    last_pn: Option<PacketNumber>,
    found: bool,
}

impl Run {
    pub(in crate::owners::recovery) const fn new(
        since: Option<Instant>,
        duration: Duration,
    ) -> Self {
        Self {
            duration,
            since,
            start: None,
            last_pn: None,
            found: false,
        }
    }

    /// Takes the next lost packet, in the order of numbers; `eliciting_at` is its send time if it
    /// was ack-eliciting.
    pub(in crate::owners::recovery) fn on_lost(
        &mut self,
        skipped: &Skipped,
        pn: PacketNumber,
        eliciting_at: Option<Instant>,
    ) {
        if let Some(last) = self.last_pn {
            let next = last.next();
            if next != pn && next.saturating_add(skipped.between(last, pn)) != pn {
                self.start = None;
            }
        }
        self.last_pn = Some(pn);
        let (Some(since), Some(at)) = (self.since, eliciting_at) else {
            return;
        };
        if at <= since {
            return;
        }
        let start = *self.start.get_or_insert(at);
        self.found |= at.saturating_duration_since(start) > self.duration;
    }

    pub(in crate::owners::recovery) const fn is_persistent(&self) -> bool {
        self.found
    }
}
