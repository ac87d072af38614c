//! Queues of streams waiting for their turn, by priority.

pub(super) mod priority;

use std::collections::BTreeSet;

use slab::Slab;

use super::{Priority, StreamId};

/// Number of bytes that a stream sends before it is the next one's turn: several packets, so that a
/// receiver sees runs, and few enough that no stream waits long.
pub(super) const QUANTUM: u32 = 8 * 1024;

/// Levels of urgency (RFC 9218 §4.1).
const LEVELS: usize = 8;

/// Number of slots kept for reuse when the last stream goes.
const KEPT_SLOTS: usize = 16;

/// Index of no member.
pub(super) const NOBODY: u32 = u32::MAX;

/// Streams waiting for their turn, each at most once, in the order of [`Priority`].
///
/// Each urgency has a round of members: one for each incremental stream, and one for all others
/// together. The round is a linked ring, so that streams are inserted, removed and moved without a
/// search; a bit per urgency says whether its round has members. Finding the next stream and
/// counting its bytes takes constant time. Non-incremental streams cost a step in a balanced tree
/// when they are inserted and removed, not for each packet.
///
/// A queue that was not used since its memory was released takes none.
#[derive(Debug, Default)]
pub(super) struct Queue(pub(super) Option<Box<Waiting>>);

#[derive(Debug)]
pub(super) struct Waiting {
    /// Bit `u` is set if the round of urgency `u` has members.
    occupied: u8,
    pub(super) rounds: [Round; LEVELS],
    pub(super) members: Slab<Member>,
    /// Non-incremental streams by urgency.
    pub(super) in_order: BTreeSet<(u8, StreamId)>,
}

/// Members of one urgency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Member whose turn it is.
    front: u32,
    /// Member that represents the non-incremental streams.
    pub(super) in_order: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Stream of the member, or the first of the streams it represents.
    id: StreamId,
    /// Bytes sent in its turn. An excess is deducted from the next turn, which keeps shares equal
    /// whatever the sizes of packets.
    spent: u32,
    before: u32,
    after: u32,
}

/// Place of a stream in a queue. The caller stores it, and passes it back to remove the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Nowhere,
    /// The stream is a member of the round of this urgency.
    Alone(u8, u32),
    /// The stream is one of the non-incremental streams of this urgency.
    InOrder(u8),
}

/// Places of a sending part in the queues of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) free: Place,
    pub(super) fresh: Place,
}

impl Default for Waiting {
    fn default() -> Self {
        let round = Round {
            front: NOBODY,
            in_order: NOBODY,
        };
        Self {
            occupied: 0,
            rounds: [round; LEVELS],
            members: Slab::new(),
            in_order: BTreeSet::new(),
        }
    }
}

impl Queue {
    /// Releases the memory of a queue without members.
    pub(super) fn release_memory(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urgency() as usize >= LEVELS
    }

    /// Returns the lowest urgency of a waiting stream; 8 if none waits.
    #[inline]
    pub(super) fn urgency(&self) -> u32 {
        let occupied = self.0.as_ref().map_or(0, |waiting| waiting.occupied);
        occupied.trailing_zeros()
    }

    /// Returns the stream whose turn it is.
    #[inline]
    pub(super) fn front(&self) -> Option<StreamId> {
        let waiting = self.0.as_ref()?;
        let round = waiting.rounds.get(self.urgency() as usize)?;
        Some(waiting.members.get(round.front as usize)?.id)
    }

    /// Adds a stream behind the others of its urgency.
    pub(super) fn insert(&mut self, id: StreamId, priority: Priority) -> Place {
        self.0.get_or_insert_default().insert(id, priority)
    }

    /// Removes a stream.
    #[inline]
    pub(super) fn remove(&mut self, id: StreamId, place: Place) {
        if let Some(waiting) = self.0.as_mut().filter(|_| place != Place::Nowhere) {
            waiting.remove(id, place);
        }
    }

