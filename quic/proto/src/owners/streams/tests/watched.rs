//! Sending parts whose delivery the application follows, or limits in time.

use super::{
    Direction, StreamEvent, deliver, events, exchange_all, packet, packets, pair, send_all,
};
use crate::{
    owners::streams::{ClosedStream, RecvEnd, WriteError},
    wire::frame::Owner as _,
};

/// What the application asks for, and the events of a stream that it watches.
#[test]
fn the_delivery_of_a_stream_can_be_followed() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[7; 3000]).unwrap();
    let [(first, sent), (second, later), (third, last)] = &packets(&mut client)[..] else {
        panic!("3000 bytes are three packets");
    };
    let now = client.delivery(id).unwrap();
    let counts = (now.written, now.sent, now.acknowledged, now.lost);
    assert_eq!(counts, (3000, 3000, 0, 0));
    deliver(first, &mut server);
    deliver(third, &mut server);
    client.on_acked(sent);
    assert_eq!(events(&mut client), [], "nobody watches");
    client.watch_send(id);
    client.on_acked(last);
    client.on_lost(later);
    let begun = client.delivery(id).unwrap();
    assert!(begun.acknowledged > 1000 && begun.lost > 1000, "{begun:?}");
    deliver(second, &mut server);
    client.on_acked(later);
    let delivered = |acknowledged| StreamEvent::Delivered { id, acknowledged };
    assert_eq!(events(&mut client), [delivered(3000)], "the newest counts");
    // A watched stream tells its end although nobody has a handle.
    client.finish(id).unwrap();
    client.forget_send(id, 0);
    exchange_all(&mut client, &mut server);
    let end = [delivered(u64::MAX), StreamEvent::Acknowledged(id)];
    assert_eq!(events(&mut client), end);
    assert_eq!(client.delivery(id), None);
}

/// Only what is declared lost counts, each time.
#[test]
fn what_a_probe_repeats_is_not_lost() {
    let (mut client, _) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[7; 500]).unwrap();
    let lost = |client: &super::Streams| client.delivery(id).unwrap().lost;
    let (_, sent) = packet(&mut client).unwrap();
    client.repeat(&sent);
    let (_, probe) = packet(&mut client).unwrap();
    assert_eq!(client.totals().bytes_resent, 500);
    assert_eq!(lost(&client), 0);
    client.on_lost(&sent);
    client.on_lost(&probe);
    assert_eq!(lost(&client), 1000);
    client.on_retry();
    assert_eq!(lost(&client), 0);
    assert!(client.has_pending(), "it is sent again all the same");
}

#[test]
fn a_watched_stream_without_a_handle_tells_that_it_was_stopped() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[7; 3000]).unwrap();
    client.finish(id).unwrap();
    client.watch_send(id);
    client.forget_send(id, 0);
    // Some of it is still on its way when the server stops it.
    deliver(&packets(&mut client)[0].0, &mut server);
    server.stop(id, 3).unwrap();
    send_all(&mut server, &mut client);
    let stopped = StreamEvent::Stopped { id, code: 3 };
    assert_eq!(events(&mut client), [stopped]);
    assert_eq!(client.delivery(id), None);
    client.unwatch_send(id);
    exchange_all(&mut client, &mut server);
    assert_eq!(events(&mut client), [], "nobody watches any more");
}

#[test]
fn a_stream_that_is_not_delivered_by_its_time_is_reset() {
    let (mut client, mut server) = pair();
    let now = std::time::Instant::now();
    let at = |ms| Some(now + std::time::Duration::from_millis(ms));
    let ids: Vec<_> = std::iter::from_fn(|| client.open(Direction::Uni)).collect();
    let [late, done, taken_back, moved, dropped, reset, ..] = ids[..] else {
        panic!("{ids:?}");
    };
    for id in [late, done, taken_back, moved, dropped, reset] {
        client.write(id, &[7; 10]).unwrap();
        client.expire_at(id, at(20), 9).unwrap();
    }
    client.finish(done).unwrap();
    client.expire_at(taken_back, None, 0).unwrap();
    client.expire_at(moved, at(10), 8).unwrap();
    client.finish(dropped).unwrap();
    exchange_all(&mut client, &mut server);
    events(&mut client);
    client.reset(reset, 5).unwrap();
    client.forget_send(dropped, 0);
    assert_eq!(client.next_timeout(), at(10));
    client.on_timeout(now);
    assert_eq!(events(&mut client), [], "nothing is due");
    client.on_timeout(at(10).unwrap());
    assert_eq!(events(&mut client), [StreamEvent::Expired(moved)]);
    assert_eq!(client.next_timeout(), at(20));
    client.on_timeout(at(20).unwrap());
    assert_eq!(events(&mut client), [StreamEvent::Expired(late)]);
    assert_eq!(client.write(late, b"x"), Err(WriteError::Closed));
    assert_eq!((client.next_timeout(), client.deadlines.len()), (None, 0));
    exchange_all(&mut client, &mut server);
    assert_eq!(server.recv_end(late), Some(RecvEnd::Reset(9)));
    assert_eq!(server.recv_end(moved), Some(RecvEnd::Reset(8)));
    assert_eq!(server.recv_end(reset), Some(RecvEnd::Reset(5)));
    assert_eq!(server.recv_end(done), Some(RecvEnd::Complete));
    assert_eq!(server.recv_end(taken_back), Some(RecvEnd::Open));
    assert_eq!(client.expire_at(done, at(30), 9), Err(ClosedStream));
}

/// A stream that the peer stopped keeps its end until the application knows it.
#[test]
fn a_stream_that_was_stopped_does_not_expire() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[7; 10]).unwrap();
    let at = std::time::Instant::now();
    client.expire_at(id, Some(at), 9).unwrap();
    send_all(&mut client, &mut server);
    server.stop(id, 3).unwrap();
    exchange_all(&mut client, &mut server);
    assert_eq!((client.next_timeout(), client.deadlines.len()), (None, 0));
    client.on_timeout(at);
    assert_eq!(client.write(id, b"x"), Err(WriteError::Stopped(3)));
}
