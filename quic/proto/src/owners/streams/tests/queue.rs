use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::owners::streams::{
    Priority, StreamId,
    queue::{NOBODY, Place, QUANTUM, Queue, Round},
};

/// The largest packet.
const LARGEST: u32 = 3000;

impl Queue {
    /// Returns the number of streams that wait.
    pub(super) fn len(&self) -> usize {
        let standing = |round: &&Round| round.in_order != NOBODY;
        self.0.as_ref().map_or(0, |it| {
            it.members.len() - it.rounds.iter().filter(standing).count() + it.in_order.len()
        })
    }

    pub(super) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |it| it.members.capacity())
    }
}

/// A queue, and the place and priority of every stream for comparison.
#[derive(Default)]
struct Known {
    queue: Queue,
    waiting: BTreeMap<StreamId, (Priority, Place)>,
}

impl Known {
    fn insert(&mut self, id: u64, priority: Priority) {
        let id = StreamId(id);
        self.remove(id.0);
        let place = self.queue.insert(id, priority);
        self.waiting.insert(id, (priority, place));
    }

    fn remove(&mut self, id: u64) {
        if let Some((_, place)) = self.waiting.remove(&StreamId(id)) {
            self.queue.remove(StreamId(id), place);
        }
    }

    /// Sends `bytes` of the next stream. Returns its id.
    fn send(&mut self, bytes: u32) -> Option<u64> {
        let id = self.queue.front()?;
        self.queue.sent(bytes);
        Some(id.0)
    }

    /// Checks the invariants.
    fn check(&self) {
        assert_eq!(self.queue.len(), self.waiting.len());
        assert_eq!(self.queue.is_empty(), self.waiting.is_empty());
        let Some(front) = self.queue.front() else {
            assert!(self.waiting.is_empty(), "somebody waits and nobody is next");
            return;
        };
        let (priority, _) = self.waiting[&front];
        let least = self.waiting.values().map(|(it, _)| it.urgency()).min();
        assert_eq!(Some(priority.urgency()), least);
        assert_eq!(u32::from(priority.urgency()), self.queue.urgency());
        if !priority.is_incremental() {
            let mut alike = self.waiting.iter().filter(|(_, (it, _))| *it == priority);
            assert_eq!(alike.next().map(|(id, _)| *id), Some(front));
        }
    }
}

fn every(urgency: u8) -> [Priority; 2] {
    let incremental = Priority::new(urgency);
    [incremental, incremental.non_incremental()]
}

#[test]
fn an_empty_queue_has_nobody() {
    let mut queue = Queue::default();
    assert!(queue.is_empty());
    assert_eq!((queue.front(), queue.urgency()), (None, 8));
    queue.sent(1);
    queue.remove(StreamId(0), Place::Nowhere);
    assert!(queue.is_empty());
}

#[test]
fn lower_urgencies_come_first() {
    let mut known = Known::default();
    for urgency in (0..8).rev() {
        for (kind, priority) in every(urgency).into_iter().enumerate() {
            known.insert(u64::from(urgency) * 2 + kind as u64, priority);
            known.check();
            assert_eq!(known.queue.urgency(), u32::from(urgency));
        }
    }
    for id in 0..16 {
        known.remove(id);
        known.check();
    }
}

#[test]
fn incremental_streams_come_in_turn() {
    let mut known = Known::default();
    for id in [5, 1, 9] {
        known.insert(id, Priority::new(2));
    }
    let turns: Vec<_> = (0..6).map(|_| known.send(QUANTUM).unwrap()).collect();
    assert_eq!(turns, [5, 1, 9, 5, 1, 9]);
    assert_eq!(known.send(QUANTUM - 1), Some(5));
    assert_eq!(known.send(1), Some(5));
    known.insert(7, Priority::new(2));
    let turns: Vec<_> = (0..5).map(|_| known.send(QUANTUM).unwrap()).collect();
    assert_eq!(turns, [1, 9, 5, 7, 1], "who is new comes last in the round");
}

