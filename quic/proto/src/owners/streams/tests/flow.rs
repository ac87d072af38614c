use super::{
    Direction, LIMITS, Limits, PeerLimits, Streams, client_bidi, client_uni, code, events,
    exchange_all, frames, packet, packets, pair, pair_with, read_all, receive, send_all, stream,
};
use crate::{
    owners::streams::{ReadError, StreamEvent, StreamId, WriteError},
    wire::{
        VarInt,
        error::Code,
        frame::{DataBlocked, Frame, MaxData, MaxStreamData, Owner as _, StreamDataBlocked},
    },
};

fn max_data(max: u64) -> Frame<'static> {
    Frame::MaxData(MaxData { max })
}

fn max_stream_data(id: StreamId, max: u64) -> Frame<'static> {
    Frame::MaxStreamData(MaxStreamData { id, max })
}

/// Offsets and lengths of the STREAM frames that are pending.
fn data_sent(from: &mut Streams) -> Vec<(u64, usize)> {
    let sent = packets(from);
    let data = sent
        .iter()
        .flat_map(|(payload, _)| frames(payload))
        .filter_map(|frame| match frame {
            Frame::Stream(frame) => Some((frame.offset, frame.data.len())),
            _ => None,
        });
    data.collect()
}

/// Proves: rfc9000 4.1 receiver-closes-on-overrun
/// Proves: security 2 flow-control-overruns-close
#[test]
fn data_beyond_the_limit_of_the_stream_is_an_error() {
    let (_, mut server) = pair();
    let data = [0; 1];
    let limit = LIMITS.stream_receive_window;
    assert_eq!(
        code(receive(
            &mut server,
            &stream(client_bidi(0), limit - 1, &data, false)
        )),
        None
    );
    let error = receive(&mut server, &stream(client_bidi(0), limit, &data, false));
    assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));
}

/// Proves: rfc9000 4.1 receiver-closes-on-overrun
/// Proves: security 2 flow-control-overruns-close
#[test]
fn data_beyond_the_limit_of_the_connection_is_an_error() {
    let (_, mut server) = pair();
    for (index, end) in [(0, 40_000), (1, 40_000), (2, 20_000)] {
        let frame = stream(client_bidi(index), end, &[], false);
        assert_eq!(
            code(receive(&mut server, &frame)),
            None,
            "gaps count, and this is the limit"
        );
    }
    let error = receive(&mut server, &stream(client_bidi(3), 0, &[0], false));
    assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));
}

/// Proves: rfc9000 4.5 final-size-counts
#[test]
fn the_final_size_of_a_reset_counts_against_both_limits() {
    let reset = |id, final_size| {
        Frame::ResetStream(crate::wire::frame::ResetStream {
            id,
            code: 0,
            final_size,
        })
    };
    let (_, mut server) = pair();
    let error = receive(&mut server, &reset(client_bidi(0), 40_001));
    assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));

    let limits = Limits {
        receive_window: 30_000,
        ..LIMITS
    };
    let (_, mut server) = pair_with(limits);
    let error = receive(&mut server, &reset(client_bidi(0), 30_001));
    assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));
}

#[test]
fn data_that_comes_twice_counts_once() {
    let limits = Limits {
        receive_window: 100,
        ..LIMITS
    };
    let (_, mut server) = pair_with(limits);
    for _ in 0..10 {
        let frame = stream(client_bidi(0), 0, &[0; 100], false);
        assert_eq!(code(receive(&mut server, &frame)), None);
    }
    assert_eq!(server.totals().bytes_received, 100);
}

/// Proves: rfc9000 19.8 stream-offset-is-bounded
#[test]
fn data_beyond_the_largest_offset_is_an_error() {
    let limits = Limits {
        receive_window: u64::MAX,
        stream_receive_window: u64::MAX,
        ..LIMITS
    };
    let (_, mut server) = pair_with(limits);
    for offset in [VarInt::MAX.get(), u64::MAX] {
        let error = receive(&mut server, &stream(client_bidi(0), offset, &[0; 2], false));
        assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));
    }
}

