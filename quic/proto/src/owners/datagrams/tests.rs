use super::*;
use crate::wire::{error::Code, limits};

/// Space for frames in a packet of 1200 bytes.
const ROOM: usize = 1171;

fn ready(config: DatagramConfig) -> Datagrams {
    let mut datagrams = Datagrams::new(config);
    datagrams.set_peer_limit(65_535);
    datagrams
}

fn timing() -> Timing {
    Timing {
        now: std::time::Instant::now(),
        rtt: std::time::Duration::ZERO,
    }
}

fn carried(count: u16) -> Sent {
    Sent { count, slot: 0 }
}

fn bytes(len: usize, fill: u8) -> Bytes {
    vec![fill; len].into()
}

/// Returns the payload of one packet with this much room, and its number of datagrams.
fn packet(datagrams: &mut Datagrams, room: usize) -> (Vec<u8>, Sent) {
    let mut buffer = vec![0; room];
    let mut out = FrameWriter::new(&mut buffer);
    let mut sent = Sent::default();
    datagrams.drop_larger(room);
    datagrams.write_first(Rival::Idle, &mut out, &mut sent);
    datagrams.write_frames(timing(), &mut out, &mut sent);
    let len = out.len();
    buffer.truncate(len);
    (buffer, sent)
}

fn receive(datagrams: &mut Datagrams, len: usize, fill: u8) -> Result<(), Violation> {
    let data = &bytes(len, fill);
    datagrams.on_frame(&Datagram { data })
}

/// Proves: rfc9221 3 datagrams-need-the-parameter
#[test]
fn nothing_may_be_sent_to_a_peer_that_takes_none() {
    let mut datagrams = Datagrams::new(DatagramConfig::new());
    assert_eq!(datagrams.max_size(ROOM), None);
    assert_eq!(
        datagrams.send(Bytes::new(), PLAIN, ROOM),
        Err(SendError::Unsupported)
    );
    assert!(!datagrams.has_pending());
    // A limit of one byte allows only the type: no frame with a length fits.
    datagrams.set_peer_limit(1);
    assert_eq!(datagrams.max_size(ROOM), None);
    datagrams.set_peer_limit(2);
    assert_eq!(datagrams.max_size(ROOM), Some(0));
}

/// Proves: rfc9221 3 datagrams-fit-the-limit
#[test]
fn a_frame_with_its_length_stays_within_the_peers_limit() {
    for limit in [2, 3, 63, 64, 65, 66, 67, 100, 1000, 16_383, 16_384, 16_390] {
        let mut datagrams = ready(DatagramConfig::new());
        datagrams.set_peer_limit(limit);
        let most = datagrams.max_size(60_000).unwrap();
        assert_eq!(datagrams.send(bytes(most, 1), PLAIN, 60_000), Ok(()));
        let larger = bytes(most + 1, 1);
        assert_eq!(
            datagrams.send(larger, PLAIN, 60_000),
            Err(SendError::TooLarge(most))
        );
        let (packet, _) = packet(&mut datagrams, 60_000);
        assert!(packet.len() as u64 <= limit, "{} of {limit}", packet.len());
    }
}

#[test]
fn the_largest_fills_a_packet() {
    let mut datagrams = ready(DatagramConfig::new());
    assert_eq!(datagrams.max_size(ROOM), Some(ROOM - 1));
    datagrams.send(bytes(ROOM - 1, 7), PLAIN, ROOM).unwrap();
    let (frames, sent) = packet(&mut datagrams, ROOM);
    assert_eq!((frames.len(), frames[0], sent), (ROOM, 0x30, carried(1)));
}

#[test]
fn they_leave_in_order_and_as_many_as_fit() {
    let mut datagrams = ready(DatagramConfig::new());
    for fill in 0..5 {
        datagrams.send(bytes(3, fill), PLAIN, ROOM).unwrap();
    }
    let (frames, sent) = packet(&mut datagrams, 17);
    assert_eq!(sent, carried(3));
    assert_eq!(
        frames,
        [0x31, 3, 0, 0, 0, 0x31, 3, 1, 1, 1, 0x31, 3, 2, 2, 2]
    );
    let (_, sent) = packet(&mut datagrams, 17);
    assert_eq!(sent, carried(2));
    assert!(!datagrams.has_pending());
    assert_eq!(datagrams.stats().sent, 5);
}