#[test]
fn what_was_too_much_is_taken_off_the_next_turn() {
    let mut known = Known::default();
    for id in [0, 1] {
        known.insert(id, Priority::new(0));
    }
    known.send(QUANTUM + 100);
    known.send(QUANTUM);
    assert_eq!(known.send(QUANTUM - 100), Some(0));
    assert_eq!(known.send(1), Some(1));
}

#[test]
fn a_packet_larger_than_many_turns_costs_one() {
    let mut known = Known::default();
    for id in [0, 1] {
        known.insert(id, Priority::new(0));
    }
    known.send(10 * QUANTUM);
    known.send(QUANTUM);
    known.send(1);
    let turns: Vec<_> = (0..4).map(|_| known.send(QUANTUM).unwrap()).collect();
    assert_eq!(turns, [1, 0, 1, 0]);
}

#[test]
fn the_others_come_in_the_order_of_their_ids() {
    let mut known = Known::default();
    let priority = Priority::new(3).non_incremental();
    for id in [8, 4, 12] {
        known.insert(id, priority);
    }
    for _ in 0..10 {
        assert_eq!(known.send(QUANTUM), Some(4));
    }
    known.insert(0, priority);
    assert_eq!(known.send(QUANTUM), Some(0), "a lower one passes");
    known.remove(0);
    known.remove(4);
    assert_eq!(known.send(QUANTUM), Some(8));
}

#[test]
fn those_in_order_have_one_turn_in_the_round() {
    let mut known = Known::default();
    for id in [0, 4] {
        known.insert(id, Priority::new(3).non_incremental());
    }
    for id in [8, 12] {
        known.insert(id, Priority::new(3));
    }
    let turns: Vec<_> = (0..6).map(|_| known.send(QUANTUM).unwrap()).collect();
    assert_eq!(turns, [0, 8, 12, 0, 8, 12]);
    known.remove(0);
    let turns: Vec<_> = (0..3).map(|_| known.send(QUANTUM).unwrap()).collect();
    assert_eq!(turns, [4, 8, 12]);
}

#[test]
fn a_queue_gives_memory_back() {
    let mut known = Known::default();
    for id in 0..1000 {
        known.insert(id, every(3)[id as usize % 2]);
    }
    for id in 0..1000 {
        known.remove(id);
    }
    known.check();
    assert_eq!(known.queue.capacity(), 0);
}

proptest! {
    #[test]
    fn whatever_comes_and_goes_the_order_holds(
        steps in prop::collection::vec((0_u64..30, 0_u8..9, any::<bool>(), 0_u32..LARGEST), 0..300),
    ) {
        let mut known = Known::default();
        for (id, urgency, kind, bytes) in steps {
            match urgency {
                8 => known.remove(id),
                urgency => known.insert(id, every(urgency)[usize::from(kind)]),
            }
            known.check();
            known.send(bytes);
            known.check();
        }
    }

    /// As long as both have something to send, no two members of a round are ever more than a turn
    /// and a packet apart, whatever the sizes of packets.
    #[test]
    fn members_of_a_round_stay_within_a_turn_of_each_other(
        count in 1_u64..20,
        ordered in 0_u64..5,
        packets in prop::collection::vec(1_u32..LARGEST, 100..1000),
    ) {
        let mut known = Known::default();
        for id in 0..count {
            known.insert(id, Priority::new(3));
        }
        for id in count..count + ordered {
            known.insert(id, Priority::new(3).non_incremental());
        }
        let mut sent: BTreeMap<u64, u32> = (0..count).map(|id| (id, 0)).collect();
        sent.extend((ordered > 0).then_some((count, 0)));
        for bytes in packets {
            let id = known.send(bytes).unwrap();
            *sent.get_mut(&id).unwrap() += bytes;
            let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
            prop_assert!(most - least <= QUANTUM + LARGEST, "{sent:?}");
        }
    }
}
