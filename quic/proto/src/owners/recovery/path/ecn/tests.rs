use super::*;

const ECT0: Option<Ecn> = Some(Ecn::Ect0);

fn counts(ect0: u64, ect1: u64, ce: u64) -> EcnCounts {
    EcnCounts { ect0, ect1, ce }
}

/// An ACK frame without counts.
const NONE: Option<EcnCounts> = None;

fn marks(ect0: u64, ect1: u64) -> Marks {
    Marks { ect0, ect1 }
}

/// One space of a path.
struct World {
    path: PathEcn,
    space: Counted,
}

impl World {
    fn new() -> Self {
        Self {
            path: PathEcn::new(EcnState::Testing),
            space: Counted::default(),
        }
    }

    /// The test has passed: ten packets were sent, and the counts of ten ECT(0) came back.
    fn capable() -> Self {
        let mut world = Self::new();
        world.send(10, ECT0);
        assert_eq!(world.ack(counts(10, 0, 0), marks(10, 0)), 0);
        assert_eq!(world.path.state(), EcnState::Capable);
        world
    }

    fn send(&mut self, count: u64, mark: Option<Ecn>) {
        for _ in 0..count {
            self.path.on_sent(&mut self.space, mark);
        }
    }

    fn ack(&mut self, counts: impl Into<Option<EcnCounts>>, newly: Marks) -> u64 {
        let (path, space) = (&mut self.path, &mut self.space);
        path.on_ack(space, counts.into(), newly, Order::Newest)
    }

    fn fails(mut self, counts: impl Into<Option<EcnCounts>>, newly: Marks) -> bool {
        let marks = self.ack(counts, newly);
        let failed = self.path.state() == EcnState::Failed;
        assert!(!failed || (marks == 0 && !self.path.is_marking()));
        failed
    }
}

#[test]
fn a_path_is_tested_with_ten_packets_and_waits_for_word_of_them() {
    let mut world = World::new();
    world.send(9, ECT0);
    world.path.on_lost(1);
    assert_eq!(world.path.state(), EcnState::Testing);
    world.send(1, ECT0);
    assert!(world.path.is_marking(), "until something comes in");
    world.path.on_lost(1);
    assert_eq!(world.path.state(), EcnState::Unknown);
    assert!(!world.path.is_marking());
    world.send(5, None);
    assert_eq!(world.ack(counts(3, 0, 0), marks(3, 0)), 0);
    assert_eq!(world.path.state(), EcnState::Capable);
    assert!(world.path.is_marking());
}

#[test]
fn an_early_answer_does_not_end_the_test() {
    let mut world = World::new();
    world.send(2, ECT0);
    world.ack(counts(2, 0, 0), marks(2, 0));
    assert_eq!(world.path.state(), EcnState::Testing);
    world.send(8, ECT0);
    world.ack(counts(4, 0, 0), marks(2, 0));
    assert_eq!(world.path.state(), EcnState::Capable);
}

/// Proves: rfc9000 13.4.2.2 failed-ecn-is-switched-off
#[test]
fn counts_that_are_missing_fail() {
    assert!(World::capable().fails(NONE, marks(1, 0)));
    let mut world = World::new();
    world.send(1, ECT0);
    assert!(world.fails(NONE, marks(1, 0)));
}

#[test]
fn counts_are_not_missed_where_nothing_marked_arrived() {
    let mut world = World::capable();
    world.send(3, None);
    assert!(!world.fails(NONE, Marks::default()));
}

/// Proves: rfc9000 13.4.2.2 failed-ecn-is-switched-off
#[test]
fn bleached_marks_fail() {
    let mut world = World::capable();
    world.send(4, ECT0);
    assert!(world.fails(counts(13, 0, 0), marks(4, 0)));
}

#[test]
fn counts_that_decrease_fail() {
    let mut world = World::capable();
    world.send(10, ECT0);
    world.ack(counts(15, 0, 2), marks(7, 0));
    assert_eq!(world.path.state(), EcnState::Capable);
    assert!(world.fails(counts(20, 0, 1), Marks::default()));
}

#[test]
fn counts_of_more_than_was_sent_fail() {
    assert!(World::capable().fails(counts(11, 0, 0), Marks::default()));
    assert!(World::capable().fails(counts(10, 0, 1), Marks::default()));
    assert!(World::capable().fails(counts(u64::MAX, u64::MAX, u64::MAX), Marks::default()));
    assert!(
        World::capable().fails(counts(10, 1, 0), Marks::default()),
        "ECT(1) was never sent"
    );
}

#[test]
fn a_mark_that_became_another_fails() {
    let mut world = World::new();
    world.send(1, ECT0);
    world.send(1, Some(Ecn::Ect1));
    assert!(world.fails(counts(2, 0, 0), marks(1, 1)));
    let mut world = World::new();
    world.send(10, Some(Ecn::Ect1));
    assert!(world.fails(counts(10, 0, 0), marks(0, 10)));
}

