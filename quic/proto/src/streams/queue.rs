//! Queues of streams that wait for their turn, by priority.

use std::collections::BTreeSet;

use slab::Slab;

use super::{Priority, StreamId};

/// Bytes a stream sends before the next one gets its turn: several packets, so that a receiver
/// sees runs, and few enough that nobody waits long.
pub(super) const QUANTUM: u32 = 8 * 1024;

/// Levels of urgency (RFC 9218 §4.1).
const LEVELS: usize = 8;

/// Slots kept for reuse when the last stream goes.
const KEPT_SLOTS: usize = 16;

/// No member of a round.
const NOBODY: u32 = u32::MAX;

/// Streams that wait for their turn, each at most once, in the order of [`Priority`].
///
/// Each urgency has a round of members: one for each incremental stream, and one that stands for
/// all that are not. The round is a ring of links, so that a stream is put in, taken out and moved
/// without a search; a bit for each urgency says whether its round has members. Finding who is
/// next, and saying how much it sent, take the same few steps however many wait. Streams that go
/// one after the other cost a step in a balanced tree when they come and go, not for each packet.
#[derive(Debug)]
pub(super) struct Queue {
    /// Bit `u`: the round of urgency `u` has members.
    occupied: u8,
    rounds: [Round; LEVELS],
    members: Slab<Member>,
    /// The streams that are not incremental, by urgency.
    in_order: BTreeSet<(u8, StreamId)>,
}

/// The members of one urgency.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Whose turn it is.
    front: u32,
    /// Member that stands for the streams that go one after the other.
    in_order: u32,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// Itself, or the first of those it stands for.
    id: StreamId,
    /// Bytes sent in its turn. What was too much is taken off the next one: that keeps shares equal
    /// whatever the sizes of packets.
    spent: u32,
    before: u32,
    after: u32,
}

/// Place of a stream in a queue. The caller keeps it, and gives it back to take the stream out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Nowhere,
    /// A member of the round of this urgency.
    Alone(u8, u32),
    /// Among those of this urgency that go one after the other.
    InOrder(u8),
}

/// Places of a sending part in the queues of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) free: Place,
    pub(super) fresh: Place,
}

impl Default for Queue {
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
    pub(super) const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The lowest urgency somebody waits with; 8 if nobody waits.
    #[inline]
    pub(super) const fn urgency(&self) -> u32 {
        self.occupied.trailing_zeros()
    }

    /// Whose turn it is.
    #[inline]
    pub(super) fn front(&self) -> Option<StreamId> {
        let round = self.rounds.get(self.urgency() as usize)?;
        Some(self.members.get(round.front as usize)?.id)
    }

    /// The stream waits from now on, behind the others of its urgency.
    pub(super) fn insert(&mut self, id: StreamId, priority: Priority) -> Place {
        let urgency = priority.urgency();
        if priority.is_incremental() {
            return Place::Alone(urgency, self.link(urgency, id));
        }
        self.in_order.insert((urgency, id));
        self.follow_order(urgency);
        Place::InOrder(urgency)
    }

    /// The stream waits no longer.
    pub(super) fn remove(&mut self, id: StreamId, place: Place) {
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

    /// The stream whose turn it is sent something; after [`QUANTUM`] the next one has its turn.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u32) {
        let Some(round) = self.rounds.get_mut(self.occupied.trailing_zeros() as usize) else {
            return;
        };
        let Some(member) = self.members.get_mut(round.front as usize) else {
            return;
        };
        member.spent = member.spent.saturating_add(bytes);
        if member.spent >= QUANTUM {
            // One packet may be larger than a turn: that is not held against it for ever.
            member.spent = (member.spent - QUANTUM).min(QUANTUM);
            round.front = member.after;
        }
    }

    /// Brings the member that stands for those in order up to date with who is first of them.
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

    /// Adds a member at the end of a round: right before the one whose turn it is.
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

    /// Makes two members neighbours.
    fn join(&mut self, before: u32, after: u32) {
        if let Some(member) = self.members.get_mut(before as usize) {
            member.after = after;
        }
        if let Some(member) = self.members.get_mut(after as usize) {
            member.before = before;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let standing = |round: &&Round| round.in_order != NOBODY;
        self.members.len() - self.rounds.iter().filter(standing).count() + self.in_order.len()
    }
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.members.capacity()
    }
}
