use hybriq_tls::Side;

use super::{
    Direction, LIMITS, Limits, StreamEvent, StreamId, client_bidi, client_uni, code, events,
    exchange_all, frames, packet, packets, pair, pair_with, receive, send_all, stream,
};
use crate::wire::{
    error::Code,
    frame::{
        Frame, MaxStreamData, MaxStreams, ResetStream, StopSending, StreamDataBlocked,
        StreamsBlocked,
    },
};

fn max_streams(max: u64) -> Frame<'static> {
    Frame::MaxStreams(MaxStreams {
        direction: Direction::Bidi,
        max,
    })
}

/// The frames that a sender of data sends.
fn sender_frames(id: StreamId) -> [Frame<'static>; 3] {
    [
        stream(id, 0, &[], false),
        Frame::ResetStream(ResetStream {
            id,
            code: 0,
            final_size: 0,
        }),
        Frame::StreamDataBlocked(StreamDataBlocked { id, limit: 0 }),
    ]
}

/// The frames that a receiver of data sends.
fn receiver_frames(id: StreamId) -> [Frame<'static>; 2] {
    [
        Frame::StopSending(StopSending { id, code: 0 }),
        Frame::MaxStreamData(MaxStreamData { id, max: 0 }),
    ]
}

/// Proves: rfc9000 2.1 stream-ids-are-not-reused
#[test]
fn streams_are_numbered_in_the_order_they_are_opened() {
    let (mut client, mut server) = pair();
    assert_eq!(
        [(); 2].map(|()| client.open(Direction::Bidi).unwrap().0),
        [0, 4]
    );
    assert_eq!(
        [(); 2].map(|()| client.open(Direction::Uni).unwrap().0),
        [2, 6]
    );
    assert_eq!(
        [(); 2].map(|()| server.open(Direction::Bidi).unwrap().0),
        [1, 5]
    );
    assert_eq!(
        [(); 2].map(|()| server.open(Direction::Uni).unwrap().0),
        [3, 7]
    );
}

/// Proves: rfc9000 3.2 lower-streams-are-created-too
#[test]
fn a_frame_opens_all_lower_streams_and_costs_one() {
    let (_, mut server) = pair();
    receive(&mut server, &stream(client_bidi(7), 0, b"hello", false)).unwrap();
    assert_eq!(
        events(&mut server),
        [StreamEvent::Opened(Direction::Bidi)],
        "told once"
    );
    assert_eq!((server.recvs.len(), server.sends.len()), (1, 1));
    for index in 0..=7 {
        assert_eq!(server.accept(Direction::Bidi), Some(client_bidi(index)));
    }
    assert_eq!(server.accept(Direction::Bidi), None);
    assert_eq!(server.read(client_bidi(7), &mut [0; 10]), Ok(5));
    assert_eq!(server.totals().opened_by_peer, 8);
}

#[test]
fn every_frame_about_a_bidirectional_stream_opens_it() {
    for frame in sender_frames(client_bidi(2))
        .into_iter()
        .chain(receiver_frames(client_bidi(2)))
    {
        let (_, mut server) = pair();
        receive(&mut server, &frame).unwrap();
        assert_eq!(
            events(&mut server).first(),
            Some(&StreamEvent::Opened(Direction::Bidi))
        );
        let accepted = std::iter::from_fn(|| server.accept(Direction::Bidi)).count();
        assert_eq!(accepted, 3, "by {frame:?}");
    }
}

#[test]
fn an_application_is_told_again_only_after_it_found_nothing() {
    let (_, mut server) = pair();
    let mut open = |index, accepts: usize| {
        receive(&mut server, &stream(client_uni(index), 0, &[], false)).unwrap();
        let told = events(&mut server).len();
        (0..accepts).for_each(|_| _ = server.accept(Direction::Uni));
        told
    };
    assert_eq!(open(0, 0), 1);
    assert_eq!(open(1, 2), 0);
    assert_eq!(open(2, 2), 0, "it has not looked yet");
    assert_eq!(open(3, 1), 1);
}

/// Proves: rfc9000 4.6 stream-beyond-limit-closes
#[test]
fn a_stream_beyond_the_limit_is_an_error() {
    for direction in [Direction::Bidi, Direction::Uni] {
        let (_, mut server) = pair();
        let id = |index| StreamId::new(Side::Client, direction, index);
        let own = StreamId::new(Side::Server, direction, 0);
        let allowed = [id(0), id(9), id(10), own].map(|id| server.may_peer_open(id));
        assert_eq!(allowed, [true, true, false, false]);
        assert_eq!(
            code(receive(&mut server, &stream(id(9), 0, &[], false))),
            None
        );
        for frame in sender_frames(id(10)) {
            assert_eq!(
                code(receive(&mut server, &frame)),
                Some(Code::STREAM_LIMIT_ERROR)
            );
        }
        let last = stream(id((1 << 60) - 1), 0, &[], false);
        assert_eq!(
            code(receive(&mut server, &last)),
            Some(Code::STREAM_LIMIT_ERROR)
        );
    }
}

/// Proves: rfc9000 19.5 stop-of-receive-only-closes
/// Proves: rfc9000 19.8 stream-for-wrong-stream-closes
/// Proves: rfc9000 19.10 max-stream-data-for-wrong-stream-closes
#[test]
fn frames_for_a_stream_that_we_did_not_open_are_an_error() {
    let (mut client, _) = pair();
    let id = client_bidi(0);
    for frame in sender_frames(id).into_iter().chain(receiver_frames(id)) {
        assert_eq!(
            code(receive(&mut client, &frame)),
            Some(Code::STREAM_STATE_ERROR),
            "{frame:?}"
        );
    }
    assert_eq!(client.open(Direction::Bidi), Some(id));
    assert_eq!(code(receive(&mut client, &stream(id, 0, &[], false))), None);
}