/// Proves: rfc9000 2.2 sender-stays-within-limits
#[test]
fn a_sender_keeps_to_the_limit_of_the_stream_and_says_so_once() {
    let limits = Limits {
        stream_receive_window: 3000,
        ..LIMITS
    };
    let (mut client, mut server) = pair_with(limits);
    let id = client.open(Direction::Bidi).unwrap();
    client.write(id, &[1; 5000]).unwrap();
    let seen = send_all(&mut client, &mut server);
    let blocked = Frame::StreamDataBlocked(StreamDataBlocked { id, limit: 3000 });
    assert_eq!(
        seen.iter()
            .filter(|frame| **frame == format!("{blocked:?}"))
            .count(),
        1
    );
    assert_eq!(server.totals().bytes_received, 3000);
    client.write(id, &[1; 1000]).unwrap();
    assert!(!client.has_pending());

    receive(&mut client, &max_stream_data(id, 3500)).unwrap();
    assert_eq!(data_sent(&mut client), [(3000, 500)]);
}

/// Proves: rfc9000 2.2 sender-stays-within-limits
#[test]
fn a_sender_keeps_to_the_limit_of_the_connection_and_says_so_once() {
    let limits = Limits {
        receive_window: 3000,
        ..LIMITS
    };
    let (mut client, mut server) = pair_with(limits);
    let ids = [(); 2].map(|()| client.open(Direction::Bidi).unwrap());
    for id in ids {
        client.write(id, &[1; 2500]).unwrap();
    }
    let seen = send_all(&mut client, &mut server);
    let blocked = Frame::DataBlocked(DataBlocked { limit: 3000 });
    assert_eq!(
        seen.iter()
            .filter(|frame| **frame == format!("{blocked:?}"))
            .count(),
        1
    );
    assert_eq!(server.totals().bytes_received, 3000);
    client.write(ids[0], &[1; 1000]).unwrap();
    assert!(!client.has_pending());

    receive(&mut client, &max_data(4000)).unwrap();
    let sent: usize = data_sent(&mut client).iter().map(|(_, len)| len).sum();
    assert_eq!(sent, 1000);
}

#[test]
fn a_lone_fin_needs_no_credit() {
    let (mut client, mut server) = pair_with(Limits {
        receive_window: 10,
        ..LIMITS
    });
    let [one, other] = [(); 2].map(|()| client.open(Direction::Uni).unwrap());
    client.write(one, &[0; 10]).unwrap();
    client.write(other, &[0; 10]).unwrap();
    send_all(&mut client, &mut server);
    client.finish(one).unwrap();
    client.finish(other).unwrap();
    assert_eq!(
        data_sent(&mut client),
        [(10, 0)],
        "only the stream that has sent its data"
    );
}

/// Proves: rfc9000 4.1 limits-never-shrink
#[test]
fn limits_never_shrink() {
    let (mut client, _) = pair();
    let id = client.open(Direction::Bidi).unwrap();
    receive(&mut client, &max_stream_data(id, 10)).unwrap();
    receive(&mut client, &max_data(10)).unwrap();
    client.write(id, &[0; 1000]).unwrap();
    assert_eq!(data_sent(&mut client), [(0, 1000)]);
}

/// Proves: rfc9000 4.2 credit-needs-no-blocked-frame
#[test]
fn credit_is_renewed_as_the_application_reads_and_not_with_every_read() {
    let (mut client, mut server) = pair();
    let id = client.open(Direction::Bidi).unwrap();
    let total = 1_000_000;
    let (mut written, mut read, mut renewals) = (0, 0, 0);
    while read < total {
        if written < total {
            written += client.write(id, &vec![7; total - written]).unwrap();
        }
        send_all(&mut client, &mut server);
        server.accept(Direction::Bidi);
        read += read_all(&mut server, id).len();
        let seen = send_all(&mut server, &mut client);
        renewals += seen.iter().filter(|frame| frame.contains("Max")).count();
    }
    assert_eq!(read, total);
    // A stream window of at least a quarter: 100 for the stream, 40 for the connection.
    assert!((25..=140).contains(&renewals), "{renewals}");
}

