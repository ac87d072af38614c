//! Connection ids that the peer issued to us.

use arrayvec::ArrayVec;

use super::Sent;
use crate::{
    buffer::Rare,
    stats::census::Census,
    wire::{
        ResetToken,
        error::Violation,
        frame::{FrameWriter, NewConnectionId, Owner, RetireConnectionId, Timing},
        limits,
        packet::{Cid, NumberedCid, Space},
    },
};

#[cfg(test)]
mod tests;

/// An id that the peer issued and that we have not retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    sequence: u64,
    cid: Cid,
    /// Reset token. For the first id only a server sends one, in its transport parameters.
    reset_token: Option<ResetToken>,
}

/// A retirement that the peer has not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Retirement {
    sequence: u64,
    is_sent: bool,
}

/// Connection ids that the peer issued: one in use, others for further paths, and spare ones; at
/// most [`limits::PEER_CIDS`] in total.
///
/// No id may be used from two of our addresses, or to two of the peer's (RFC 9000 §9.5), so each
/// further path takes its own id and is identified here by that id's sequence number.
#[derive(Debug)]
pub struct Peer {
    active: Entry,
    /// Ids of other paths.
    lent: Rare<Entry, { limits::PEER_CIDS }>,
    /// Spare ids, sorted by sequence number.
    spare: ArrayVec<Entry, { limits::PEER_CIDS }>,
    seen: Seen,
    retire_prior_to: u64,
    /// Pending retirements, sorted by sequence number.
    retirements: Rare<Retirement, { limits::PENDING_RETIREMENTS }>,
}

impl Owner for Peer {
    type Sent = Sent;

    #[inline]
    fn wants_to_send(&self, _: Space) -> bool {
        self.retirements.iter().any(|pending| !pending.is_sent)
    }

    /// Writes the waiting RETIRE_CONNECTION_ID frames.
    fn write_frames(&mut self, _: Timing, out: &mut FrameWriter<'_>, sent: &mut Sent) {
        for pending in self
            .retirements
            .iter_mut()
            .filter(|pending| !pending.is_sent)
        {
            let frame = RetireConnectionId {
                sequence: pending.sequence,
            };
            if !sent.has_room_for(pending.sequence) || !out.write(&frame) {
                break;
            }
            pending.is_sent = true;
            sent.insert(pending.sequence);
        }
    }

    /// Completes retirements that were acknowledged.
    fn on_acked(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            self.retirements
                .retain(|pending| pending.sequence != sequence);
        }
    }

    /// Queues frames again, unless another copy was acknowledged.
    fn on_lost(&mut self, sent: &Sent) {
        for sequence in sent.iter() {
            for pending in self
                .retirements
                .iter_mut()
                .filter(|old| old.sequence == sequence)
            {
                pending.is_sent = false;
            }
        }
    }
}

impl Peer {
    /// Starts with sequence number 0: the SCID of the peer's first packet; on a client, its own
    /// random choice until then.
    pub fn new(cid: Cid) -> Self {
        Self {
            active: Entry {
                sequence: 0,
                cid,
                reset_token: None,
            },
            lent: Rare::new(),
            spare: ArrayVec::new(),
            seen: Seen {
                largest: 0,
                window: 1,
            },
            retire_prior_to: 0,
            retirements: Rare::new(),
        }
    }

    /// Replaces a client's initial choice with the SCID of the server's Retry or first Initial (RFC
    /// 9000 §7.2).
    pub const fn set_first(&mut self, cid: Cid) {
        debug_assert!(self.active.sequence == 0, "the handshake uses the first id");
        self.active.cid = cid;
    }

    /// Takes the stateless reset token of the first id from the server's transport parameters.
    pub fn set_first_reset_token(&mut self, token: ResetToken) {
        if self.active.sequence == 0 {
            self.active.reset_token = Some(token);
        }
    }

    /// Returns the id to send to.
    #[inline]
    pub const fn active(&self) -> &Cid {
        &self.active.cid
    }

    /// Counts every table. A new field does not compile until somebody decides what it holds.
    pub(crate) fn census(&self, census: &mut Census) {
        let Self {
            active: _,
            lent,
            spare,
            seen: _,
            retire_prior_to: _,
            retirements,
        } = self;
        census.add_of::<Entry>("connection ids of the peer", 1 + spare.len());
        census.add_of::<Entry>("connection ids of the peer for other paths", lent.len());
        census.add_of::<Retirement>("connection ids to retire", retirements.len());
    }

