//! Resets with reliable data (draft-ietf-quic-reliable-stream-reset).

use super::*;
use crate::{
    owners::streams::{ReadError, RecvEnd, ResetAtError, WriteError},
    wire::frame::{Owner as _, ResetStream, ResetStreamAt, StopSending},
};

/// Creates a client's stream with this many bytes written, and the two ends.
fn written(len: usize) -> (Streams, Streams, StreamId) {
    let (mut client, server) = pair();
    let id = client.open(Direction::Uni).unwrap();
    let data: Vec<u8> = (0..len).map(|at| at as u8).collect();
    assert_eq!(client.write(id, &data), Ok(len));
    (client, server, id)
}

fn reset_at(id: StreamId, code: u64, final_size: u64, reliable_size: u64) -> Frame<'static> {
    Frame::ResetStreamAt(ResetStreamAt {
        id,
        code,
        final_size,
        reliable_size,
    })
}

fn reset(id: StreamId, code: u64, final_size: u64) -> Frame<'static> {
    Frame::ResetStream(ResetStream {
        id,
        code,
        final_size,
    })
}

/// Reads until the reset, and returns the data before it and its code.
fn read_to_reset(streams: &mut Streams, id: StreamId) -> (Vec<u8>, u64) {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match streams.read(id, &mut buffer) {
            Ok(len @ 1..) => all.extend_from_slice(&buffer[..len]),
            Err(ReadError::Reset(code)) => return (all, code),
            other => panic!("{other:?} after {} bytes", all.len()),
        }
    }
}

/// The `RESET_STREAM_AT` frames among the pending ones.
fn told(from: &mut Streams) -> Vec<ResetStreamAt> {
    let mut found = Vec::new();
    for (payload, _) in packets(from) {
        found.extend(frames(&payload).iter().filter_map(|frame| match frame {
            Frame::ResetStreamAt(frame) => Some(*frame),
            _ => None,
        }));
    }
    found
}

#[test]
fn what_is_reliable_arrives_before_the_reset() {
    let (mut client, mut server, id) = written(10_000);
    client.reset_at(id, 7, 3000).unwrap();
    exchange_all(&mut client, &mut server);
    assert_eq!(server.accept(Direction::Uni), Some(id));
    assert_eq!(server.recv_end(id), Some(RecvEnd::Reset(7)));
    let (data, code) = read_to_reset(&mut server, id);
    assert_eq!((data.len(), code), (3000, 7));
    assert!(data.iter().enumerate().all(|(at, byte)| *byte == at as u8));
    exchange_all(&mut client, &mut server);
    assert!(client.is_send_acknowledged(id));
    // Both ends count the same, and all credit was returned.
    assert_eq!(client.totals().bytes_sent, 3000);
    assert_eq!(server.totals().bytes_received, 3000);
}