#[test]
fn a_full_queue_drops_the_oldest() {
    let config = DatagramConfig::new().send_queue(3 * (100 + limits::DATAGRAM_OVERHEAD));
    let mut datagrams = ready(config);
    for fill in 0..5 {
        datagrams.send(bytes(100, fill), PLAIN, ROOM).unwrap();
    }
    assert_eq!(datagrams.stats().dropped_unsent, 2);
    let (frames, sent) = packet(&mut datagrams, ROOM);
    // Lengths above 63 take two bytes.
    assert_eq!((sent, frames[3]), (carried(3), 2));
}

#[test]
fn a_full_queue_refuses_if_it_is_to() {
    let config = DatagramConfig::new()
        .send_queue(2 * (100 + limits::DATAGRAM_OVERHEAD))
        .when_full(WhenFull::Refuse);
    let mut datagrams = ready(config);
    datagrams.send(bytes(100, 0), PLAIN, ROOM).unwrap();
    datagrams.send(bytes(100, 1), PLAIN, ROOM).unwrap();
    assert_eq!(
        datagrams.send(bytes(0, 2), PLAIN, ROOM),
        Err(SendError::Full)
    );
    assert_eq!(datagrams.stats().dropped_unsent, 0);
    packet(&mut datagrams, ROOM);
    assert_eq!(datagrams.poll_event(), None, "nobody waits");
    assert_eq!(datagrams.send(bytes(100, 2), PLAIN, ROOM), Ok(()));
}

#[test]
fn who_waits_for_room_is_told_once() {
    let mut datagrams = ready(DatagramConfig::new().send_queue(200));
    assert_eq!(
        datagrams.send_within(&bytes(1000, 0), ROOM),
        Ok(()),
        "one always fits"
    );
    assert_eq!(
        datagrams.send_within(&bytes(1, 1), ROOM),
        Err(SendError::Full)
    );
    assert_eq!(datagrams.poll_event(), None);
    packet(&mut datagrams, ROOM);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Writable));
    assert_eq!(datagrams.poll_event(), None);
    assert_eq!(datagrams.send_within(&bytes(1, 1), ROOM), Ok(()));
}

/// Datagrams that wait past their deadline are dropped wherever they are in the queue, and make room.
#[test]
fn what_is_not_sent_by_its_deadline_is_dropped() {
    let (start, ms) = (timing().now, std::time::Duration::from_millis);
    let mut datagrams = ready(DatagramConfig::new().send_queue(460));
    for (fill, age) in [(0, None), (1, Some(20)), (2, None), (3, Some(10))] {
        let options = age.map_or(PLAIN, |age| PLAIN.expires(start + ms(age)));
        datagrams.send(bytes(1, fill), options, ROOM).unwrap();
    }
    let full = datagrams.send_within(&bytes(1, 4), ROOM);
    assert_eq!(full, Err(SendError::Full));
    assert_eq!(datagrams.next_timeout(), Some(start + ms(10)));
    datagrams.drop_expired(start + ms(9));
    assert_eq!(
        (datagrams.stats().expired, datagrams.poll_event()),
        (0, None)
    );
    datagrams.drop_expired(start + ms(10));
    let writable = Some(DatagramEvent::Writable);
    assert_eq!(
        (datagrams.stats().expired, datagrams.poll_event()),
        (1, writable)
    );
    assert_eq!(datagrams.next_timeout(), Some(start + ms(20)));
    datagrams.drop_expired(start + ms(20));
    assert_eq!(
        (datagrams.stats().expired, datagrams.next_timeout()),
        (2, None)
    );
    let (frames, _) = packet(&mut datagrams, ROOM);
    assert_eq!(frames, [0x31, 1, 0, 0x31, 1, 2]);
    assert_eq!(datagrams.held(), 0);
    // One that was sent has no deadline any more, and what counts for it is taken back.
    datagrams
        .send(bytes(1, 5), PLAIN.expires(start), ROOM)
        .unwrap();
    packet(&mut datagrams, ROOM);
    assert_eq!((datagrams.next_timeout(), datagrams.held()), (None, 0));
    assert_eq!(datagrams.stats().expired, 2);
}

