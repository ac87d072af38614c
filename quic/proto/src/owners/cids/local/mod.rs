//! Connection ids that we issue to the peer.

use std::time::Instant;

use smallvec::SmallVec;

use super::Sent;
use crate::{
    buffer::Rare,
    stats::census::Census,
    wire::{
        ResetToken,
        error::Violation,
        frame::{FrameWriter, NewConnectionId, Owner, RetireConnectionId, Timing},
        limits,
        packet::{Cid, Space},
    },
};

#[cfg(test)]
mod tests;

/// A change of the routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CidEvent {
    /// Packets with this id belong to the connection.
    Issued(Cid),
    /// Packets with this id no longer belong to it.
    Retired(Cid),
}

/// What the peer knows about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The frame must be sent, perhaps again.
    Pending,
    /// The frame is in flight.
    Sent,
    /// The frame was acknowledged.
    Known,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: u64,
    cid: Cid,
    reset_token: ResetToken,
    told: Told,
}

/// An id and its stateless reset token.
pub type Issued = (Cid, ResetToken);

/// Connection ids we issue.
///
/// If the peer retires some, it is given others, at most [`limits::CIDS_ISSUED_AT_ONCE`] per
/// [`limits::CIDS_ISSUED_INTERVAL`]: each costs a place in the routing table and a token.
#[derive(Debug)]
pub struct Local {
    /// Active ids sorted by sequence number, including those that the peer was asked to retire: at
    /// most twice [`limits::LOCAL_CIDS`].
    active: SmallVec<[Entry; limits::LOCAL_CIDS]>,
    next_sequence: u64,
    /// Largest sequence number that the peer can know.
    largest_sent: u64,
    /// True if ids are empty; then there is only the first.
    is_zero_length: bool,
    /// Number of ids that may be active: 1 until the peer's limit is known.
    limit: usize,
    retire_prior_to: u64,
    budget: Budget,
    /// Changes of the routing table. There is room for every active id to appear and disappear
    /// between two polls.
    events: Rare<CidEvent, { 3 * limits::LOCAL_CIDS }>,
}

/// Number of ids that may still be issued in the current interval.
#[derive(Debug)]
struct Budget {
    left: usize,
    since: Option<Instant>,
}

impl Budget {
    fn ends(&self) -> Option<Instant> {
        self.since?.checked_add(limits::CIDS_ISSUED_INTERVAL)
    }

    fn renew(&mut self, now: Instant) {
        if self.ends().is_none_or(|at| at <= now) {
            self.since = Some(now);
            self.left = limits::CIDS_ISSUED_AT_ONCE;
        }
    }
}

impl Owner for Local {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.active.iter().any(|entry| entry.told == Told::Pending)
    }

    /// Writes the waiting NEW_CONNECTION_ID frames.
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        let retire_prior_to = self.retire_prior_to;
        for entry in self
            .active
            .iter_mut()
            .filter(|entry| entry.told == Told::Pending)
        {
            let frame = NewConnectionId {
                sequence: entry.sequence,
                retire_prior_to: retire_prior_to.min(entry.sequence),
                cid: entry.cid,
                reset_token: entry.reset_token,
            };
            if !sent.has_room_for(entry.sequence) || !out.write(&frame) {
                break;
            }
            entry.told = Told::Sent;
            self.largest_sent = self.largest_sent.max(entry.sequence);
            sent.insert(entry.sequence);
        }
    }

    fn on_acked(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            if let Some(entry) = self.find(sequence) {
                entry.told = Told::Known;
            }
        }
    }

    /// Queues frames again if they are still useful.
    fn on_lost(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            if let Some(entry) = self.find(sequence).filter(|entry| entry.told == Told::Sent) {
                entry.told = Told::Pending;
            }
        }
    }
}

impl Local {
    /// Starts with the id of our first packet, sequence number 0, which the caller already routes.
    pub fn new(first: Cid) -> Self {
        let mut local = Self {
            active: SmallVec::new(),
            next_sequence: 0,
            largest_sent: 0,
            is_zero_length: first.is_empty(),
            limit: 1,
            retire_prior_to: 0,
            budget: Budget {
                left: limits::CIDS_ISSUED_AT_ONCE,
                since: None,
            },
            events: Rare::new(),
        };
        local.insert((first, ResetToken::new([0; 16])), Told::Known);
        local
    }

    /// Issues the id for our preferred address, which the peer learns from the transport parameters
    /// (RFC 9000 §9.6). Its sequence number is 1, so it must be issued first.
    pub fn issue_preferred(&mut self, issued: Issued) {
        debug_assert!(self.next_sequence == 1, "the id after the first");
        self.largest_sent = self.insert(issued, Told::Known);
        self.queue(CidEvent::Issued(issued.0));
    }