#[test]
fn only_what_is_needed_is_sent_and_the_frame_follows_the_data() {
    let (mut client, _, id) = written(10_000);
    client.reset_at(id, 7, 3000).unwrap();
    let mut seen = Vec::new();
    for (payload, _) in packets(&mut client) {
        for frame in frames(&payload) {
            match frame {
                Frame::Stream(frame) => {
                    assert!(!frame.fin && seen.is_empty());
                    assert!(frame.offset + frame.data.len() as u64 <= 3000);
                }
                Frame::ResetStreamAt(frame) => seen.push((frame.final_size, frame.reliable_size)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(seen, [(3000, 3000)]);
}

#[test]
fn what_was_sent_before_counts_for_the_final_size() {
    let (mut client, _, id) = written(5000);
    assert!(packets(&mut client).len() > 3);
    client.reset_at(id, 7, 1000).unwrap();
    let frame = told(&mut client)[0];
    assert_eq!((frame.final_size, frame.reliable_size), (5000, 1000));
}

#[test]
fn lost_data_is_sent_again_up_to_the_reliable_size_only() {
    let (mut client, mut server, id) = written(5000);
    let lost = packets(&mut client);
    client.reset_at(id, 7, 1500).unwrap();
    for (_, sent) in &lost {
        client.on_lost(sent);
    }
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    let (data, code) = read_to_reset(&mut server, id);
    assert_eq!((data.len(), code), (1500, 7));
    assert_eq!(client.totals().bytes_resent, 1500);
    assert!(client.is_send_acknowledged(id));
}

#[test]
fn a_lost_frame_is_sent_again_until_it_arrives() {
    let (mut client, mut server, id) = written(100);
    client.reset_at(id, 7, 50).unwrap();
    for _ in 0..3 {
        for (_, sent) in packets(&mut client) {
            client.on_lost(&sent);
        }
    }
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(read_to_reset(&mut server, id).0.len(), 50);
    assert!(client.is_send_acknowledged(id));
    assert!(!client.has_pending());
}

#[test]
fn it_is_over_only_when_data_and_frame_arrived() {
    let (mut client, mut server, id) = written(2000);
    client.reset_at(id, 7, 2000).unwrap();
    let sent = packets(&mut client);
    let (last, first) = sent.split_last().unwrap();
    client.on_acked(&last.1);
    assert!(!client.is_send_acknowledged(id));
    for (payload, sent) in first {
        deliver(payload, &mut server);
        client.on_acked(sent);
    }
    assert!(client.is_send_acknowledged(id));
}

#[test]
fn the_reliable_size_may_be_lowered_and_never_rises() {
    let (mut client, mut server, id) = written(5000);
    client.reset_at(id, 7, 4000).unwrap();
    let lost = packets(&mut client);
    client.reset_at(id, 9, 1000).unwrap();
    client.reset_at(id, 9, 2000).unwrap();
    let frame = told(&mut client);
    assert_eq!(frame.len(), 1);
    let frame = frame[0];
    assert_eq!(
        (frame.code, frame.final_size, frame.reliable_size),
        (7, 4000, 1000)
    );
    for (_, sent) in &lost {
        client.on_lost(sent);
    }
    exchange_all(&mut client, &mut server);
    assert_eq!(client.totals().bytes_resent, 1000);
    // The frame itself did not get through; the old one would not do.
    assert!(!client.is_send_acknowledged(id));
}

#[test]
fn more_than_was_written_is_what_was_written() {
    let (mut client, mut server, id) = written(10);
    client.reset_at(id, 7, u64::MAX).unwrap();
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(read_to_reset(&mut server, id).0.len(), 10);
}

#[test]
fn nothing_reliable_is_a_plain_reset_for_the_reader() {
    let (mut client, mut server, id) = written(100);
    client.reset_at(id, 7, 0).unwrap();
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(read_to_reset(&mut server, id), (Vec::new(), 7));
    assert!(client.is_send_acknowledged(id));
}

#[test]
fn a_plain_reset_may_follow_and_keeps_code_and_size() {
    let (mut client, mut server, id) = written(5000);
    client.reset_at(id, 7, 4000).unwrap();
    packets(&mut client);
    client.reset(id, 9).unwrap();
    let seen = send_all(&mut client, &mut server);
    let expected = format!("{:?}", reset(id, 7, 4000));
    assert_eq!(seen, [expected]);
    assert_eq!(client.reset_at(id, 7, 0), Err(ResetAtError::Closed));
}

#[test]
fn stop_sending_ends_it_with_the_code_that_was_told() {
    let (mut client, mut server, id) = written(5000);
    client.reset_at(id, 7, 4000).unwrap();
    packets(&mut client);
    client
        .on_stop_sending(&StopSending { id, code: 3 })
        .unwrap();
    assert_eq!(
        send_all(&mut client, &mut server),
        [format!("{:?}", reset(id, 7, 4000))]
    );
}

#[test]
fn it_may_follow_a_fin() {
    let (mut client, mut server, id) = written(3000);
    client.finish(id).unwrap();
    for (_, sent) in packets(&mut client) {
        client.on_lost(&sent);
    }
    client.reset_at(id, 7, 10).unwrap();
    exchange_all(&mut client, &mut server);
    server.accept(Direction::Uni);
    assert_eq!(read_to_reset(&mut server, id).0.len(), 10);
    assert!(client.is_send_acknowledged(id));
}

#[test]
fn nothing_can_be_written_behind_it() {
    let (mut client, _, id) = written(10);
    client.reset_at(id, 7, 10).unwrap();
    assert_eq!(client.write(id, b"x"), Err(WriteError::Closed));
}

#[test]
fn a_peer_that_does_not_know_it_is_not_sent_it() {
    let mut client = Streams::new(Side::Client, LIMITS);
    client.set_peer_limits(PeerLimits {
        reset_at: false,
        ..advertised(LIMITS)
    });
    let id = client.open(Direction::Uni).unwrap();
    assert_eq!(client.reset_at(id, 7, 0), Err(ResetAtError::Unsupported));
    assert_eq!(client.write(id, b"still open"), Ok(10));
}

#[test]
fn it_waits_for_the_peers_limits() {
    let limits = Limits {
        stream_receive_window: 1000,
        ..LIMITS
    };
    let (mut client, mut server) = pair_with(limits);
    let id = client.open(Direction::Uni).unwrap();
    client.write(id, &[1; 3000]).unwrap();
    client.reset_at(id, 7, 2500).unwrap();
    assert!(
        told(&mut client).is_empty(),
        "the final size is beyond the limit"
    );
    // The data sent so far arrives after all.
    receive(&mut server, &stream(id, 0, &[1; 1000], false)).unwrap();
    server.accept(Direction::Uni);
    let mut got = read_all(&mut server, id).len();
    while server.has_pending() || client.has_pending() {
        exchange_all(&mut client, &mut server);
        got += read_all(&mut server, id).len();
    }
    assert_eq!(got, 2500);
}

#[test]
fn a_reader_gets_the_reliable_bytes_whatever_came_behind_them() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 500], false)).unwrap();
    receive(&mut server, &stream(id, 600, &[3; 400], false)).unwrap();
    receive(&mut server, &reset_at(id, 7, 1000, 800)).unwrap();
    server.accept(Direction::Uni);
    assert_eq!(read_all(&mut server, id).len(), 500);
    assert_eq!(server.read(id, &mut [0; 8]), Err(ReadError::Blocked));
    events(&mut server);
    receive(&mut server, &stream(id, 500, &[2; 100], false)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    let (rest, code) = read_to_reset(&mut server, id);
    assert_eq!((rest.len(), code), (300, 7));
    assert_eq!(server.receive_credit.unread(), 0);
}

#[test]
fn a_lower_reliable_size_wins_whichever_comes_first() {
    for sizes in [[800, 200], [200, 800]] {
        let (_, mut server) = pair();
        let id = client_uni(0);
        receive(&mut server, &stream(id, 0, &[1; 1000], false)).unwrap();
        for size in sizes {
            receive(&mut server, &reset_at(id, 7, 1000, size)).unwrap();
        }
        server.accept(Direction::Uni);
        assert_eq!(read_to_reset(&mut server, id).0.len(), 200, "{sizes:?}");
    }
}

#[test]
fn a_waiting_reader_learns_of_a_reset_that_needs_nothing_more() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 10], false)).unwrap();
    server.accept(Direction::Uni);
    read_all(&mut server, id);
    events(&mut server);
    receive(&mut server, &reset_at(id, 7, 50, 10)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    assert_eq!(read_to_reset(&mut server, id), (Vec::new(), 7));
}