#[test]
fn what_the_path_does_not_carry_any_more_is_dropped() {
    let mut datagrams = ready(DatagramConfig::new());
    datagrams.send(bytes(1400, 1), PLAIN, 1500).unwrap();
    datagrams.send(bytes(10, 2), PLAIN, 1500).unwrap();
    let (frames, sent) = packet(&mut datagrams, ROOM);
    assert_eq!((frames.len(), sent), (12, carried(1)));
    assert_eq!(datagrams.stats().dropped_unsent, 1);
}

#[test]
fn what_comes_is_read_in_order_and_told_once() {
    let mut datagrams = ready(DatagramConfig::new());
    receive(&mut datagrams, 2, 1).unwrap();
    receive(&mut datagrams, 0, 2).unwrap();
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Readable));
    assert_eq!(datagrams.poll_event(), None);
    assert_eq!(datagrams.recv().as_deref(), Some(&[1, 1][..]));
    assert_eq!(datagrams.recv().as_deref(), Some(&[][..]));
    assert_eq!(datagrams.recv(), None);
    receive(&mut datagrams, 1, 3).unwrap();
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Readable));
}

/// Proves: security 9 datagram-floods-are-bounded
#[test]
fn a_flood_that_nobody_reads_is_bounded() {
    let bound = 16 * 1024;
    for len in [0, 1, 1000] {
        let mut datagrams = ready(DatagramConfig::new().receive_buffer(bound));
        for _ in 0..10_000 {
            receive(&mut datagrams, len, 1).unwrap();
        }
        let kept = std::iter::from_fn(|| datagrams.recv()).count();
        assert_eq!(kept, bound / (len + limits::DATAGRAM_OVERHEAD));
        let stats = datagrams.stats();
        assert_eq!(
            (stats.received, stats.dropped_unread),
            (10_000, 10_000 - kept as u64)
        );
    }
}

/// Proves: rfc9221 3 unannounced-datagrams-close
#[test]
fn who_announced_none_takes_none() {
    let mut datagrams = ready(DatagramConfig::new().receive_buffer(0));
    let error = receive(&mut datagrams, 0, 0).unwrap_err();
    assert_eq!(error.code(), Code::PROTOCOL_VIOLATION);
}

/// Proves: rfc9221 3 unannounced-datagrams-close
#[test]
fn a_frame_above_our_limit_is_refused() {
    let mut datagrams = ready(DatagramConfig::new());
    assert_eq!(receive(&mut datagrams, 65_534, 0), Ok(()));
    let error = receive(&mut datagrams, 65_535, 0).unwrap_err();
    assert_eq!(error.code(), Code::PROTOCOL_VIOLATION);
}

/// Fills packets for which both have data: streams always fill the space left for them.
fn shared(datagrams: &mut Datagrams, packets: usize, len: usize) -> [usize; 2] {
    let mut totals = [0; 2];
    for _ in 0..packets {
        while datagrams.send_within(&bytes(len, 1), ROOM).is_ok() {}
        let mut buffer = [0; ROOM];
        let mut out = FrameWriter::new(&mut buffer);
        let mut sent = Sent::default();
        datagrams.write_first(Rival::Waiting, &mut out, &mut sent);
        totals[0] += out.len();
        let rest = out.remaining();
        out.pad(rest);
        datagrams.on_streams_sent(rest);
        totals[1] += rest;
        datagrams.write_frames(timing(), &mut out, &mut sent);
    }
    totals
}