    /// Counts bytes sent by the stream whose turn it is; after [`QUANTUM`] it is the next one's
    /// turn.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        if let Some(waiting) = &mut self.0 {
            waiting.sent(bytes);
        }
    }
}

impl Waiting {
    fn insert(&mut self, id: StreamId, priority: Priority) -> Place {
        let urgency = priority.urgency();
        if priority.is_incremental() {
            return Place::Alone(urgency, self.link(urgency, id));
        }
        self.in_order.insert((urgency, id));
        self.follow_order(urgency);
        Place::InOrder(urgency)
    }

    fn remove(&mut self, id: StreamId, place: Place) {
        match place {
            Place::Nowhere => {}
            Place::Alone(urgency, member) => self.unlink(urgency, member),
            Place::InOrder(urgency) => {
                self.in_order.remove(&(urgency, id));
                self.follow_order(urgency);
            }
        }
        if self.members.is_empty() && self.members.capacity() > KEPT_SLOTS {
            self.members = Slab::new();
        }
    }

    #[inline]
    fn sent(&mut self, bytes: u32) {
        let Some(round) = self.rounds.get_mut(self.occupied.trailing_zeros() as usize) else {
            return;
        };
        let Some(member) = self.members.get_mut(round.front as usize) else {
            return;
        };
        member.spent = member.spent.saturating_add(bytes);
        if member.spent >= QUANTUM {
            // One packet may exceed a turn; the debt is bounded.
            member.spent = (member.spent - QUANTUM).min(QUANTUM);
            round.front = member.after;
        }
    }

    /// Updates the member of the non-incremental streams after the first of them changed.
    fn follow_order(&mut self, urgency: u8) {
        let first = self.in_order.range((urgency, StreamId(0))..).next();
        let first = first.filter(|(of, _)| *of == urgency).map(|&(_, id)| id);
        let Some(round) = self.rounds.get(usize::from(urgency)) else {
            return;
        };
        let standing = round.in_order;
        match (first, self.members.get_mut(standing as usize)) {
            (Some(id), Some(member)) => member.id = id,
            (Some(id), None) => {
                let member = self.link(urgency, id);
                self.set_in_order(urgency, member);
            }
            (None, _) => {
                self.unlink(urgency, standing);
                self.set_in_order(urgency, NOBODY);
            }
        }
    }

    fn set_in_order(&mut self, urgency: u8, member: u32) {
        if let Some(round) = self.rounds.get_mut(usize::from(urgency)) {
            round.in_order = member;
        }
    }

    /// Adds a member at the end of a round, right before the one whose turn it is.
    fn link(&mut self, urgency: u8, id: StreamId) -> u32 {
        let own = self.members.vacant_key() as u32;
        let Some(round) = self.rounds.get_mut(usize::from(urgency)) else {
            return NOBODY;
        };
        let after = match round.front {
            NOBODY => own,
            front => front,
        };
        if after == own {
            round.front = own;
            self.occupied |= 1 << urgency;
        }
        let before = self
            .members
            .get(after as usize)
            .map_or(own, |front| front.before);
        self.members.insert(Member {
            id,
            spent: 0,
            before,
            after,
        });
        self.join(before, own);
        self.join(own, after);
        own
    }

    fn unlink(&mut self, urgency: u8, member: u32) {
        let Some(Member { before, after, .. }) = self.members.try_remove(member as usize) else {
            return;
        };
        self.join(before, after);
        let Some(round) = self.rounds.get_mut(usize::from(urgency)) else {
            return;
        };
        if round.front == member {
            round.front = after;
        }
        if after == member {
            round.front = NOBODY;
            self.occupied &= !(1 << urgency);
        }
    }

    /// Links two members as neighbours.
    fn join(&mut self, before: u32, after: u32) {
        if let Some(member) = self.members.get_mut(before as usize) {
            member.after = after;
        }
        if let Some(member) = self.members.get_mut(after as usize) {
            member.before = before;
        }
    }
}