    /// Returns the sequence number of the id to send to.
    pub const fn active_sequence(&self) -> u64 {
        self.active.sequence
    }

    /// Returns true if the peer uses empty connection ids, which every path shares.
    pub const fn is_zero_length(&self) -> bool {
        self.active.cid.is_empty()
    }

    /// Returns the id with that sequence number, or `None` once it was retired, which the peer can
    /// request at any time. The path then needs another id, or is given up.
    pub fn find(&self, sequence: u64) -> Option<&Cid> {
        self.in_use()
            .find(|entry| entry.sequence == sequence)
            .map(|entry| &entry.cid)
    }

    fn in_use(&self) -> impl Iterator<Item = &Entry> {
        [&self.active].into_iter().chain(self.lent.iter())
    }

    /// Returns the tokens that end the connection: those of all ids in use on any path (RFC 9000
    /// §10.3.1). They are secret: compare them in constant time.
    pub fn reset_tokens(&self) -> impl Iterator<Item = &ResetToken> {
        self.in_use().filter_map(|entry| entry.reset_token.as_ref())
    }

    /// Takes a spare id for a path other than the one in use, or `None` if
    /// there is none. If the peer uses empty ids, all paths share one.
    pub fn take_for_path(&mut self) -> Option<NumberedCid> {
        if self.is_zero_length() {
            return Some(NumberedCid {
                sequence: self.active.sequence,
                cid: Cid::EMPTY,
            });
        }
        let next = self.spare.pop_at(0)?;
        // There is room for all lent and spare ids together.
        self.lent.try_push(next).ok()?;
        Some(NumberedCid {
            sequence: next.sequence,
            cid: next.cid,
        })
    }

    /// Makes the id of another path the one that [`Peer::active`] returns, and leaves the old id to
    /// the old path. Returns false if the id was retired.
    pub fn activate(&mut self, sequence: u64) -> bool {
        if sequence == self.active.sequence {
            return true;
        }
        let lent = self.lent.iter_mut().find(|lent| lent.sequence == sequence);
        lent.map(|lent| std::mem::swap(lent, &mut self.active))
            .is_some()
    }

    /// Retires the id of a path that was given up. The id in use and the empty id stay.
    pub fn retire(&mut self, sequence: u64) {
        if let Some(place) = self.lent.iter().position(|lent| lent.sequence == sequence) {
            if self.queue_retirement(sequence).is_ok() {
                self.lent.remove(place);
            }
        }
    }

    /// Takes a NEW_CONNECTION_ID (RFC 9000 §5.1.1, §19.15).
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the peer uses no connection ids, or contradicts itself about an id;
    /// FRAME_ENCODING_ERROR if the frame retires its own id; CONNECTION_ID_LIMIT_ERROR for more
    /// ids, or more unacknowledged retirements, than allowed.
    pub fn on_new_connection_id(&mut self, frame: &NewConnectionId) -> Result<(), Violation> {
        if self.active.cid.is_empty() {
            return Err(Violation::NewCidWithoutCids);
        }
        if frame.retire_prior_to > frame.sequence {
            return Err(Violation::NewCidRetiresItself);
        }
        let entry = Entry {
            sequence: frame.sequence,
            cid: frame.cid,
            reset_token: Some(frame.reset_token),
        };
        let is_known = self.is_known(&entry)?;
        self.retire_before(frame.retire_prior_to)?;
        let memory = self.seen.find(entry.sequence);
        if !is_known && memory != Memory::Seen {
            self.seen.insert(entry.sequence);
            if entry.sequence < self.retire_prior_to || memory == Memory::TooOld {
                // The id was retired before it arrived (RFC 9000 §19.15). If it is too old to know,
                // it may be a copy, and then retiring it again does no harm.
                self.queue_retirement(entry.sequence)?;
            } else {
                let place = self
                    .spare
                    .partition_point(|spare| spare.sequence < entry.sequence);
                self.spare
                    .try_insert(place, entry)
                    .map_err(|_| Violation::TooManyCids)?;
            }
        }
        if self.active.sequence < self.retire_prior_to && !self.use_next()? {
            return Err(Violation::NewCidRetiresAll);
        }
        if self.lent.len() + self.spare.len() >= limits::PEER_CIDS {
            Err(Violation::TooManyCids)
        } else {
            Ok(())
        }
    }

