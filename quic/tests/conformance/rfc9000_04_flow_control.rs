//! RFC 9000 §4: limits, and who oversteps them.

use std::collections::BTreeMap;

use hybriq::{Direction, StreamId, tls::Side};
use hybriq_proto::wire::frame::{FrameWriter, MaxData, MaxStreams, ResetStream, StreamHeader};
use hybriq_sim::{Network, one_in};

use crate::{
    duo::{Duo, Verdict},
    wiretap::{Seen, exchange},
};

const FLOW_CONTROL_ERROR: u64 = 0x03;
const STREAM_LIMIT_ERROR: u64 = 0x04;
const FINAL_SIZE_ERROR: u64 = 0x06;
const FRAME_ENCODING_ERROR: u64 = 0x07;
const RESET: u64 = 0x04;
const STREAM_AT_OFFSET: u64 = 0x0c;

/// Bytes that a stream may carry with the usual configuration.
const STREAM_WINDOW: u64 = 1024 * 1024;

fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Uni, index)
}

/// One byte at an offset, the last one or not.
fn byte(out: &mut FrameWriter<'_>, index: u64, offset: u64, fin: bool) {
    let id = uni(index);
    assert!(
        out.stream(StreamHeader { id, offset, fin }, 1, |data| data.fill(7))
            .is_some()
    );
}

fn reset(out: &mut FrameWriter<'_>, index: u64, final_size: u64) {
    let (id, code) = (uni(index), 1);
    assert!(out.write(&ResetStream {
        id,
        code,
        final_size
    }));
}