#[test]
fn who_watches_is_told_before_the_data_is_there() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 10], false)).unwrap();
    server.accept(Direction::Uni);
    server.watch_recv(id);
    receive(&mut server, &stream(id, 10, &[1; 10], false)).unwrap();
    events(&mut server);
    receive(&mut server, &reset_at(id, 7, 50, 40)).unwrap();
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    assert_eq!(server.recv_end(id), Some(RecvEnd::Reset(7)));
}

#[test]
fn a_plain_reset_behind_it_drops_the_rest() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 100], false)).unwrap();
    receive(&mut server, &reset_at(id, 7, 500, 400)).unwrap();
    receive(&mut server, &reset(id, 7, 500)).unwrap();
    receive(&mut server, &reset_at(id, 7, 500, 400)).unwrap();
    server.accept(Direction::Uni);
    assert_eq!(read_to_reset(&mut server, id), (Vec::new(), 7));
}

#[test]
fn all_data_that_is_there_is_not_taken_back() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 100], true)).unwrap();
    receive(&mut server, &reset_at(id, 7, 100, 10)).unwrap();
    server.accept(Direction::Uni);
    assert_eq!(read_all(&mut server, id).len(), 100);
}

#[test]
fn a_code_or_a_final_size_that_changes_closes() {
    let id = client_uni(0);
    let first = [reset_at(id, 7, 500, 400), reset(id, 7, 500)];
    for (place, first) in first.iter().enumerate() {
        let (_, mut server) = pair();
        server.accept(Direction::Uni);
        receive(&mut server, first).unwrap();
        let state_error = Some(Code::STREAM_STATE_ERROR);
        assert_eq!(
            code(receive(&mut server, &reset_at(id, 8, 500, 300))),
            state_error
        );
        if place == 0 {
            assert_eq!(code(receive(&mut server, &reset(id, 8, 500))), state_error);
        }
        let size_error = Some(Code::FINAL_SIZE_ERROR);
        assert_eq!(
            code(receive(&mut server, &reset_at(id, 7, 501, 300))),
            size_error
        );
        assert_eq!(
            code(receive(&mut server, &stream(id, 0, &[1; 499], true))),
            size_error
        );
        assert_eq!(
            code(receive(&mut server, &stream(id, 500, &[1], false))),
            size_error
        );
    }
}