/// Proves: rfc9000 19.4 reset-of-send-only-closes
/// Proves: rfc9000 19.5 stop-of-receive-only-closes
/// Proves: rfc9000 19.8 stream-for-wrong-stream-closes
/// Proves: rfc9000 19.10 max-stream-data-for-wrong-stream-closes
/// Proves: rfc9000 19.13 stream-data-blocked-for-wrong-stream-closes
#[test]
fn frames_in_the_wrong_direction_are_an_error() {
    let (mut client, mut server) = pair();
    assert_eq!(client.open(Direction::Uni), Some(client_uni(0)));
    for frame in sender_frames(client_uni(0)) {
        assert_eq!(
            code(receive(&mut client, &frame)),
            Some(Code::STREAM_STATE_ERROR),
            "{frame:?}"
        );
    }
    receive(&mut server, &stream(client_uni(0), 0, &[], false)).unwrap();
    for frame in receiver_frames(client_uni(0)) {
        assert_eq!(
            code(receive(&mut server, &frame)),
            Some(Code::STREAM_STATE_ERROR),
            "{frame:?}"
        );
    }
}

/// Proves: rfc9000 3.3 nothing-in-terminal-states
#[test]
fn frames_for_a_closed_stream_are_ignored() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Bidi).unwrap();
    client.finish(id).unwrap();
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Bidi);
    assert_eq!(server.read(id, &mut [0; 1]), Ok(0));
    server.finish(id).unwrap();
    exchange_all(&mut client, &mut server);
    assert_eq!(client.read(id, &mut [0; 1]), Ok(0));
    assert_eq!((server.sends.len(), server.recvs.len()), (0, 0));
    events(&mut server);
    events(&mut client);
    for frame in sender_frames(id).into_iter().chain(receiver_frames(id)) {
        assert_eq!(code(receive(&mut server, &frame)), None, "{frame:?}");
        assert_eq!(code(receive(&mut client, &frame)), None, "{frame:?}");
    }
    assert_eq!(
        (events(&mut server), server.recvs.len(), server.sends.len()),
        (vec![], 0, 0)
    );
    assert!(!server.has_pending() && !client.has_pending());
}

/// Proves: rfc9000 4.6 opener-obeys-the-limit
#[test]
fn opening_at_the_limit_is_reported_once_and_goes_on_when_it_rises() {
    let (mut client, _) = pair_with(Limits {
        max_bidi: 1,
        ..LIMITS
    });
    client.open(Direction::Bidi).unwrap();
    assert!(
        !client.has_pending(),
        "reaching the limit is not being blocked"
    );
    assert_eq!(client.open(Direction::Bidi), None);
    assert_eq!(client.open(Direction::Bidi), None);
    let seen = packets(&mut client);
    let blocked = StreamsBlocked {
        direction: Direction::Bidi,
        limit: 1,
    };
    assert_eq!(frames(&seen[0].0), [Frame::StreamsBlocked(blocked)]);
    receive(&mut client, &max_streams(0)).unwrap();
    assert_eq!(events(&mut client), []);
    receive(&mut client, &max_streams(2)).unwrap();
    assert_eq!(
        events(&mut client),
        [StreamEvent::Available(Direction::Bidi)]
    );
    assert_eq!(client.open(Direction::Bidi), Some(client_bidi(1)));
    assert_eq!(client.open(Direction::Bidi), None);
    assert!(client.has_pending(), "another limit, another report");
}

/// Proves: rfc9000 4.6 stream-credit-needs-no-blocked-frame
#[test]
fn closed_streams_make_room_for_others() {
    let (mut client, mut server) = pair();
    let (mut opened, mut renewals) = (0, 0);
    for _ in 0..1000 {
        let id = client
            .open(Direction::Bidi)
            .expect("there is always room for one");
        opened += 1;
        client.write(id, b"request").unwrap();
        client.finish(id).unwrap();
        send_all(&mut client, &mut server);
        assert_eq!(server.accept(Direction::Bidi), Some(id));
        assert_eq!(super::read_all(&mut server, id), b"request");
        server.write(id, b"response").unwrap();
        server.finish(id).unwrap();
        let seen = send_all(&mut server, &mut client);
        assert_eq!(super::read_all(&mut client, id), b"response");
        renewals += seen
            .iter()
            .filter(|frame| frame.contains("MaxStreams"))
            .count();
    }
    assert_eq!(opened, 1000);
    assert!((100..=500).contains(&renewals), "{renewals}");
    assert_eq!(
        [&client, &server].map(|it| it.sends.len() + it.recvs.len()),
        [0, 0]
    );
}

#[test]
fn a_stream_counts_until_both_halves_are_gone() {
    let limits = Limits {
        max_bidi: 1,
        ..LIMITS
    };
    let (mut client, mut server) = pair_with(limits);
    let id = client.open(Direction::Bidi).unwrap();
    client.finish(id).unwrap();
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Bidi);
    assert_eq!(server.read(id, &mut [0; 1]), Ok(0));
    assert!(packet(&mut server).is_none(), "the server can still send");
    server.finish(id).unwrap();
    let seen = send_all(&mut server, &mut client);
    assert!(
        !seen.iter().any(|frame| frame.contains("MaxStreams")),
        "it is not acknowledged yet"
    );
    let seen = send_all(&mut server, &mut client);
    assert_eq!(seen, [format!("{:?}", max_streams(2))]);
}