/// Returns the server's verdict on two packets of a client, the first of which is valid.
fn verdict(
    first: impl FnOnce(&mut FrameWriter<'_>),
    second: impl FnOnce(&mut FrameWriter<'_>),
) -> Option<Verdict> {
    let mut duo = Duo::new();
    duo.send(Side::Client, |out| {
        out.ping();
        first(out);
    });
    duo.assert_alive();
    duo.send(Side::Client, second);
    duo.verdict(Side::Server)
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with a verdict")]
fn ends_with(code: u64, frame: u64) -> Option<Verdict> {
    Some(Verdict { code, frame })
}

/// Proves: rfc9000 4.1 receiver-closes-on-overrun
#[test]
fn data_beyond_the_window_of_a_stream() {
    assert_eq!(
        verdict(
            |out| byte(out, 0, STREAM_WINDOW - 1, false),
            |out| byte(out, 0, STREAM_WINDOW, false)
        ),
        ends_with(FLOW_CONTROL_ERROR, STREAM_AT_OFFSET)
    );
}

/// Proves: rfc9000 4.1 receiver-closes-on-overrun
#[test]
fn data_beyond_the_window_of_the_connection() {
    assert_eq!(
        verdict(
            |out| byte(out, 0, STREAM_WINDOW - 1, false),
            |out| byte(out, 1, STREAM_WINDOW / 2, false)
        ),
        ends_with(FLOW_CONTROL_ERROR, STREAM_AT_OFFSET)
    );
}

/// Proves: rfc9000 4.5 final-size-counts
/// Proves: rfc9000 4.4 reset-counts-for-flow-control
/// Proves: security 2 flow-control-overruns-close
#[test]
fn a_reset_with_a_final_size_beyond_a_window() {
    assert_eq!(
        verdict(|_| (), |out| reset(out, 0, STREAM_WINDOW + 1)),
        ends_with(FLOW_CONTROL_ERROR, RESET)
    );
    assert_eq!(
        verdict(
            |out| byte(out, 0, STREAM_WINDOW - 1, false),
            |out| reset(out, 1, STREAM_WINDOW / 2 + 1)
        ),
        ends_with(FLOW_CONTROL_ERROR, RESET)
    );
}

/// Proves: rfc9000 4.5 final-size-is-final
/// Proves: security 2 final-size-changes-close
#[test]
fn a_final_size_that_changes() {
    let end = |out: &mut FrameWriter<'_>| byte(out, 0, 10, true);
    for offset in [9, 11] {
        let other = |out: &mut FrameWriter<'_>| byte(out, 0, offset, true);
        assert_eq!(verdict(end, other), ends_with(FINAL_SIZE_ERROR, 0x0d));
    }
    for size in [10, 12] {
        let other = |out: &mut FrameWriter<'_>| reset(out, 0, size);
        assert_eq!(verdict(end, other), ends_with(FINAL_SIZE_ERROR, RESET));
    }
    let beyond = |out: &mut FrameWriter<'_>| byte(out, 0, 11, false);
    assert_eq!(
        verdict(end, beyond),
        ends_with(FINAL_SIZE_ERROR, STREAM_AT_OFFSET)
    );
    assert_eq!(
        verdict(|out| reset(out, 0, 11), beyond),
        ends_with(FINAL_SIZE_ERROR, STREAM_AT_OFFSET)
    );
}

/// Proves: rfc9000 4.5 final-size-is-final
/// Proves: security 2 final-size-changes-close
#[test]
fn a_final_size_below_what_came() {
    let data = |out: &mut FrameWriter<'_>| byte(out, 0, 10, false);
    assert_eq!(
        verdict(data, |out| reset(out, 0, 10)),
        ends_with(FINAL_SIZE_ERROR, RESET)
    );
    assert_eq!(
        verdict(data, |out| byte(out, 0, 9, true)),
        ends_with(FINAL_SIZE_ERROR, 0x0d)
    );
}

/// Proves: rfc9000 4.6 stream-beyond-limit-closes
#[test]
fn a_stream_beyond_the_limit() {
    assert_eq!(
        verdict(|out| byte(out, 99, 0, true), |out| byte(out, 100, 0, true)),
        ends_with(STREAM_LIMIT_ERROR, 0x09)
    );
}

/// Proves: rfc9000 4.6 stream-limits-are-bounded
/// Proves: rfc9000 19.14 streams-blocked-is-bounded
#[test]
fn stream_counts_above_2_to_the_60() {
    for ty in [0x12, 0x13, 0x16, 0x17] {
        let frame = [ty, 0xd0, 0, 0, 0, 0, 0, 0, 1];
        for from in [Side::Client, Side::Server] {
            let verdict = crate::duo::verdict_on(from, &frame);
            assert_eq!(verdict, ends_with(FRAME_ENCODING_ERROR, ty.into()));
        }
    }
}

/// Proves: rfc9000 4.6 max-streams-never-shrinks
/// Proves: rfc9000 4.1 limits-never-shrink
/// Proves: rfc9000 13.3 outdated-frames-are-accepted
#[test]
fn limits_that_raise_nothing() {
    let mut duo = Duo::new();
    duo.send(Side::Server, |out| {
        for direction in [Direction::Bidi, Direction::Uni] {
            assert!(out.write(&MaxStreams { direction, max: 1 }));
        }
        assert!(out.write(&MaxData { max: 1 }));
    });
    duo.assert_alive();
    let streams = duo.connection(Side::Client).streams();
    for direction in [Direction::Bidi, Direction::Uni] {
        let opened = std::iter::from_fn(|| streams.open(direction)).count();
        assert_eq!(opened, 100);
    }
    let id = uni(0);
    streams.write(id, &[7; 10_000]).unwrap();
    duo.world.run_for(hybriq_sim::ms(500));
    let received = duo
        .connection(Side::Server)
        .streams()
        .totals()
        .bytes_received;
    assert_eq!(received, 10_000);
}

/// Proves: rfc9000 4.5 no-data-beyond-final-size
#[test]
fn nothing_is_sent_behind_the_end() {
    let mut ends = BTreeMap::new();
    let mut sent = Vec::new();
    for packet in exchange(Network::new(5).loss(one_in(8))) {
        for frame in packet.frames.into_iter().filter(|_| packet.sent) {
            if let Seen::Stream {
                id,
                offset,
                data,
                fin,
            } = frame
            {
                let end = offset + data.len() as u64;
                if fin {
                    assert_eq!(
                        *ends.entry((packet.side.is_server(), id)).or_insert(end),
                        end
                    );
                }
                sent.push(((packet.side.is_server(), id), end));
            }
        }
    }
    assert_eq!(ends.len(), 12);
    for (stream, end) in sent {
        assert!(end <= ends[&stream], "{stream:?}: {end}");
    }
}