    /// Returns true if the id is already known.
    fn is_known(&self, entry: &Entry) -> Result<bool, Violation> {
        for known in self.spare.iter().chain(self.in_use()) {
            if known == entry {
                return Ok(true);
            }
            if known.sequence == entry.sequence || known.cid == entry.cid {
                return Err(Violation::NewCidContradicts);
            }
        }
        Ok(false)
    }

    /// Retires spare ids and those of other paths below a sequence number; the active one follows
    /// once there is a replacement.
    fn retire_before(&mut self, sequence: u64) -> Result<(), Violation> {
        if sequence <= self.retire_prior_to {
            return Ok(());
        }
        self.retire_prior_to = sequence;
        while let Some(spare) = self
            .spare
            .first()
            .copied()
            .filter(|old| old.sequence < sequence)
        {
            self.queue_retirement(spare.sequence)?;
            self.spare.remove(0);
        }
        while let Some(place) = self.lent.iter().position(|old| old.sequence < sequence) {
            let Some(old) = self.lent.remove(place) else {
                break;
            };
            self.queue_retirement(old.sequence)?;
        }
        Ok(())
    }

    /// Replaces the active id with a spare one, or with that of another path if there is no spare:
    /// of the frames that retire the active id, the one with that id may be the only one that
    /// arrived.
    fn use_next(&mut self) -> Result<bool, Violation> {
        let Some(next) = self.spare.first().or(self.lent.first()).copied() else {
            return Ok(false);
        };
        self.queue_retirement(self.active.sequence)?;
        self.spare.retain(|spare| spare.sequence != next.sequence);
        self.lent.retain(|lent| lent.sequence != next.sequence);
        self.active = next;
        Ok(true)
    }

    /// Moves to a spare id and retires the active one, so that observers cannot link the two (RFC
    /// 9000 §9.5). Returns false if there is no spare id.
    pub fn advance(&mut self) -> bool {
        !self.spare.is_empty() && self.use_next().unwrap_or(false)
    }

    /// Takes the id for the server's preferred address, sequence number 1 (RFC 9000 §9.6, §18.2).
    ///
    /// # Errors
    /// TRANSPORT_PARAMETER_ERROR if the server uses no connection ids, or sends the same id twice.
    pub fn set_preferred(&mut self, cid: Cid, token: ResetToken) -> Result<(), Violation> {
        if self.is_zero_length() {
            return Err(Violation::PreferredAddressWithoutCids);
        }
        if self.active.cid == cid {
            return Err(Violation::PreferredAddressCidInUse);
        }
        self.seen.insert(1);
        let entry = Entry {
            sequence: 1,
            cid,
            reset_token: Some(token),
        };
        self.spare
            .try_insert(0, entry)
            .map_err(|_| Violation::ParameterTwice)
    }

    fn queue_retirement(&mut self, sequence: u64) -> Result<(), Violation> {
        let place = self
            .retirements
            .partition_point(|pending| pending.sequence < sequence);
        if self
            .retirements
            .get(place)
            .is_some_and(|pending| pending.sequence == sequence)
        {
            return Ok(());
        }
        self.retirements
            .try_insert(
                place,
                Retirement {
                    sequence,
                    is_sent: false,
                },
            )
            .map_err(|_| Violation::TooManyRetirements)
    }
}

/// What is remembered of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// The number was not received before.
    New,
    /// The number was received.
    Seen,
    /// The number is too old to be remembered.
    TooOld,
}

/// Sequence numbers received, to distinguish late copies of retired ids from new ids.
#[derive(Debug)]
struct Seen {
    largest: u64,
    /// Bit `i` represents `largest - i`.
    window: u64,
}

impl Seen {
    fn find(&self, sequence: u64) -> Memory {
        match self.largest.checked_sub(sequence) {
            Some(age) if age >= u64::BITS.into() => Memory::TooOld,
            Some(age) if self.window >> age & 1 == 1 => Memory::Seen,
            _ => Memory::New,
        }
    }

    fn insert(&mut self, sequence: u64) {
        if let Some(age) = self.largest.checked_sub(sequence) {
            let bit = u32::try_from(age)
                .ok()
                .and_then(|age| 1u64.checked_shl(age));
            self.window |= bit.unwrap_or(0);
        } else {
            let ahead = u32::try_from(sequence - self.largest).unwrap_or(u32::MAX);
            self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
            self.largest = sequence;
        }
    }
}
