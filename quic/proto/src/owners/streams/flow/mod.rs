//! Flow-control credit, in both directions.

pub(super) mod opening;
pub(super) mod window;

use self::window::Window;
use super::Timing;
use crate::wire::VarInt;

/// Credit that the peer grants us, on one stream or on all of them (RFC 9000 §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendCredit {
    max: u64,
    used: u64,
    /// Limit that was last reported by a BLOCKED frame.
    reported: Option<u64>,
}

impl SendCredit {
    pub(super) const fn new(max: u64) -> Self {
        Self {
            max,
            used: 0,
            reported: None,
        }
    }

    pub(super) const fn available(&self) -> u64 {
        self.max.saturating_sub(self.used)
    }

    pub(super) const fn limit(&self) -> u64 {
        self.max
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    pub(super) const fn take(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.available(), "sent beyond the limit");
        self.used = self.used.saturating_add(bytes);
    }

    /// Takes a limit. Returns true if it is higher than before; limits never shrink.
    pub(super) const fn raise(&mut self, max: u64) -> bool {
        let raised = max > self.max;
        if raised {
            self.max = max;
        }
        raised
    }

    /// Returns true if the limit is reached and not yet reported to the peer.
    pub(super) fn is_report_due(&self) -> bool {
        self.available() == 0 && self.reported != Some(self.max)
    }

    /// Notes that the limit is being reported.
    pub(super) const fn report(&mut self) {
        self.reported = Some(self.max);
    }

    /// Notes that the report about this limit was lost.
    pub(super) fn on_report_lost(&mut self, limit: u64) {
        if self.reported == Some(limit) {
            self.reported = None;
        }
    }
}

/// Credit that we grant the peer, on one stream or on all of them (RFC 9000 §4.1).
///
/// The limit is the number of bytes consumed plus the window. It is announced again once a quarter
/// of the window is consumed: late enough that it is one frame in thousands of packets, early
/// enough that a peer with a window of 4/3 round trips never stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiveCredit {
    window: Window,
    received: u64,
    consumed: u64,
    advertised: u64,
    /// True if the newest limit was lost or the peer waits for it.
    urgent: bool,
    /// Number of separate pieces in which received data is held.
    pieces: usize,
}

impl ReceiveCredit {
    pub(super) const fn new(window: Window) -> Self {
        Self {
            window,
            received: 0,
            consumed: 0,
            advertised: window.size(),
            urgent: false,
            pieces: 0,
        }
    }

    /// Returns the number of separate pieces in which received data is held.
    pub(super) const fn pieces(&self) -> usize {
        self.pieces
    }

    /// Updates the number of pieces that a stream holds, in its own credit and in the connection's.
    #[inline]
    pub(super) const fn count_pieces(&mut self, pieces: usize, total: &mut Self) {
        total.pieces = total
            .pieces
            .saturating_sub(self.pieces)
            .saturating_add(pieces);
        self.pieces = pieces;
    }

    /// Returns the bytes the peer may have in flight or unread.
    pub(super) const fn window(&self) -> u64 {
        self.window.size()
    }

    /// Returns the bytes received, gaps included.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Returns true if `bytes` more are allowed.
    pub(super) const fn allows(&self, bytes: u64) -> bool {
        bytes <= self.advertised.saturating_sub(self.received)
    }

    pub(super) const fn receive(&mut self, bytes: u64) {
        debug_assert!(self.allows(bytes), "received beyond the limit");
        self.received = self.received.saturating_add(bytes);
    }

    pub(super) const fn consume(&mut self, bytes: u64) {
        self.consumed = self.consumed.saturating_add(bytes);
        debug_assert!(
            self.consumed <= self.received,
            "consumed more than was received"
        );
    }

    /// Returns the bytes received and not consumed.
    pub(super) const fn unread(&self) -> u64 {
        self.received.saturating_sub(self.consumed)
    }

    /// Consumes bytes that nobody will read.
    pub(super) const fn discard(&mut self, bytes: u64) {
        self.consume(bytes);
        self.window.on_discarded(bytes);
    }

    /// Grows the window before a limit is sent, if the application needs that. Returns true if it
    /// grew.
    pub(super) fn tune(&mut self, timing: Timing) -> bool {
        self.window.on_update(timing, self.received, self.consumed)
    }

    /// Raises the window to at least `bytes`, within its limit.
    pub(super) fn raise_window(&mut self, bytes: u64) {
        self.window.raise(bytes);
    }

    /// Sets the window to `bytes`. A smaller window revokes no credit.
    pub(super) fn set_window(&mut self, bytes: u64) {
        self.window.set(bytes);
        self.urgent |= self.target() > self.advertised;
    }

    /// Returns the limit that could be announced now. Limits never shrink (RFC 9000 §4.1).
    pub(super) const fn target(&self) -> u64 {
        let limit = VarInt::saturating(self.consumed.saturating_add(self.window.size())).get();
        if limit > self.advertised {
            limit
        } else {
            self.advertised
        }
    }

    /// Returns true if a new limit should be sent.
    pub(super) const fn is_due(&self) -> bool {
        let gain = self.target().saturating_sub(self.advertised);
        self.urgent || gain > 0 && gain >= self.window.size() / 4
    }

    /// Notes that the limit of [`Self::target`] is being sent.
    pub(super) const fn advertise(&mut self) {
        self.urgent = false;
        self.advertised = self.target();
    }

    /// Notes that the peer is blocked at this limit: all available credit is granted at once.
    pub(super) const fn on_blocked(&mut self, limit: u64) {
        self.urgent |= limit == self.advertised && self.target() > limit;
    }

    /// Notes that the frame with this limit was lost; only the newest limit matters.
    pub(super) const fn on_lost(&mut self, max: u64) {
        self.urgent |= max == self.advertised;
    }
}
