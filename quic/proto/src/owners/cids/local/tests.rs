use std::time::Duration;

use super::*;
use crate::{testing::write_frames, wire::packet::Space};

const WORKER: u8 = 7;

/// A connection of worker 7 whose peer stores `limit` ids; random bytes count upwards.
struct World {
    local: Local,
    random: u8,
    now: Instant,
}

impl World {
    fn new(limit: u64) -> Self {
        let mut world = Self {
            local: Local::new(cid(0)),
            random: 0,
            now: Instant::now(),
        };
        world.local.set_peer_limit(limit);
        world.issue();
        world
    }

    fn issue(&mut self) {
        let random = &mut self.random;
        self.local.issue(|| {
            *random = random.wrapping_add(1);
            (cid(*random), [*random; 16].into())
        });
    }

    fn events(&mut self) -> Vec<CidEvent> {
        std::iter::from_fn(|| self.local.poll_event()).collect()
    }

    fn write(&mut self, space: usize) -> Vec<u64> {
        let mut buffer = vec![0; space];
        write_frames(&mut self.local, &mut FrameWriter::new(&mut buffer))
            .iter()
            .collect()
    }

    fn retire(&mut self, sequence: u64) -> Result<(), Violation> {
        let dcid = self.local.active.last().unwrap().cid;
        self.local
            .on_retire_connection_id(self.now, &RetireConnectionId { sequence }, &dcid)
    }
}

fn cid(random: u8) -> Cid {
    let mut bytes = [random; 8];
    bytes[0] = WORKER;
    Cid::from(bytes)
}

fn sent(sequences: impl IntoIterator<Item = u64>) -> Sent {
    let mut sent = Sent::default();
    sequences
        .into_iter()
        .for_each(|sequence| sent.insert(sequence));
    sent
}

#[test]
fn nothing_is_issued_before_the_peers_limit_is_known() {
    let mut local = Local::new(cid(0));
    assert_eq!(local.missing(), 0);
    local.set_peer_limit(2);
    assert_eq!(local.missing(), 1);
}

/// Proves: rfc9000 5.1.1 peer-limit-is-kept
#[test]
fn ids_are_issued_up_to_the_smaller_limit() {
    let mut world = World::new(2);
    assert_eq!(world.events(), [CidEvent::Issued(cid(1))]);
    assert_eq!(world.write(1200), [1]);
    let mut world = World::new(u64::MAX);
    assert_eq!(world.local.active().count(), limits::LOCAL_CIDS);
    assert_eq!(world.local.missing(), 0);
    assert_eq!(world.write(1200), [1, 2, 3]);
    assert!(!world.local.wants_to_send(Space::Data));
}

#[test]
fn a_frame_tells_the_id_and_its_token() {
    let mut world = World::new(2);
    let mut buffer = [0; 64];
    let mut out = FrameWriter::new(&mut buffer);
    write_frames(&mut world.local, &mut out);
    let len = out.len();
    let mut expected = vec![0x18, 1, 0, 8, WORKER];
    expected.extend([1; 7 + 16]);
    assert_eq!(buffer.split_at(len).0, expected);
}

#[test]
fn what_does_not_fit_waits() {
    let mut world = World::new(4);
    assert_eq!(world.write(40), [1]);
    assert!(world.local.wants_to_send(Space::Data));
    assert_eq!(world.write(60), [2, 3]);
    assert!(!world.local.wants_to_send(Space::Data));
}

#[test]
fn a_lost_id_is_told_again_and_an_acknowledged_one_is_not() {
    let mut world = World::new(4);
    world.write(1200);
    world.local.on_acked(&sent([2]));
    world.local.on_lost(&sent([1, 2]));
    assert_eq!(world.write(1200), [1]);
    world.local.on_lost(&sent([1, 3]));
    world.local.on_acked(&sent([3]));
    assert_eq!(
        world.write(1200),
        [1],
        "the first copy of 3 arrived after all"
    );
}

#[test]
fn a_retired_id_is_replaced() {
    let mut world = World::new(4);
    world.events();
    world.write(1200);
    world.retire(1).unwrap();
    assert_eq!(world.local.missing(), 1);
    world.issue();
    assert_eq!(
        world.events(),
        [CidEvent::Retired(cid(1)), CidEvent::Issued(cid(4))]
    );
    assert_eq!(world.write(1200), [4]);
    world.local.on_lost(&sent([1]));
    assert!(
        !world.local.wants_to_send(Space::Data),
        "nobody needs the old one any more"
    );
}

#[test]
fn retiring_twice_is_retiring_once() {
    let mut world = World::new(4);
    world.events();
    world.retire(0).unwrap();
    world.retire(0).unwrap();
    assert_eq!(world.events(), [CidEvent::Retired(cid(0))]);
}

/// Proves: rfc9000 19.16 retire-of-unknown-closes
#[test]
fn retiring_an_id_that_was_never_issued_is_a_violation() {
    let mut world = World::new(2);
    // Number 1 exists, but the peer has not been told about it yet.
    for sequence in [1, 2, u64::MAX >> 2] {
        let error = world.retire(sequence).unwrap_err();
        assert_eq!(error, Violation::RetiresUnknownCid);
    }
}

