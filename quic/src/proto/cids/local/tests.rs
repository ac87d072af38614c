use super::*;

const WORKER: u8 = 7;

/// A connection of worker 7 whose peer keeps `limit` ids; random bytes count upwards.
struct World {
    local: Local,
    random: u8,
}

impl World {
    fn new(limit: u64) -> Self {
        let first = Local::generate(WORKER, |bytes| bytes.fill(0));
        let mut world = Self {
            local: Local::new(WORKER, first),
            random: 0,
        };
        world.local.set_peer_limit(limit);
        world.issue();
        world
    }

    fn issue(&mut self) {
        let random = &mut self.random;
        self.local.issue(
            |bytes| {
                *random = random.wrapping_add(1);
                bytes.fill(*random);
            },
            |cid| [cid.as_bytes()[1]; 16],
        );
    }

    fn events(&mut self) -> Vec<CidEvent> {
        std::iter::from_fn(|| self.local.poll_event()).collect()
    }

    fn write(&mut self, space: usize) -> Vec<u64> {
        let mut buffer = vec![0; space];
        self.local
            .write_frames(&mut FrameWriter::new(&mut buffer))
            .iter()
            .collect()
    }

    fn retire(&mut self, sequence: u64) -> Result<(), TransportError> {
        let dcid = self.local.active.last().unwrap().cid;
        self.local
            .on_retire_connection_id(&RetireConnectionId { sequence }, &dcid)
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
fn an_id_starts_with_the_worker() {
    assert_eq!(Local::generate(WORKER, |bytes| bytes.fill(9)), cid(9));
}

#[test]
fn nothing_is_issued_before_the_peers_limit_is_known() {
    let mut local = Local::new(WORKER, cid(0));
    assert_eq!(local.missing(), 0);
    local.set_peer_limit(2);
    assert_eq!(local.missing(), 1);
}

#[test]
fn ids_are_issued_up_to_the_smaller_limit() {
    let mut world = World::new(2);
    assert_eq!(world.events(), [CidEvent::Issued(cid(1))]);
    assert_eq!(world.write(1200), [1]);
    let mut world = World::new(u64::MAX);
    assert_eq!(world.local.active().count(), limits::LOCAL_CIDS);
    assert_eq!(world.local.missing(), 0);
    assert_eq!(world.write(1200), [1, 2, 3]);
    assert!(!world.local.has_pending());
}

#[test]
fn a_frame_tells_the_id_and_its_token() {
    let mut world = World::new(2);
    let mut buffer = [0; 64];
    let mut out = FrameWriter::new(&mut buffer);
    world.local.write_frames(&mut out);
    let len = out.len();
    let mut expected = vec![0x18, 1, 0, 8, WORKER];
    expected.extend([1; 7 + 16]);
    assert_eq!(buffer.split_at(len).0, expected);
}

#[test]
fn what_does_not_fit_waits() {
    let mut world = World::new(4);
    assert_eq!(world.write(40), [1]);
    assert!(world.local.has_pending());
    assert_eq!(world.write(60), [2, 3]);
    assert!(!world.local.has_pending());
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
        !world.local.has_pending(),
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

#[test]
fn retiring_an_id_that_was_never_issued_is_a_violation() {
    let mut world = World::new(2);
    for sequence in [2, u64::MAX >> 2] {
        let error = world.retire(sequence).unwrap_err();
        assert_eq!((error.code, error.frame), (Code::PROTOCOL_VIOLATION, 0x19));
    }
}

#[test]
fn retiring_the_id_of_the_packet_itself_is_a_violation() {
    let mut world = World::new(2);
    let error = world
        .local
        .on_retire_connection_id(&RetireConnectionId { sequence: 1 }, &cid(1))
        .unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    assert_eq!(world.local.active().count(), 2);
}

#[test]
fn a_peer_that_retires_all_the_time_is_answered_within_bounds() {
    let mut world = World::new(4);
    for round in 0..1000u64 {
        // Events are left unpolled for a while: no more is issued than they can tell.
        let oldest = world.local.active[0].sequence;
        if world.local.active.len() > 1 {
            world.retire(oldest).unwrap();
        }
        world.issue();
        assert!(world.local.active().count() <= limits::LOCAL_CIDS);
        if round % 7 == 0 {
            assert!(world.events().len() <= 2 * limits::LOCAL_CIDS);
        }
        world.write(1200);
    }
    world.events();
    world.issue();
    assert_eq!(world.local.active().count(), limits::LOCAL_CIDS);
}