#[test]
fn streams_and_datagrams_share_alike_whatever_the_size() {
    for len in [0, 10, 100, 500, 900, ROOM - 1] {
        let mut datagrams = ready(DatagramConfig::new());
        let [ours, theirs] = shared(&mut datagrams, 1000, len);
        let apart = ours.abs_diff(theirs);
        assert!(apart <= 2 * ROOM, "{len}: {ours} and {theirs}");
    }
}

#[test]
fn who_had_everything_alone_owes_nothing_later() {
    let mut datagrams = ready(DatagramConfig::new());
    for _ in 0..1000 {
        datagrams.send(bytes(1000, 1), PLAIN, ROOM).unwrap();
        packet(&mut datagrams, ROOM);
    }
    let [ours, theirs] = shared(&mut datagrams, 100, 1000);
    assert!(ours.abs_diff(theirs) <= 2 * ROOM, "{ours} and {theirs}");
}

#[test]
fn one_that_does_not_fit_beside_an_ack_frame_goes_next_without() {
    let mut datagrams = ready(DatagramConfig::new());
    datagrams.send(bytes(ROOM - 1, 7), PLAIN, ROOM).unwrap();
    let mut buffer = [0; ROOM];
    let mut out = FrameWriter::new(&mut buffer);
    out.ack(0, std::iter::once(crate::testing::pns(0..=0)), None)
        .unwrap();
    let mut sent = Sent::default();
    datagrams.write_first(Rival::Waiting, &mut out, &mut sent);
    assert!(sent.is_empty());
    assert!(datagrams.takes_whole_packet());
    assert!(!datagrams.takes_whole_packet(), "once");
}

/// Proves: rfc9221 5.2 datagrams-elicit-acks
#[test]
fn what_became_of_them_is_counted_and_nothing_is_sent_again() {
    let mut datagrams = ready(DatagramConfig::new());
    for _ in 0..4 {
        datagrams
            .send(bytes(ROOM / 2 - 10, 7), PLAIN, ROOM)
            .unwrap();
    }
    let (_, first) = packet(&mut datagrams, ROOM);
    let (_, second) = packet(&mut datagrams, ROOM);
    datagrams.on_acked(&first);
    datagrams.on_lost(&second);
    assert!(!datagrams.has_pending());
    let stats = datagrams.stats();
    assert_eq!((stats.sent, stats.acknowledged, stats.lost), (4, 2, 2));
}

#[test]
fn after_the_end_nothing_is_sent_and_what_came_can_be_read() {
    let mut datagrams = ready(DatagramConfig::new());
    datagrams.send(bytes(1, 1), PLAIN, ROOM).unwrap();
    receive(&mut datagrams, 1, 2).unwrap();
    datagrams.on_closed();
    assert!(!datagrams.has_pending());
    assert_eq!(datagrams.stats().dropped_unsent, 1);
    assert!(datagrams.recv().is_some());
}

/// Returns the fates to report.
fn fates(datagrams: &mut Datagrams) -> Vec<(u64, Fate)> {
    let events = std::iter::from_fn(|| datagrams.poll_event());
    let fate = |event| match event {
        DatagramEvent::Fate { tag, fate } => Some((tag, fate)),
        _ => None,
    };
    events.filter_map(fate).collect()
}