#[test]
fn congestion_experienced_stands_for_either_mark() {
    let mut world = World::new();
    world.send(6, ECT0);
    world.send(6, Some(Ecn::Ect1));
    assert_eq!(world.ack(counts(4, 3, 5), marks(6, 6)), 5);
    assert_eq!(world.path.state(), EcnState::Capable);
    world.send(2, ECT0);
    assert_eq!(world.ack(counts(5, 3, 6), marks(2, 0)), 1);
    assert_eq!(world.ack(counts(5, 3, 6), Marks::default()), 0);
    assert_eq!(world.space.reported().ce, 6);
}

#[test]
fn counts_may_run_ahead_of_what_is_acknowledged() {
    let mut world = World::capable();
    world.send(10, ECT0);
    assert_eq!(world.ack(counts(16, 0, 4), marks(3, 0)), 4);
    assert_eq!(world.ack(counts(16, 0, 4), Marks::default()), 0);
    assert_eq!(world.path.state(), EcnState::Capable);
}

/// Proves: rfc9000 13.4.2.1 reordered-acks-do-not-fail-ecn
#[test]
fn an_ack_that_was_overtaken_is_not_held_against_the_path() {
    let mut world = World::capable();
    world.send(4, ECT0);
    world.ack(counts(13, 0, 1), marks(2, 0));
    let marks = world.path.on_ack(
        &mut world.space,
        Some(counts(11, 0, 0)),
        marks(2, 0),
        Order::Older,
    );
    assert_eq!((marks, world.path.state()), (0, EcnState::Capable));
    let none = world.path.on_ack(
        &mut world.space,
        None,
        Marks { ect0: 2, ect1: 0 },
        Order::Older,
    );
    assert_eq!((none, world.path.state()), (0, EcnState::Capable));
}

#[test]
fn a_path_that_drops_every_marked_packet_fails() {
    let mut world = World::new();
    world.send(10, ECT0);
    world.path.on_lost(9);
    assert_eq!(world.path.state(), EcnState::Unknown);
    world.path.on_lost(1);
    assert_eq!(world.path.state(), EcnState::Failed);
}

#[test]
fn two_probe_timeouts_in_a_row_end_the_test() {
    let mut world = World::new();
    world.send(2, ECT0);
    world.path.on_pto(1);
    assert!(world.path.is_marking());
    world.send(2, ECT0);
    world.path.on_pto(2);
    assert_eq!(world.path.state(), EcnState::Unknown);
    world.path.on_lost(4);
    assert_eq!(world.path.state(), EcnState::Failed);

    let mut world = World::new();
    world.send(2, ECT0);
    world.ack(counts(2, 0, 0), marks(2, 0));
    world.path.on_pto(2);
    assert!(world.path.is_marking(), "the path is known to carry them");
}

#[test]
fn what_went_with_its_space_is_not_waited_for() {
    let mut world = World::new();
    world.send(10, ECT0);
    world.path.on_discarded(4);
    world.send(4, ECT0);
    world.path.on_lost(10);
    assert_eq!(world.path.state(), EcnState::Failed);
}

#[test]
fn a_path_that_marks_everything_fails() {
    let mut world = World::new();
    world.send(20, ECT0);
    world.ack(counts(0, 0, 6), marks(6, 0));
    assert_eq!(world.path.state(), EcnState::Capable, "it may be full");
    assert!(world.fails(counts(0, 0, 12), marks(6, 0)));

    let mut world = World::new();
    world.send(40, ECT0);
    world.ack(counts(1, 0, 11), marks(12, 0));
    world.ack(counts(1, 0, 39), marks(20, 0));
    assert_eq!(world.path.state(), EcnState::Capable, "one came unharmed");
}

#[test]
fn a_failed_path_stays_so_until_it_is_another_one() {
    let mut world = World::new();
    world.send(10, ECT0);
    world.ack(NONE, marks(1, 0));
    assert_eq!(world.path.state(), EcnState::Failed);
    assert_eq!(world.ack(counts(10, 0, 0), marks(9, 0)), 0);
    assert_eq!(world.path.state(), EcnState::Failed);
    world.path.reset();
    assert_eq!(world.path.state(), EcnState::Testing);
    world.send(10, ECT0);
    world.ack(counts(20, 0, 0), marks(10, 0));
    assert_eq!(world.path.state(), EcnState::Capable);
}

#[test]
fn nothing_is_done_where_it_is_switched_off() {
    let mut path = PathEcn::new(EcnState::Disabled);
    let mut space = Counted::default();
    path.reset();
    path.on_pto(9);
    assert!(!path.is_marking());
    let marks = path.on_ack(
        &mut space,
        Some(counts(9, 9, 9)),
        Marks::default(),
        Order::Newest,
    );
    assert_eq!((marks, path.state()), (0, EcnState::Disabled));
}
