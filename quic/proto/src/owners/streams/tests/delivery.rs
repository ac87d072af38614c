use super::{
    Direction, LIMITS, Limits, Sent, StreamEvent, StreamId, Streams, client_bidi, client_uni,
    deliver, events, exchange_all, frames, packet, packets, pair, pair_with, read_all, receive,
    send_all, stream,
};
use crate::{
    owners::streams::ReadError,
    wire::frame::{
        DataBlocked, Frame, MaxData, MaxStreamData, MaxStreams, Owner as _, StreamsBlocked,
    },
};

/// Loses the packet, and returns the frames of the next one.
fn lose(from: &mut Streams, sent: &Sent) -> Vec<String> {
    from.on_lost(sent);
    let again = packet(from).map(|(payload, _)| payload).unwrap_or_default();
    frames(&again)
        .iter()
        .map(|frame| format!("{frame:?}"))
        .collect()
}

/// Sends one packet and loses it; returns the frames of both.
fn lose_next(from: &mut Streams) -> (Vec<String>, Vec<String>) {
    let (payload, sent) = packet(from).expect("something to lose");
    let first = frames(&payload)
        .iter()
        .map(|frame| format!("{frame:?}"))
        .collect();
    (first, lose(from, &sent))
}

fn opened(from: &mut Streams, data: &[u8]) -> StreamId {
    let id = from.open(Direction::Bidi).unwrap();
    from.write(id, data).unwrap();
    id
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn lost_data_is_sent_again_before_new_data() {
    let (mut client, mut server) = pair();
    let id = opened(&mut client, &[1; 1000]);
    let (_, sent) = packet(&mut client).unwrap();
    client.write(id, &[2; 100]).unwrap();
    client.on_lost(&sent);
    let (payload, _) = packet(&mut client).unwrap();
    let offsets: Vec<_> = frames(&payload)
        .iter()
        .map(|frame| match frame {
            Frame::Stream(frame) => (frame.offset, frame.data.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(offsets, [(0, 1000), (1000, 100)]);
    deliver(&payload, &mut server);
    assert_eq!(
        read_all(&mut server, id),
        [[1; 1000].as_slice(), &[2; 100]].concat()
    );
    assert_eq!(
        (client.totals().bytes_sent, client.totals().bytes_resent),
        (1100, 1000)
    );
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn a_lost_fin_is_sent_again_with_and_without_data() {
    for data in [0, 10] {
        let (mut client, mut server) = pair();
        let id = opened(&mut client, &[1; 5]);
        send_all(&mut client, &mut server);
        client.write(id, &vec![2; data]).unwrap();
        client.finish(id).unwrap();
        let (first, again) = lose_next(&mut client);
        assert_eq!(first, again);
        assert!(again[0].contains("fin: true"));
    }
}

/// Proves: rfc9000 13.3 reset-does-not-change
#[test]
fn a_lost_reset_is_sent_again_until_acknowledged() {
    let (mut client, mut server) = pair();
    let id = opened(&mut client, &[1; 5]);
    send_all(&mut client, &mut server);
    client.reset(id, 9).unwrap();
    let (first, again) = lose_next(&mut client);
    assert_eq!((first.len(), &first), (1, &again));
    assert!(first[0].starts_with("ResetStream"));
    let (_, sent) = packet(&mut client).map_or((vec![], Sent::default()), |it| it);
    assert!(sent.is_empty(), "only once per loss");
}

/// Proves: rfc9000 3.3 nothing-after-reset
#[test]
fn data_lost_after_a_reset_is_not_sent_again() {
    let (mut client, _) = pair();
    let id = opened(&mut client, &[1; 5]);
    let (_, data) = packet(&mut client).unwrap();
    client.reset(id, 9).unwrap();
    packet(&mut client).unwrap();
    assert_eq!(lose(&mut client, &data), [""; 0]);
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn a_lost_stop_sending_is_sent_again_while_it_matters() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[0; 10], false)).unwrap();
    server.stop(id, 3).unwrap();
    let (first, again) = lose_next(&mut server);
    assert!(first[0].starts_with("StopSending"));
    assert_eq!(first, again);

    let (_, mut server) = pair();
    receive(&mut server, &stream(id, 0, &[0; 10], false)).unwrap();
    server.stop(id, 3).unwrap();
    let (_, sent) = packet(&mut server).unwrap();
    let reset = crate::wire::frame::ResetStream {
        id,
        code: 3,
        final_size: 10,
    };
    receive(&mut server, &Frame::ResetStream(reset)).unwrap();
    assert_eq!(lose(&mut server, &sent), [""; 0]);
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn a_lost_max_data_is_sent_again_with_the_newest_value() {
    let (_, mut server) = pair();
    for index in 0..2 {
        receive(
            &mut server,
            &stream(client_uni(index), 0, &vec![0; 30_000], true),
        )
        .unwrap();
    }
    read_all(&mut server, client_uni(0));
    let (payload, first) = packet(&mut server).unwrap();
    assert_eq!(frames(&payload), [Frame::MaxData(MaxData { max: 130_000 })]);
    server.read(client_uni(1), &mut [0; 10_000]).unwrap();
    assert_eq!(
        lose(&mut server, &first),
        [format!("{:?}", MaxData { max: 140_000 })].map(|it| format!("MaxData({it})"))
    );
    read_all(&mut server, client_uni(1));
    let later = packets(&mut server);
    let frames: Vec<_> = later
        .iter()
        .flat_map(|(payload, _)| frames(payload))
        .collect();
    let streams = MaxStreams {
        direction: Direction::Uni,
        max: 12,
    };
    assert_eq!(
        frames,
        [Frame::MaxStreams(streams)],
        "20,000 bytes are not worth a frame yet"
    );
}

#[test]
fn an_old_max_data_is_not_sent_again() {
    let (_, mut server) = pair();
    for index in 0..2 {
        receive(
            &mut server,
            &stream(client_uni(index), 0, &vec![0; 30_000], true),
        )
        .unwrap();
    }
    read_all(&mut server, client_uni(0));
    let (_, first) = packet(&mut server).unwrap();
    read_all(&mut server, client_uni(1));
    packet(&mut server).unwrap();
    assert_eq!(lose(&mut server, &first), [""; 0]);
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn a_lost_max_stream_data_is_sent_again_unless_the_size_is_known() {
    let id = client_bidi(0);
    let renewed = || {
        let (_, mut server) = pair();
        receive(&mut server, &stream(id, 0, &vec![0; 20_000], false)).unwrap();
        server.read(id, &mut vec![0; 15_000]).unwrap();
        let (payload, sent) = packet(&mut server).unwrap();
        let frame = Frame::MaxStreamData(MaxStreamData { id, max: 55_000 });
        assert_eq!(frames(&payload), [frame]);
        (server, sent)
    };
    let (mut server, sent) = renewed();
    server.read(id, &mut [0; 1000]).unwrap();
    let again = Frame::MaxStreamData(MaxStreamData { id, max: 56_000 });
    assert_eq!(lose(&mut server, &sent), [format!("{again:?}")]);

    let (mut server, sent) = renewed();
    receive(&mut server, &stream(id, 20_000, &[], true)).unwrap();
    assert_eq!(lose(&mut server, &sent), [""; 0]);

    let (mut server, sent) = renewed();
    server.stop(id, 0).unwrap();
    let again = lose(&mut server, &sent);
    assert!(
        !again.iter().any(|frame| frame.starts_with("MaxStreamData")),
        "{again:?}"
    );
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn a_lost_max_streams_is_sent_again() {
    let (mut client, mut server) = pair_with(Limits {
        max_uni: 1,
        ..LIMITS
    });
    let id = client.open(Direction::Uni).unwrap();
    client.finish(id).unwrap();
    send_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(server.read(id, &mut [0; 1]), Ok(0));
    let (first, again) = lose_next(&mut server);
    let frame = Frame::MaxStreams(MaxStreams {
        direction: Direction::Uni,
        max: 2,
    });
    assert_eq!(first, [format!("{frame:?}")]);
    assert_eq!(first, again);
}

/// Proves: rfc9000 13.3 lost-frames-are-sent-again
#[test]
fn lost_reports_of_blocking_are_sent_again_only_while_blocked() {
    let blocked = || {
        let limits = Limits {
            receive_window: 2000,
            stream_receive_window: 1000,
            max_bidi: 3,
            ..LIMITS
        };
        let (mut client, _) = pair_with(limits);
        for _ in 0..3 {
            opened(&mut client, &[0; 1500]);
        }
        assert_eq!(client.open(Direction::Bidi), None);
        let sent: Vec<_> = packets(&mut client)
            .into_iter()
            .map(|(_, sent)| sent)
            .collect();
        (client, sent)
    };
    let reports = |client: &mut Streams, sent: &[Sent]| -> Vec<String> {
        for sent in sent {
            client.on_lost(sent);
        }
        let again = packets(client);
        let all = again.iter().flat_map(|(payload, _)| frames(payload));
        let mut reports: Vec<_> = all
            .map(|frame| format!("{frame:?}"))
            .filter(|frame| frame.contains("Blocked"))
            .collect();
        reports.sort();
        reports
    };
    let (mut client, sent) = blocked();
    let again = reports(&mut client, &sent);
    assert_eq!(again.len(), 4, "{again:?}");
    assert!(again.contains(&format!(
        "{:?}",
        Frame::DataBlocked(DataBlocked { limit: 2000 })
    )));

    let (mut client, sent) = blocked();
    for frame in [
        Frame::MaxData(MaxData { max: 100_000 }),
        Frame::MaxStreams(MaxStreams {
            direction: Direction::Bidi,
            max: 4,
        }),
    ]
    .into_iter()
    .chain((0..3).map(|index| {
        Frame::MaxStreamData(MaxStreamData {
            id: client_bidi(index),
            max: 100_000,
        })
    })) {
        receive(&mut client, &frame).unwrap();
    }
    assert_eq!(reports(&mut client, &sent), [""; 0]);

    let (mut client, _) = blocked();
    receive(&mut client, &Frame::MaxData(MaxData { max: 2001 })).unwrap();
    let frame = Frame::StreamsBlocked(StreamsBlocked {
        direction: Direction::Bidi,
        limit: 3,
    });
    assert!(
        !reports(&mut client, &[]).contains(&format!("{frame:?}")),
        "it was not lost"
    );
}

/// Proves: rfc9000 3.5 stop-sending-is-answered-by-reset
#[test]
fn stop_sending_is_answered_by_a_reset_with_its_code() {
    let (mut client, mut server) = pair();
    let id = opened(&mut client, &[0; 100]);
    send_all(&mut client, &mut server);
    server.accept(Direction::Bidi);
    server.stop(id, 77).unwrap();
    send_all(&mut server, &mut client);
    assert_eq!(events(&mut client), [StreamEvent::Stopped { id, code: 77 }]);
    assert_eq!(client.stop_code(id), Some(77));
    let seen = send_all(&mut client, &mut server);
    assert_eq!(
        seen,
        [format!(
            "{:?}",
            Frame::ResetStream(crate::wire::frame::ResetStream {
                id,
                code: 77,
                final_size: 100
            })
        )]
    );
    assert_eq!(events(&mut client), [StreamEvent::Acknowledged(id)]);
}

#[test]
fn the_application_learns_when_all_is_acknowledged() {
    let (mut client, mut server) = pair();
    let id = opened(&mut client, &[0; 3000]);
    client.finish(id).unwrap();
    let mut sent = packets(&mut client);
    for (payload, _) in &sent {
        deliver(payload, &mut server);
    }
    let (_, last) = sent.pop().unwrap();
    client.on_acked(&last);
    assert_eq!(
        (events(&mut client), client.is_send_acknowledged(id)),
        (vec![], false)
    );
    for (_, sent) in &sent {
        client.on_acked(sent);
    }
    assert_eq!(events(&mut client), [StreamEvent::Acknowledged(id)]);
    assert!(client.is_send_acknowledged(id));
}

#[test]
fn a_reset_is_read_once() {
    let (mut client, mut server) = pair();
    let id = opened(&mut client, &[0; 100]);
    send_all(&mut client, &mut server);
    server.accept(Direction::Bidi);
    assert_eq!(server.read(id, &mut [0; 50]), Ok(50));
    client.reset(id, 6).unwrap();
    exchange_all(&mut client, &mut server);
    assert_eq!(server.read(id, &mut [0; 50]), Err(ReadError::Reset(6)));
    assert_eq!(server.read(id, &mut [0; 50]), Err(ReadError::Closed));
}

#[test]
fn a_blocked_reader_is_told_once() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[], false)).unwrap();
    server.accept(Direction::Uni);
    events(&mut server);
    assert_eq!(server.read(id, &mut [0; 10]), Err(ReadError::Blocked));
    receive(&mut server, &stream(id, 1, &[0], false)).unwrap();
    assert_eq!(events(&mut server), [], "a gap");
    receive(&mut server, &stream(id, 0, &[0], false)).unwrap();
    receive(&mut server, &stream(id, 2, &[0], true)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
}

#[test]
fn streams_that_the_peer_does_not_take_are_blocked() {
    let (mut client, mut server) = pair_with(Limits {
        initial_stream_receive_window: 100,
        stream_receive_window: 100,
        ..LIMITS
    });
    let id = opened(&mut client, &[1; 300]);
    let blocked = |client: &Streams| client.blocked().collect::<Vec<_>>();
    assert_eq!(blocked(&client), [], "it can be sent");
    exchange_all(&mut client, &mut server);
    let [before] = blocked(&client)[..] else {
        panic!("the window is full")
    };
    assert_eq!(before.id, id);
    assert_eq!(blocked(&client), [before], "nothing was taken");
    assert_eq!(read_all(&mut server, id).len(), 100);
    exchange_all(&mut client, &mut server);
    let [after] = blocked(&client)[..] else {
        panic!("the window is full again")
    };
    assert_ne!(after.progress, before.progress);
    while !blocked(&client).is_empty() {
        read_all(&mut server, id);
        exchange_all(&mut client, &mut server);
    }
    assert_eq!(blocked(&client), [], "everything was taken");
}