#[test]
fn the_fate_of_each_is_told_to_who_asks() {
    let start = timing().now;
    let mut datagrams = ready(DatagramConfig::new());
    let tagged = |tag| PLAIN.tag(tag);
    for tag in 0..4 {
        let data = bytes(ROOM / 2 - 10, 7);
        datagrams.send(data, tagged(tag), ROOM).unwrap();
    }
    datagrams.send(bytes(9, 7), PLAIN, ROOM).unwrap();
    let (_, first) = packet(&mut datagrams, ROOM);
    let (_, second) = packet(&mut datagrams, ROOM);
    let (_, untagged) = packet(&mut datagrams, ROOM);
    assert_eq!(fates(&mut datagrams), []);
    datagrams.on_lost(&second);
    datagrams.on_acked(&first);
    datagrams.on_acked(&untagged);
    let known = [(2, Fate::Lost), (3, Fate::Lost)];
    let known = [known, [(0, Fate::Acknowledged), (1, Fate::Acknowledged)]].concat();
    assert_eq!(fates(&mut datagrams), known);

    let late = tagged(5).expires(start);
    datagrams.send(bytes(1, 7), late, ROOM).unwrap();
    datagrams.send(bytes(900, 7), tagged(6), ROOM).unwrap();
    datagrams.drop_expired(start);
    datagrams.drop_larger(800);
    let unsent = [(5, Fate::Expired), (6, Fate::Dropped)];
    assert_eq!(fates(&mut datagrams), unsent);

    // 0-RTT data that the server refused.
    datagrams.send(bytes(1, 7), tagged(8), ROOM).unwrap();
    packet(&mut datagrams, ROOM);
    datagrams.send(bytes(1, 7), tagged(9), ROOM).unwrap();
    datagrams.on_early_data_rejected();
    let refused = [(8, Fate::Lost), (9, Fate::Dropped)];
    assert_eq!(fates(&mut datagrams), refused);
    assert_eq!(datagrams.fates.open(), 0);
}

/// Proves: security 9 datagram-floods-are-bounded
#[test]
fn as_many_fates_are_awaited_as_are_allowed() {
    let mut datagrams = ready(DatagramConfig::new().send_queue(usize::MAX));
    for tag in 0..limits::DATAGRAM_FATES as u64 {
        datagrams.send(bytes(0, 0), PLAIN.tag(tag), ROOM).unwrap();
    }
    let full = datagrams.send(bytes(0, 0), PLAIN.tag(1 << 40), ROOM);
    assert_eq!(full, Err(SendError::Full));
    assert_eq!(datagrams.send(bytes(0, 0), PLAIN, ROOM), Ok(()));
    let (_, sent) = packet(&mut datagrams, ROOM);
    datagrams.on_acked(&sent);
    assert_eq!(fates(&mut datagrams).len(), usize::from(sent.count));
    let room = datagrams.send(bytes(0, 0), PLAIN.tag(1 << 40), ROOM);
    assert_eq!(room, Ok(()));
}

/// Nothing is dropped for a datagram that gets no room anyway.
#[test]
fn what_is_refused_takes_no_place() {
    let cost = 100 + limits::DATAGRAM_OVERHEAD + limits::DATAGRAM_OPTIONS;
    let mut datagrams = ready(DatagramConfig::new().send_queue(2 * cost));
    let send = |datagrams: &mut Datagrams, len, urgency: u8| {
        let options = PLAIN.tag(urgency.into()).urgency(urgency);
        datagrams.send(bytes(len, urgency), options, ROOM)
    };
    send(&mut datagrams, 100, 1).unwrap();
    send(&mut datagrams, 100, 5).unwrap();
    assert_eq!(send(&mut datagrams, 101, 3), Err(SendError::Full));
    assert_eq!(send(&mut datagrams, 100, 6), Err(SendError::Full));
    assert_eq!(fates(&mut datagrams), []);
    assert_eq!(datagrams.stats().dropped_unsent, 0);
    assert_eq!(send(&mut datagrams, 100, 3), Ok(()));
    assert_eq!(send(&mut datagrams, 101, 1), Ok(()), "one always fits");
    let dropped = [5, 3, 1].map(|tag| (tag, Fate::Dropped));
    assert_eq!(fates(&mut datagrams), dropped);
}

