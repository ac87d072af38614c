mod delivery;
mod fairness;
mod flow;
mod late_limits;
mod opening;
mod priorities;
mod queue;
mod recv_states;
mod release;
mod reset_at;
mod send_states;
mod tally;
mod transfer;
mod unordered;
mod watched;
mod windows;

use std::time::{Duration, Instant};

use hybriq_tls::Side;

use super::{Direction, Limits, PeerLimits, Sent, StreamEvent, StreamId, Streams, Timing};
use crate::wire::{
    Reader,
    error::{Code, Violation},
    frame::{Frame, FrameWriter, Owner as _},
};

/// Payload bytes of a packet.
const PACKET: usize = 1200;

/// Windows that do not grow: they start at their largest size.
const LIMITS: Limits = Limits {
    initial_receive_window: u64::MAX,
    receive_window: 100_000,
    initial_stream_receive_window: u64::MAX,
    stream_receive_window: 40_000,
    send_buffer: 1_000_000,
    max_send_buffer: 1_000_000,
    max_bidi: 10,
    max_uni: 10,
};

/// Returns the limits that an end advertises.
fn advertised(limits: Limits) -> PeerLimits {
    let stream = limits.stream_window().size();
    PeerLimits {
        max_data: limits.window().size(),
        bidi_local: stream,
        bidi_remote: stream,
        uni: stream,
        max_bidi: limits.max_bidi,
        max_uni: limits.max_uni,
        reset_at: true,
    }
}

/// Client and server that know each other's limits.
fn pair_with(limits: Limits) -> (Streams, Streams) {
    let [client, server] = [Side::Client, Side::Server].map(|side| {
        let mut streams = Streams::new(side, limits);
        streams.set_peer_limits(advertised(limits));
        streams
    });
    (client, server)
}

fn pair() -> (Streams, Streams) {
    pair_with(LIMITS)
}

/// Writes one packet with pending frames. Returns `None` if there are none.
fn packet(from: &mut Streams) -> Option<(Vec<u8>, Sent)> {
    let now = Instant::now();
    let rtt = Duration::from_millis(100);
    packet_at(Timing { now, rtt }, PACKET, from)
}

/// Writes pending frames, one packet of a given size at a time.
fn packet_at(timing: Timing, size: usize, from: &mut Streams) -> Option<(Vec<u8>, Sent)> {
    let mut buffer = vec![0; size];
    let mut out = FrameWriter::new(&mut buffer);
    let mut sent = Sent::default();
    from.write_frames(timing, &mut out, &mut sent);
    let len = out.len();
    buffer.truncate(len);
    assert_eq!(sent.is_empty(), len == 0, "every frame is recorded");
    (len > 0).then_some((buffer, sent))
}

/// Writes all packets with pending frames.
fn packets(from: &mut Streams) -> Vec<(Vec<u8>, Sent)> {
    let packets = std::iter::from_fn(|| packet(from)).collect();
    assert!(
        !from.has_pending(),
        "nothing is pending after an empty packet"
    );
    packets
}

/// The frames of a payload.
fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
    let mut reader = Reader::new(payload);
    let next = || (!reader.is_empty()).then(|| Frame::decode(&mut reader).expect("our own frame"));
    std::iter::from_fn(next).collect()
}

/// Hands a frame to the streams, as the connection does.
fn receive(to: &mut Streams, frame: &Frame<'_>) -> Result<(), Violation> {
    match frame {
        Frame::Stream(frame) => to.on_stream(frame),
        Frame::ResetStream(frame) => to.on_reset_stream(frame),
        Frame::ResetStreamAt(frame) => to.on_reset_stream_at(frame),
        Frame::StopSending(frame) => to.on_stop_sending(frame),
        Frame::MaxData(frame) => to.on_max_data(frame),
        Frame::MaxStreamData(frame) => to.on_max_stream_data(frame),
        Frame::MaxStreams(frame) => to.on_max_streams(frame),
        Frame::DataBlocked(frame) => to.on_data_blocked(frame),
        Frame::StreamDataBlocked(frame) => to.on_stream_data_blocked(frame),
        Frame::StreamsBlocked(frame) => to.on_streams_blocked(frame),
        Frame::Padding(_) => Ok(()),
        other => panic!("not a frame of streams: {other:?}"),
    }
}

fn deliver(payload: &[u8], to: &mut Streams) {
    for frame in frames(payload) {
        receive(to, &frame).expect("our own frame is allowed");
    }
}

/// Delivers and acknowledges everything that is pending. Returns the frames, as text.
fn send_all(from: &mut Streams, to: &mut Streams) -> Vec<String> {
    let mut seen = Vec::new();
    for (payload, sent) in packets(from) {
        deliver(&payload, to);
        from.on_acked(&sent);
        seen.extend(frames(&payload).iter().map(|frame| format!("{frame:?}")));
    }
    seen
}

/// Runs both ends until neither has anything to send.
fn exchange_all(one: &mut Streams, other: &mut Streams) {
    while one.has_pending() || other.has_pending() {
        send_all(one, other);
        send_all(other, one);
    }
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

/// Reads all available data.
fn read_all(streams: &mut Streams, id: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = streams.read(id, &mut buffer) {
        all.extend_from_slice(&buffer[..len]);
    }
    all
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidi, index)
}

fn client_uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Uni, index)
}

/// A STREAM frame.
fn stream(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Frame<'_> {
    Frame::Stream(crate::wire::frame::Stream {
        id,
        offset,
        fin,
        data,
    })
}

fn code(result: Result<(), Violation>) -> Option<Code> {
    result.err().map(Violation::code)
}