#[test]
fn a_peer_that_waits_is_given_what_there_is() {
    let (mut client, mut server) = pair_with(Limits {
        stream_receive_window: 1000,
        ..LIMITS
    });
    let id = client.open(Direction::Bidi).unwrap();
    client.write(id, &[0; 2000]).unwrap();
    let blocked = packets(&mut client);
    for (payload, _) in &blocked {
        let data = frames(payload)
            .into_iter()
            .filter(|frame| matches!(frame, Frame::Stream(_)));
        for frame in data {
            receive(&mut server, &frame).unwrap();
        }
    }
    server.read(id, &mut [0; 100]).unwrap();
    assert!(!server.has_pending(), "too little to tell");
    let frame = Frame::StreamDataBlocked(StreamDataBlocked { id, limit: 1000 });
    receive(&mut server, &frame).unwrap();
    assert!(
        send_all(&mut server, &mut client).contains(&format!("{:?}", max_stream_data(id, 1100)))
    );
    receive(&mut server, &frame).unwrap();
    assert!(!server.has_pending(), "an old report");
}

/// Proves: rfc9000 4.4 reset-counts-for-flow-control
#[test]
fn stopped_and_reset_streams_return_the_credit_of_the_connection() {
    let limits = Limits {
        receive_window: 40_000,
        ..LIMITS
    };
    for reset in [false, true] {
        let (mut client, mut server) = pair_with(limits);
        for index in 0..5 {
            let id = client.open(Direction::Uni).unwrap();
            client.write(id, &vec![0; 30_000]).unwrap();
            send_all(&mut client, &mut server);
            assert_eq!(server.accept(Direction::Uni), Some(client_uni(index)));
            assert_eq!(server.totals().bytes_received, 30_000 * (index + 1));
            if reset {
                client.reset(id, 1).unwrap();
            } else {
                server.stop(id, 1).unwrap();
            }
            exchange_all(&mut client, &mut server);
        }
    }
}

#[test]
fn data_for_a_stopped_stream_still_counts() {
    let limits = Limits {
        receive_window: 10_000,
        ..LIMITS
    };
    let (_, mut server) = pair_with(limits);
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[0; 1000], false)).unwrap();
    server.stop(id, 0).unwrap();
    receive(&mut server, &stream(id, 9999, &[0], false)).unwrap();
    let error = receive(&mut server, &stream(id, 10_000, &[0], false));
    assert_eq!(code(error), Some(Code::FLOW_CONTROL_ERROR));
    let (payload, _) = packet(&mut server).unwrap();
    assert!(
        frames(&payload).contains(&max_data(20_000)),
        "all of it was given back at once"
    );
}

/// Proves: rfc9000 2.2 sender-stays-within-limits
#[test]
fn nothing_is_sent_before_the_peers_limits_are_known() {
    let mut client = Streams::new(hybriq_tls::Side::Client, LIMITS);
    assert_eq!(client.open(Direction::Bidi), None);
    client.set_peer_limits(PeerLimits {
        max_bidi: 1,
        ..PeerLimits::default()
    });
    assert_eq!(
        events(&mut client),
        [StreamEvent::Available(Direction::Bidi)]
    );
    let id = client.open(Direction::Bidi).unwrap();
    client.write(id, &[0; 10]).unwrap();
    assert_eq!(data_sent(&mut client), []);
    client.set_peer_limits(PeerLimits {
        max_data: 10,
        bidi_remote: 5,
        ..PeerLimits::default()
    });
    assert_eq!(
        data_sent(&mut client),
        [(0, 5)],
        "limits that come later lift what is open"
    );
}

#[test]
fn each_kind_of_stream_has_its_own_first_limit() {
    let limits = PeerLimits {
        max_data: 1000,
        bidi_local: 1,
        bidi_remote: 2,
        uni: 3,
        max_bidi: 1,
        reset_at: false,
        max_uni: 1,
    };
    let mut server = Streams::new(hybriq_tls::Side::Server, LIMITS);
    server.set_peer_limits(limits);
    receive(&mut server, &stream(client_bidi(0), 0, &[], false)).unwrap();
    let theirs = server.accept(Direction::Bidi).unwrap();
    let bidi = server.open(Direction::Bidi).unwrap();
    let uni = server.open(Direction::Uni).unwrap();
    for (id, limit) in [(theirs, 1), (bidi, 2), (uni, 3)] {
        server.write(id, &[0; 10]).unwrap();
        assert_eq!(data_sent(&mut server), [(0, limit)]);
    }
}