/// All that expire at once cost one pass, and the others stay in order.
#[test]
fn many_deadlines_that_come_at_once_leave_the_rest_as_it_was() {
    let (start, late) = (timing().now, std::time::Duration::from_millis(9));
    let mut datagrams = ready(DatagramConfig::new().send_queue(usize::MAX));
    let mut left = Vec::new();
    for number in 0..4000_u64 {
        let urgency = (number % 8) as u8;
        let options = match number % 3 {
            0 if urgency == 3 => PLAIN,
            0 => PLAIN.urgency(urgency),
            1 => PLAIN.urgency(urgency).expires(start + late),
            _ => PLAIN.urgency(urgency).expires(start).tag(number),
        };
        let data = number.to_be_bytes();
        datagrams.send(data.to_vec().into(), options, ROOM).unwrap();
        if number % 3 != 2 {
            left.push((urgency, data));
        }
    }
    left.sort_by_key(|(urgency, _)| *urgency);
    datagrams.drop_expired(start);
    assert_eq!(fates(&mut datagrams).len(), 4000 - left.len());
    assert_eq!(datagrams.next_timeout(), Some(start + late));
    let queued = std::iter::from_fn(|| datagrams.outbox.pop()).map(|taken| taken.data);
    assert!(queued.eq(left.iter().map(|(_, data)| &data[..])));
    assert_eq!((datagrams.held(), datagrams.next_timeout()), (0, None));
}

/// Options take memory only while datagrams have some.
#[test]
fn an_empty_queue_forgets_its_options() {
    let mut datagrams = ready(DatagramConfig::new());
    let send = |datagrams: &mut Datagrams, fill, options| {
        datagrams.send(bytes(1, fill), options, ROOM).unwrap();
    };
    for fill in 0..3 {
        send(&mut datagrams, fill, PLAIN.urgency(6));
    }
    packet(&mut datagrams, ROOM);
    datagrams.release_memory();
    assert!(datagrams.outbox.is_bare());
    for (fill, urgency) in [(7, 3), (8, 3), (9, 0)] {
        send(&mut datagrams, fill, PLAIN.urgency(urgency));
    }
    let (frames, _) = packet(&mut datagrams, ROOM);
    assert_eq!(frames, [0x31, 1, 9, 0x31, 1, 7, 0x31, 1, 8]);
}

#[test]
fn the_urgent_go_first_and_the_least_urgent_make_room() {
    let start = timing().now;
    let cost = 1 + limits::DATAGRAM_OVERHEAD + limits::DATAGRAM_OPTIONS;
    let mut datagrams = ready(DatagramConfig::new().send_queue(5 * cost));
    let send = |datagrams: &mut Datagrams, fill: u8, urgency| {
        // Each has a tag, so that all cost the same.
        let options = PLAIN.tag(fill.into()).urgency(urgency);
        datagrams.send(bytes(1, fill), options, ROOM)
    };
    for (fill, urgency) in [(0, 3), (1, 5), (2, 1), (3, 3), (4, 1)] {
        send(&mut datagrams, fill, urgency).unwrap();
    }
    assert_eq!(send(&mut datagrams, 9, 6), Err(SendError::Full));
    // The oldest of the least urgent: first the one of urgency 5, then the one of 3.
    for (fill, urgency) in [(5, 3), (6, 0)] {
        send(&mut datagrams, fill, urgency).unwrap();
    }
    let dropped = [(1, Fate::Dropped), (0, Fate::Dropped)];
    assert_eq!(fates(&mut datagrams), dropped);
    // One in the middle expires: the others keep their places and tags.
    let late = PLAIN.tag(7).urgency(2).expires(start);
    let mut roomy = ready(DatagramConfig::new());
    for (fill, urgency) in [(3, 3), (4, 1), (5, 3)] {
        send(&mut roomy, fill, urgency).unwrap();
    }
    roomy.send(bytes(1, 7), late, ROOM).unwrap();
    roomy.send(bytes(1, 8), PLAIN, ROOM).unwrap();
    roomy.drop_expired(start);
    let (frames, sent) = packet(&mut roomy, ROOM);
    assert_eq!(frames, [0x31, 1, 4, 0x31, 1, 3, 0x31, 1, 5, 0x31, 1, 8]);
    roomy.on_acked(&sent);
    let known: Vec<_> = fates(&mut roomy).into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(known, [7, 4, 3, 5]);
    assert_eq!(roomy.held(), 0);
}