/// Proves: rfc9000 19.16 retire-of-own-packet-closes
#[test]
fn retiring_the_id_of_the_packet_itself_is_a_violation() {
    let mut world = World::new(2);
    world.write(1200);
    let now = world.now;
    let error = world
        .local
        .on_retire_connection_id(now, &RetireConnectionId { sequence: 1 }, &cid(1))
        .unwrap_err();
    assert_eq!(error, Violation::RetiresOwnCid);
    assert_eq!(world.local.active().count(), 2);
}

#[test]
fn a_peer_that_retires_all_the_time_is_answered_within_bounds() {
    let mut world = World::new(4);
    for round in 0..1000u64 {
        // Events are not polled for a while: no more ids are issued than events can report.
        let oldest = world.local.active[0].sequence;
        if world.local.active.len() > 1 {
            world.retire(oldest).unwrap();
        }
        world.now += Duration::from_millis(100);
        world.issue();
        assert!(world.local.active().count() <= limits::LOCAL_CIDS);
        if round % 7 == 0 {
            assert!(world.events().len() <= 3 * limits::LOCAL_CIDS);
        }
        world.write(1200);
    }
    world.events();
    world.issue();
    assert_eq!(world.local.active().count(), limits::LOCAL_CIDS);
}

#[test]
fn a_peer_that_retires_in_a_hurry_waits_for_more() {
    let mut world = World::new(4);
    world.write(1200);
    let mut issued = 3;
    for _ in 0..1000 {
        let oldest = world.local.active[0].sequence;
        if world.local.active.len() > 1 {
            world.retire(oldest).unwrap();
        }
        issued += world.local.missing();
        world.issue();
        world.write(1200);
        world.events();
    }
    // The retirement that came first started the interval and its allowance.
    assert_eq!(issued, 3 + limits::CIDS_ISSUED_AT_ONCE);
    let due = world.local.next_timeout().unwrap();
    assert_eq!(due, world.now + limits::CIDS_ISSUED_INTERVAL);
    world.local.on_timeout(due);
    assert!(world.local.missing() > 0);
    assert_eq!(world.local.next_timeout(), None);
}

/// Returns the frames written: sequence number and retire_prior_to of each.
fn frames(world: &mut World) -> Vec<(u64, u64)> {
    let mut buffer = [0; 1200];
    let mut out = FrameWriter::new(&mut buffer);
    write_frames(&mut world.local, &mut out);
    let written = out.written().to_vec();
    let mut reader = crate::wire::Reader::new(&written);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        match crate::wire::frame::Frame::decode(&mut reader).unwrap() {
            crate::wire::frame::Frame::NewConnectionId(new) => {
                frames.push((new.sequence, new.retire_prior_to));
            }
            other => panic!("{other:?}"),
        }
    }
    frames
}

/// Proves: rfc9000 5.1.1 issued-ids-work-until-retired
#[test]
fn a_rotation_replaces_every_id_and_keeps_the_old_ones_until_they_are_retired() {
    let mut world = World::new(3);
    world.write(1200);
    let now = world.now;
    assert!(world.local.rotate(now));
    world.issue();
    assert_eq!(world.local.active().count(), 6, "the old ones still work");
    assert_eq!(frames(&mut world), [(3, 3), (4, 3), (5, 3)]);
    assert!(!world.local.rotate(now), "the peer has not retired any");
    for sequence in 0..3 {
        world.retire(sequence).unwrap();
    }
    world.events();
    assert_eq!(world.local.missing(), 0);
    assert!(world.local.rotate(now));
}

/// Proves: rfc9000 5.1.1 sequence-numbers-step-by-one
#[test]
fn an_id_that_was_lost_and_is_to_be_retired_is_told_again_for_what_it_is() {
    let mut world = World::new(2);
    world.write(1200);
    let now = world.now;
    assert!(world.local.rotate(now));
    world.issue();
    world.local.on_lost(&sent([1]));
    assert_eq!(frames(&mut world), [(1, 1), (2, 2), (3, 2)]);
}

/// Proves: rfc9000 19.16 no-retire-for-empty-ids
#[test]
fn an_end_without_ids_issues_none_and_has_none_to_retire() {
    let mut local = Local::new(Cid::EMPTY);
    local.set_peer_limit(8);
    assert_eq!(local.missing(), 0);
    assert!(!local.rotate(Instant::now()));
    let frame = RetireConnectionId { sequence: 0 };
    let error = local
        .on_retire_connection_id(Instant::now(), &frame, &Cid::EMPTY)
        .unwrap_err();
    assert_eq!(error, Violation::RetiresWithoutCids);
}

/// Proves: rfc9000 18.2 preferred-address-has-an-id
#[test]
fn the_id_of_a_preferred_address_is_known_without_a_frame() {
    let mut world = World::new(3);
    world.local = Local::new(cid(0));
    world.local.issue_preferred((cid(9), [9; 16].into()));
    world.local.set_peer_limit(3);
    assert_eq!(world.events(), [CidEvent::Issued(cid(9))]);
    world.issue();
    assert_eq!(world.write(1200), [2]);
    world.retire(1).unwrap();
}
