use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Direction, LIMITS, Limits, PACKET, Sent, StreamId, Streams, client_bidi, deliver, frames,
    packet, packets, pair_with, read_all,
};
use crate::{
    owners::streams::{ClosedStream, Priority, ReadError, StreamEvent, queue::QUANTUM},
    wire::frame::{Frame, Owner as _},
};

const WIDE: Limits = Limits {
    receive_window: 100_000_000,
    stream_receive_window: 10_000_000,
    send_buffer: 10_000_000,
    max_bidi: 1000,
    ..LIMITS
};

fn client() -> Streams {
    pair_with(WIDE).0
}

/// Opens a stream with this much data to send.
fn open(client: &mut Streams, priority: Priority, bytes: usize) -> StreamId {
    let id = client.open(Direction::Bidi).unwrap();
    client.set_priority(id, priority).unwrap();
    client.write(id, &vec![0; bytes]).unwrap();
    id
}

/// The streams in the next packets; a run of frames names its stream once.
fn order(packets: &[(Vec<u8>, Sent)]) -> Vec<StreamId> {
    let mut order: Vec<_> = packets
        .iter()
        .flat_map(|(payload, _)| frames(payload))
        .filter_map(|frame| match frame {
            Frame::Stream(frame) => Some(frame.id),
            _ => None,
        })
        .collect();
    order.dedup();
    order
}

fn next(client: &mut Streams, count: usize) -> Vec<(Vec<u8>, Sent)> {
    (0..count).map_while(|_| packet(client)).collect()
}

fn in_order(urgency: u8) -> Priority {
    Priority::new(urgency).non_incremental()
}

#[test]
fn the_default_is_the_middle_and_shared() {
    let mut client = client();
    let id = client.open(Direction::Bidi).unwrap();
    let priority = client.priority(id).unwrap();
    assert_eq!((priority.urgency(), priority.is_incremental()), (3, true));
    assert_eq!(priority, Priority::default());
    assert_eq!(Priority::new(200), Priority::new(7));
    assert_eq!(in_order(1).incremental(), Priority::new(1));
}

#[test]
fn more_urgent_streams_are_sent_whole_before_others() {
    let mut client = client();
    let ids: Vec<_> = (0..8)
        .map(|urgency| open(&mut client, Priority::new(7 - urgency), 30_000))
        .collect();
    let sent: Vec<_> = ids.into_iter().rev().collect();
    assert_eq!(order(&packets(&mut client)), sent);
}

#[test]
fn a_stream_that_becomes_ready_passes_less_urgent_ones_at_once() {
    let mut client = client();
    let bulk = open(&mut client, Priority::new(5), 1_000_000);
    assert_eq!(order(&next(&mut client, 10)), [bulk]);
    let urgent = open(&mut client, Priority::new(1), 3000);
    assert_eq!(order(&next(&mut client, 5)), [urgent, bulk]);
    client.write(urgent, &[0; 10]).unwrap();
    assert_eq!(order(&next(&mut client, 1)), [urgent, bulk]);
}

#[test]
fn streams_that_are_not_incremental_are_sent_one_after_the_other() {
    let mut client = client();
    let ids = [(); 4].map(|()| open(&mut client, in_order(3), 50_000));
    assert_eq!(order(&packets(&mut client)), ids);
}

#[test]
fn one_endless_stream_in_order_does_not_starve_those_that_share() {
    let mut client = client();
    let endless = open(&mut client, in_order(3), 1_000_000);
    let later = open(&mut client, in_order(3), 10);
    let shared = [(); 2].map(|()| open(&mut client, Priority::new(3), 100_000));
    let mut bytes = BTreeMap::new();
    for (payload, _) in next(&mut client, 100) {
        for frame in frames(&payload) {
            if let Frame::Stream(frame) = frame {
                *bytes.entry(frame.id).or_insert(0) += frame.data.len();
            }
        }
    }
    assert!(!bytes.contains_key(&later));
    let parts = [endless, shared[0], shared[1]].map(|id| bytes[&id]);
    let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
    assert!(most - least <= QUANTUM as usize + PACKET, "{parts:?}");
}