#[test]
fn a_send_buffer_bounds_what_waits_to_be_sent() {
    let (mut client, _) = pair_with(Limits {
        send_buffer: 4000,
        ..LIMITS
    });
    let id = client.open(Direction::Bidi).unwrap();
    assert_eq!(client.write(id, &[0; 3000]), Ok(3000));
    let mut chunk = bytes::Bytes::from(vec![0; 3000]);
    assert_eq!(client.write_chunk(id, &mut chunk), Ok(1000));
    assert_eq!(chunk.len(), 2000);
    assert_eq!(client.write_chunk(id, &mut chunk), Err(WriteError::Blocked));
    let sent = packets(&mut client);
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    assert_eq!(client.write_chunk(id, &mut chunk), Ok(2000));
    for (_, sent) in sent {
        client.on_acked(&sent);
    }
    assert_eq!(events(&mut client), [], "nobody waits");
}

#[test]
fn a_larger_bound_holds_what_is_under_way_as_well() {
    let (mut client, _) = pair_with(Limits {
        send_buffer: 4000,
        max_send_buffer: 6000,
        ..LIMITS
    });
    let id = client.open(Direction::Bidi).unwrap();
    assert_eq!(client.write(id, &[0; 9000]), Ok(4000));
    let sent = packets(&mut client);
    assert_eq!(client.write(id, &[0; 9000]), Ok(2000));
    packets(&mut client);
    assert_eq!(client.write(id, &[0; 9000]), Err(WriteError::Blocked));
    let (oldest, later) = sent.split_first().unwrap();
    for (_, sent) in later {
        client.on_acked(sent);
    }
    assert_eq!(events(&mut client), [], "the oldest bytes are still held");
    client.on_acked(&oldest.1);
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    assert_eq!(client.write(id, &[0; 9000]), Ok(4000));
}

/// Proves: security 2 reassembly-gap-floods-are-bounded
#[test]
fn many_streams_in_pieces_share_a_bound() {
    let (_, mut server) = pair();
    let streams = 8;
    let mut inserted = 0;
    let refused = (0..crate::wire::limits::STREAM_PIECES as u64).find_map(|piece| {
        (0..streams).find_map(|index| {
            inserted += 1;
            let frame = stream(client_bidi(index), 1 + 2 * piece, &[0], false);
            code(receive(&mut server, &frame))
        })
    });
    assert_eq!(refused, Some(Code::INTERNAL_ERROR));
    assert_eq!(inserted, crate::wire::limits::ALL_STREAM_PIECES + 1);
}

#[test]
fn pieces_of_streams_that_are_whole_or_gone_count_no_more() {
    let (_, mut server) = pair();
    for round in 0..3 {
        for index in 0..4 {
            let id = client_bidi(4 * (round % 2) + index);
            for piece in 0..crate::wire::limits::STREAM_PIECES as u64 {
                let offset = round * 3000 + 1 + 2 * piece;
                let frame = stream(id, offset, &[0], false);
                assert_eq!(code(receive(&mut server, &frame)), None);
            }
            if round == 0 {
                server.stop(id, 0).unwrap();
            } else {
                let end = round * 3000 + 3000;
                let whole = vec![0; end as usize];
                for start in (0..end).step_by(1000) {
                    let part = &whole[start as usize..][..1000];
                    assert_eq!(
                        code(receive(&mut server, &stream(id, start, part, false))),
                        None
                    );
                }
            }
        }
    }
}

/// Proves: security 2 reassembly-gap-floods-are-bounded
#[test]
fn a_stream_in_too_many_pieces_closes_the_connection() {
    let (_, mut server) = pair();
    let mut offsets = (0..).map(|piece| 1 + 2 * piece);
    let mut insert = || {
        receive(
            &mut server,
            &stream(client_bidi(0), offsets.next().unwrap(), &[0], false),
        )
    };
    for _ in 0..crate::wire::limits::STREAM_PIECES {
        assert_eq!(code(insert()), None);
    }
    assert_eq!(code(insert()), Some(Code::INTERNAL_ERROR));
    assert_eq!(
        server.read(client_bidi(0), &mut [0; 10]),
        Err(ReadError::Blocked)
    );
}
