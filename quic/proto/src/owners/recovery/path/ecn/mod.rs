//! Explicit congestion notification: marking of packets, and validation of the reported counts (RFC
//! 9000 §13.4, §A.4).

use crate::wire::{
    frame::EcnCounts,
    packet::PacketNumber,
    udp::{Ecn, EcnState},
};

/// Number of packets to mark before the path is judged (RFC 9000 §A.4).
const TESTING_PACKETS: u64 = 10;

/// Number of consecutive probe timeouts that end the test: with backoff they last three times as
/// long as the first one (RFC 9000 §13.4.2), and a path that drops marked packets must not break
/// the handshake.
const TESTING_PTOS: u32 = 2;

/// Number of packets by the mark they were sent with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::owners::recovery) struct Marks {
    pub(in crate::owners::recovery) ect0: u64,
    pub(in crate::owners::recovery) ect1: u64,
}

impl Marks {
    #[inline]
    pub(in crate::owners::recovery) const fn add(&mut self, mark: Option<Ecn>) {
        match mark {
            Some(Ecn::Ect0) => self.ect0 += 1,
            Some(Ecn::Ect1) => self.ect1 += 1,
            // No sender sets CE.
            Some(Ecn::Ce) | None => {}
        }
    }

    pub(in crate::owners::recovery) const fn all(self) -> u64 {
        self.ect0 + self.ect1
    }
}

/// Packets marked in one packet-number space, and the counts that the peer reported for it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::owners::recovery) struct Counted {
    sent: Marks,
    reported: EcnCounts,
}

/// ECN on one path.
#[derive(Debug)]
pub(in crate::owners::recovery) struct PathEcn {
    state: EcnState,
    /// Marked packets since the test began, by fate: sent, acknowledged, lost.
    sent: u64,
    acked: u64,
    lost: u64,
    /// Packets reported as marked with CE since the test began.
    ce: u64,
    /// True if a packet is known to have arrived without CE, so not everything is marked.
    spared: bool,
    /// True if there was another path before: marks of packets sent on it are still reported.
    is_later: bool,
}

impl PathEcn {
    pub(in crate::owners::recovery) const fn new(state: EcnState) -> Self {
        Self {
            state,
            sent: 0,
            acked: 0,
            lost: 0,
            ce: 0,
            spared: false,
            is_later: false,
        }
    }

    pub(in crate::owners::recovery) const fn state(&self) -> EcnState {
        self.state
    }

    /// Returns true if packets are currently marked as ECN-capable. This changes only with received
    /// packets, not with sent ones: all datagrams of a train have one mark.
    #[inline]
    pub(in crate::owners::recovery) const fn is_marking(&self) -> bool {
        matches!(self.state, EcnState::Testing | EcnState::Capable)
    }

    /// Restarts the test on another path.
    pub(in crate::owners::recovery) const fn reset(&mut self) {
        if !matches!(self.state, EcnState::Disabled) {
            *self = Self::new(EcnState::Testing);
        }
        self.is_later = true;
    }

    #[inline]
    pub(in crate::owners::recovery) const fn on_sent(
        &mut self,
        counted: &mut Counted,
        mark: Option<Ecn>,
    ) {
        if mark.is_some() {
            counted.sent.add(mark);
            self.sent += 1;
        }
    }

    /// Counts marked packets that were declared lost.
    pub(in crate::owners::recovery) fn on_lost(&mut self, marked: u64) {
        self.lost += marked;
        self.judge();
    }

    /// Forgets marked packets whose space was discarded.
    pub(in crate::owners::recovery) const fn on_discarded(&mut self, marked: u64) {
        self.sent = self.sent.saturating_sub(marked);
    }

    /// Handles the `count`-th consecutive probe timeout.
    pub(in crate::owners::recovery) fn on_pto(&mut self, count: u32) {
        if self.state == EcnState::Testing && self.acked == 0 && count >= TESTING_PTOS {
            self.state = EcnState::Unknown;
        }
    }