#[test]
fn a_final_size_below_what_came_closes() {
    let (_, mut server) = pair();
    let id = client_uni(0);
    receive(&mut server, &stream(id, 0, &[1; 100], false)).unwrap();
    let result = receive(&mut server, &reset_at(id, 7, 99, 0));
    assert_eq!(code(result), Some(Code::FINAL_SIZE_ERROR));
}

#[test]
fn a_final_size_beyond_a_limit_closes() {
    for final_size in [LIMITS.stream_receive_window + 1, LIMITS.receive_window + 1] {
        let (_, mut server) = pair();
        let result = receive(&mut server, &reset_at(client_uni(0), 7, final_size, 0));
        assert_eq!(code(result), Some(Code::FLOW_CONTROL_ERROR));
    }
}

#[test]
fn one_for_a_stream_only_we_send_on_closes() {
    let (mut client, _) = pair();
    let id = client.open(Direction::Uni).unwrap();
    let result = receive(&mut client, &reset_at(id, 7, 0, 0));
    assert_eq!(code(result), Some(Code::STREAM_STATE_ERROR));
}

#[test]
fn who_stopped_reading_forgets_the_stream_and_returns_all_credit() {
    for stop_first in [true, false] {
        let (_, mut server) = pair();
        let id = client_uni(0);
        receive(&mut server, &stream(id, 0, &[1; 100], false)).unwrap();
        server.accept(Direction::Uni);
        if stop_first {
            server.stop(id, 1).unwrap();
        }
        receive(&mut server, &reset_at(id, 7, 500, 400)).unwrap();
        if !stop_first {
            server.stop(id, 1).unwrap();
        }
        assert_eq!(server.recv_end(id), None, "it is gone");
        assert_eq!(server.receive_credit.unread(), 0);
    }
}