#[test]
fn a_new_priority_moves_what_waits_already() {
    let mut client = client();
    let ids = [(); 3].map(|()| open(&mut client, Priority::new(3), 30_000));
    assert_eq!(order(&next(&mut client, 1)), [ids[0]]);
    client.set_priority(ids[2], Priority::new(2)).unwrap();
    assert_eq!(order(&next(&mut client, 1)), [ids[2]]);
    client.set_priority(ids[2], Priority::new(7)).unwrap();
    client.set_priority(ids[0], in_order(1)).unwrap();
    client.set_priority(ids[1], in_order(1)).unwrap();
    assert_eq!(order(&packets(&mut client)), ids);
    assert!(client.schedule.fresh.is_empty());
}

#[test]
fn a_new_priority_moves_what_was_lost() {
    let mut client = client();
    let ids = [(); 2].map(|()| open(&mut client, Priority::new(3), 3000));
    for (_, sent) in packets(&mut client) {
        client.on_lost(&sent);
    }
    client.set_priority(ids[1], Priority::new(2)).unwrap();
    assert_eq!(order(&packets(&mut client)), [ids[1], ids[0]]);
}

#[test]
fn a_priority_may_change_thousands_of_times_and_leaves_nothing_behind() {
    let mut client = client();
    let ids: Vec<_> = (0..20)
        .map(|_| open(&mut client, Priority::default(), 5000))
        .collect();
    for round in 0..5000_usize {
        let priority = Priority::new((round * 7 % 8) as u8);
        let priority = [priority, priority.non_incremental()][round / 8 % 2];
        client
            .set_priority(ids[round % ids.len()], priority)
            .unwrap();
        assert_eq!(client.schedule.fresh.len(), ids.len());
    }
    let total: usize = packets(&mut client)
        .iter()
        .flat_map(|(payload, _)| frames(payload))
        .map(|frame| match frame {
            Frame::Stream(frame) => frame.data.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(total, 20 * 5000);
    assert_eq!(client.schedule.fresh.capacity(), 0);
}

#[test]
fn streams_reset_while_they_wait_leave_the_others_in_order() {
    for priority in [Priority::new(3), in_order(3)] {
        let mut client = client();
        let ids = [(); 5].map(|()| open(&mut client, priority, 2000));
        for (_, sent) in next(&mut client, 2) {
            client.on_lost(&sent);
        }
        for id in [ids[0], ids[3]] {
            client.reset(id, 0).unwrap();
        }
        assert_eq!(
            order(&packets(&mut client)),
            [ids[1], ids[2], ids[4]],
            "{priority:?}"
        );
        assert!(client.schedule.free.is_empty() && client.schedule.fresh.is_empty());
    }
}

#[test]
fn what_was_lost_goes_before_what_is_new_and_not_more_urgent() {
    let mut client = client();
    let lost = open(&mut client, Priority::new(3), 2000);
    for (_, sent) in packets(&mut client) {
        client.on_lost(&sent);
    }
    let less = open(&mut client, Priority::new(4), 2000);
    let alike = open(&mut client, in_order(3), 2000);
    let more = open(&mut client, Priority::new(2), 2000);
    client.write(lost, &[0; 1000]).unwrap();
    let sent = packets(&mut client);
    let order = order(&sent);
    assert_eq!(order[..2], [more, lost]);
    assert_eq!(order.last(), Some(&less));
    assert!(order.contains(&alike));
}

#[test]
fn without_credit_of_the_connection_what_was_lost_and_fins_still_pass() {
    let (mut client, mut server) = pair_with(Limits {
        receive_window: 3000,
        ..WIDE
    });
    let urgent = open(&mut client, Priority::new(0), 1000);
    let other = open(&mut client, Priority::new(6), 2000);
    let sent = packets(&mut client);
    client.write(urgent, &[0; 1000]).unwrap();
    client.finish(other).unwrap();
    for (_, sent) in &sent {
        client.on_lost(sent);
    }
    for (payload, _) in packets(&mut client) {
        deliver(&payload, &mut server);
    }
    assert_eq!(server.totals().bytes_received, 3000);
    server.accept(Direction::Bidi);
    server.accept(Direction::Bidi);
    assert_eq!(read_all(&mut server, other).len(), 2000);
    let end = server.read(other, &mut [0; 1]);
    assert_eq!(end, Err(ReadError::Closed), "its FIN came and was read");
}

#[test]
fn an_urgent_stream_at_its_own_limit_holds_nobody_up() {
    let (mut client, _) = pair_with(Limits {
        stream_receive_window: 1500,
        ..WIDE
    });
    let blocked = open(&mut client, in_order(0), 5000);
    let other = open(&mut client, in_order(0), 1500);
    let least = open(&mut client, Priority::new(7), 1500);
    assert_eq!(order(&packets(&mut client)), [blocked, other, least]);
    assert!(!client.has_pending());
}

#[test]
fn priorities_of_streams_that_are_gone_are_refused() {
    let (mut client, mut server) = pair_with(WIDE);
    let id = open(&mut client, Priority::new(1), 10);
    let answer = client_bidi(0);
    client.finish(id).unwrap();
    super::exchange_all(&mut client, &mut server);
    assert_eq!(client.poll_event(), Some(StreamEvent::Acknowledged(id)));
    assert_eq!(client.set_priority(id, in_order(0)), Err(ClosedStream));
    assert_eq!(client.priority(id), None);
    assert_eq!(
        client.set_priority(StreamId(999), in_order(0)),
        Err(ClosedStream)
    );
    assert_eq!(
        server.set_priority(answer, in_order(0)),
        Ok(()),
        "its own half"
    );
}

/// State of a stream as a test expects it.
#[derive(Clone, Copy, Debug)]
struct Known {
    priority: Priority,
    written: u64,
    sent: u64,
    reset: bool,
}

impl Known {
    fn waits(&self) -> bool {
        !self.reset && self.sent < self.written
    }
}

/// Checks one packet: every byte is new and in order, and no stream was skipped.
fn check(payload: &[u8], known: &mut BTreeMap<StreamId, Known>) {
    let mut seen = Vec::new();
    for frame in frames(payload) {
        match frame {
            Frame::Stream(frame) => {
                let stream = known.get_mut(&frame.id).unwrap();
                assert_eq!(frame.offset, stream.sent, "each byte once, in order");
                assert!(!stream.reset);
                stream.sent += frame.data.len() as u64;
                seen.push((frame.id, stream.priority));
            }
            Frame::ResetStream(_) | Frame::Padding(_) => {}
            other => panic!("{other:?}"),
        }
    }
    for (id, priority) in seen {
        for (other, stream) in known.iter().filter(|(_, it)| it.waits()) {
            assert!(
                stream.priority.urgency() >= priority.urgency(),
                "{other:?} waits while {id:?} was sent: {stream:?}"
            );
            assert!(
                stream.priority != priority || priority.is_incremental() || *other >= id,
                "{other:?} comes before {id:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn whatever_is_written_moved_and_reset_the_order_holds(
        steps in prop::collection::vec((0_usize..12, 0_u8..8, any::<bool>(), 0_usize..6000), 1..150),
    ) {
        let mut client = client();
        let ids: Vec<_> = (0..12).map(|_| open(&mut client, Priority::default(), 0)).collect();
        let fresh = Known { priority: Priority::default(), written: 0, sent: 0, reset: false };
        let mut known: BTreeMap<_, _> = ids.iter().map(|id| (*id, fresh)).collect();
        for (at, urgency, kind, bytes) in steps {
            let stream = known.get_mut(&ids[at]).unwrap();
            if bytes % 50 == 7 {
                stream.reset = true;
                let _ = client.reset(ids[at], 0);
            } else if !stream.reset {
                stream.priority = [Priority::new(urgency), in_order(urgency)][usize::from(kind)];
                client.set_priority(ids[at], stream.priority).unwrap();
                client.write(ids[at], &vec![0; bytes]).unwrap();
                stream.written += bytes as u64;
            }
            for (payload, _) in next(&mut client, bytes % 4) {
                check(&payload, &mut known);
            }
        }
        for (payload, _) in packets(&mut client) {
            check(&payload, &mut known);
        }
        prop_assert!(known.values().all(|stream| !stream.waits()), "{known:?}");
    }
}