    /// Handles an ACK frame that acknowledged `newly` marked packets for the first time. `order`
    /// says whether its counts are comparable to earlier ones.
    ///
    /// Returns the number of packets newly reported as marked with CE.
    pub(in crate::owners::recovery) fn on_ack(
        &mut self,
        counted: &mut Counted,
        counts: Option<EcnCounts>,
        newly: Marks,
        order: Order,
    ) -> u64 {
        if matches!(self.state, EcnState::Disabled | EcnState::Failed) {
            return 0;
        }
        self.acked += newly.all();
        // RFC 9000 §13.4.2.1: reordered frames must not fail the validation.
        if order == Order::Older {
            return 0;
        }
        let Some(ce) = counted.validate(counts, newly) else {
            self.state = EcnState::Failed;
            return 0;
        };
        let ce = if self.is_later {
            ce.min(newly.all())
        } else {
            ce
        };
        self.ce += ce;
        self.judge();
        if self.state == EcnState::Failed {
            return 0;
        }
        ce
    }

    /// Moves to the next state if enough is known.
    fn judge(&mut self) {
        if self.state == EcnState::Testing && self.sent < TESTING_PACKETS {
            return;
        }
        // The path drops marked packets, or marks all packets.
        let drops = self.acked == 0 && self.sent > 0 && self.lost >= self.sent;
        let mangles = self.acked >= TESTING_PACKETS && !self.spared && self.ce >= self.acked;
        self.spared |= self.acked >= TESTING_PACKETS && self.ce < self.acked;
        self.state = match self.state {
            EcnState::Testing | EcnState::Unknown | EcnState::Capable if drops || mangles => {
                EcnState::Failed
            }
            EcnState::Testing | EcnState::Unknown if self.acked > 0 => EcnState::Capable,
            EcnState::Testing => EcnState::Unknown,
            state => state,
        };
    }
}

/// Order of an ACK frame relative to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::owners::recovery) enum Order {
    /// The frame raises the largest acknowledged number.
    Newest,
    /// The frame may have been overtaken.
    Older,
}

impl Order {
    pub(in crate::owners::recovery) fn of(
        largest_before: Option<PacketNumber>,
        largest: PacketNumber,
    ) -> Self {
        if largest_before < Some(largest) {
            Self::Newest
        } else {
            Self::Older
        }
    }
}

impl Counted {
    pub(in crate::owners::recovery) const fn new() -> Self {
        Self {
            sent: Marks { ect0: 0, ect1: 0 },
            reported: EcnCounts {
                ect0: 0,
                ect1: 0,
                ce: 0,
            },
        }
    }

    /// Returns the last valid counts.
    pub(in crate::owners::recovery) const fn reported(&self) -> EcnCounts {
        self.reported
    }

    /// Validates the counts of an ACK frame (RFC 9000 §13.4.2.1). Returns the number of packets
    /// newly reported as marked with CE, or `None` if the counts are invalid.
    fn validate(&mut self, counts: Option<EcnCounts>, newly: Marks) -> Option<u64> {
        let Some(counts) = counts else {
            return (newly.all() == 0).then_some(0);
        };
        let before = self.reported;
        let ect0 = counts.ect0.checked_sub(before.ect0)?;
        let ect1 = counts.ect1.checked_sub(before.ect1)?;
        let ce = counts.ce.checked_sub(before.ce)?;
        // Each received packet is counted with its mark, or with CE instead.
        let arrived = ect0.saturating_add(ce) >= newly.ect0
            && ect1.saturating_add(ce) >= newly.ect1
            && ect0.saturating_add(ect1).saturating_add(ce) >= newly.all();
        // Marks cannot appear, or turn into other marks.
        let all = counts.ect0.saturating_add(counts.ect1);
        let sent = counts.ect0 <= self.sent.ect0
            && counts.ect1 <= self.sent.ect1
            && all.saturating_add(counts.ce) <= self.sent.all();
        if !(arrived && sent) {
            return None;
        }
        self.reported = counts;
        Some(ce)
    }
}

#[cfg(test)]
mod tests;