    fn insert(&mut self, (cid, reset_token): Issued, told: Told) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.active.push(Entry {
            sequence,
            cid,
            reset_token,
            told,
        });
        sequence
    }

    /// Takes the peer's `active_connection_id_limit`. We may issue fewer.
    pub fn set_peer_limit(&mut self, limit: u64) {
        self.limit = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .clamp(1, limits::LOCAL_CIDS);
    }

    /// Returns the number of ids to issue now.
    pub fn missing(&self) -> usize {
        self.wanted().min(self.budget.left)
    }

    fn wanted(&self) -> usize {
        if self.is_zero_length {
            return 0;
        }
        // Each new id needs room for two events, and each active one reserves room for its end.
        let room = self.events.room().saturating_sub(self.active.len()) / 2;
        let kept = self.active.iter().filter(|entry| self.is_kept(entry));
        self.limit.saturating_sub(kept.count()).min(room)
    }

    const fn is_kept(&self, entry: &Entry) -> bool {
        entry.sequence >= self.retire_prior_to
    }

    /// Issues the missing ids. The caller must route each of them ([`Local::poll_event`]) before
    /// the frame is sent.
    pub fn issue(&mut self, mut issue: impl FnMut() -> Issued) {
        for _ in 0..self.missing() {
            let issued = issue();
            self.budget.left = self.budget.left.saturating_sub(1);
            self.insert(issued, Told::Pending);
            self.queue(CidEvent::Issued(issued.0));
        }
    }

    /// Replaces every id: the peer is asked to retire the old ones (RFC 9000 §5.1.2), which keep
    /// working until it does. Returns false if an earlier request is not complete, or if there are
    /// no ids to replace.
    pub fn rotate(&mut self, now: Instant) -> bool {
        self.budget.renew(now);
        let owed = self.active.iter().any(|entry| !self.is_kept(entry));
        if owed || self.is_zero_length || self.budget.left < self.limit {
            return false;
        }
        self.retire_prior_to = self.next_sequence;
        true
    }

    /// Returns the time at which further ids may be issued.
    pub fn next_timeout(&self) -> Option<Instant> {
        let waits = self.budget.left == 0 && self.wanted() > 0;
        self.budget.ends().filter(|_| waits)
    }

    /// Starts a new interval in which ids may be issued.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.budget.renew(now);
        }
    }

    /// Takes a RETIRE_CONNECTION_ID from a packet that was sent to `packet_dcid`.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the id was never issued, is the packet's own, or if our ids are empty
    /// (RFC 9000 §19.16).
    pub fn on_retire_connection_id(
        &mut self,
        now: Instant,
        frame: &RetireConnectionId,
        packet_dcid: &Cid,
    ) -> Result<(), Violation> {
        if self.is_zero_length {
            return Err(Violation::RetiresWithoutCids);
        }
        if frame.sequence > self.largest_sent {
            return Err(Violation::RetiresUnknownCid);
        }
        let Some(index) = self
            .active
            .iter()
            .position(|entry| entry.sequence == frame.sequence)
        else {
            return Ok(());
        };
        if self
            .active
            .get(index)
            .is_some_and(|entry| entry.cid == *packet_dcid)
        {
            return Err(Violation::RetiresOwnCid);
        }
        self.budget.renew(now);
        let retired = CidEvent::Retired(self.active.remove(index).cid);
        // `wanted` reserved room for it when the id was issued.
        self.queue(retired);
        Ok(())
    }

    fn queue(&mut self, event: CidEvent) {
        let queued = self.events.try_push(event);
        debug_assert!(queued.is_ok(), "an event for every id that comes or goes");
    }

    /// Returns the next change for the routing table, oldest first.
    pub fn poll_event(&mut self) -> Option<CidEvent> {
        self.events.pop_first()
    }

    /// Returns the length of every id in bytes.
    pub fn cid_len(&self) -> usize {
        self.active.first().map_or(0, |entry| entry.cid.len())
    }

    /// Returns every id that routes to the connection, to clear the table when the connection ends.
    pub fn active(&self) -> impl Iterator<Item = Cid> {
        self.active.iter().map(|entry| entry.cid)
    }

    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            active,
            next_sequence: _,
            largest_sent: _,
            is_zero_length: _,
            limit: _,
            retire_prior_to: _,
            budget: _,
            events,
        } = self;
        census.add_of::<Entry>("own connection ids", active.len());
        census.add_of::<CidEvent>("changes of own connection ids", events.len());
    }

    /// Writes once more all NEW_CONNECTION_ID frames not known to have arrived: without one of our
    /// ids the peer could not answer on a new path. These copies are not repaired.
    pub fn repeat_frames(&mut self, out: &mut FrameWriter<'_>) {
        for entry in self.active.iter().filter(|entry| entry.told != Told::Known) {
            let frame = NewConnectionId {
                sequence: entry.sequence,
                retire_prior_to: self.retire_prior_to.min(entry.sequence),
                cid: entry.cid,
                reset_token: entry.reset_token,
            };
            if !out.write(&frame) {
                break;
            }
            self.largest_sent = self.largest_sent.max(entry.sequence);
        }
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Entry> {
        self.active
            .iter_mut()
            .find(|entry| entry.sequence == sequence)
    }
}
