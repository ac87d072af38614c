//! Windows and buffers over a long fat path: one sender, one receiver, and a model of the link, of
//! congestion control and of the reader between them.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    Direction, LIMITS, Limits, Sent, StreamId, Streams, Timing, client_bidi, deliver, frames,
    packet_at, pair_with, receive, stream,
};
use crate::{
    owners::streams::{
        ReadError, WriteError,
        flow::{ReceiveCredit, window::Window},
    },
    wire::frame::{Frame, Owner as _, ResetStream},
};

const MIB: u64 = 1024 * 1024;

/// The defaults of the configuration.
const DEFAULT: Limits = Limits {
    initial_receive_window: 3 * MIB / 2,
    receive_window: 24 * MIB,
    initial_stream_receive_window: MIB,
    stream_receive_window: 16 * MIB,
    send_buffer: MIB,
    max_send_buffer: 16 * MIB,
    ..LIMITS
};

/// Windows and buffers that are never the limit.
const ENDLESS: Limits = Limits {
    initial_receive_window: 1 << 40,
    receive_window: 1 << 40,
    initial_stream_receive_window: 1 << 40,
    stream_receive_window: 1 << 40,
    max_send_buffer: 1 << 40,
    ..DEFAULT
};

/// Bytes of a packet. Larger than on the wire, for speed; nothing here depends on it.
const LARGE: usize = 12_000;

const MS: Duration = Duration::from_millis(1);

/// A link with a delay and a rate, without loss unless asked for.
#[derive(Clone, Copy)]
struct Link {
    /// Bytes in a millisecond.
    rate: u64,
    delay: Duration,
    /// Largest number of bytes the application reads in a millisecond.
    reader: u64,
    /// Milliseconds that the reader sleeps between reads.
    sleep: u32,
    /// Interval at which packets from the receiver are lost.
    lost: Option<usize>,
}

/// 200 Mbit/s and a round trip of 250 ms, and a reader that reads all there is.
const FAT: Link = Link {
    rate: 25_000,
    delay: Duration::from_millis(125),
    reader: u64::MAX,
    sleep: 1,
    lost: None,
};

impl Link {
    /// Returns the bandwidth-delay product in bytes.
    fn holds(self) -> u64 {
        self.rate * 2 * self.delay.as_millis() as u64
    }
}

/// A packet in flight: its arrival and its contents.
type Flying = (Instant, Vec<u8>, Sent);

struct Transfer {
    link: Link,
    now: Instant,
    client: Streams,
    server: Streams,
    id: StreamId,
    accepted: bool,
    up: VecDeque<Flying>,
    /// Packets that arrived and are not acknowledged yet, with their sizes.
    acks: VecDeque<(Instant, Sent, u64)>,
    down: VecDeque<Flying>,
    window: u64,
    in_flight: u64,
    read: u64,
    /// Bytes that the sender could have sent once up to speed, but for lack of credit or data.
    idle: u64,
    turns: u32,
    answers: usize,
    /// `MAX_DATA` and `MAX_STREAM_DATA` frames the receiver sent.
    renewals: u64,
    most_held: u64,
}

impl Transfer {
    fn new(link: Link, limits: Limits) -> Self {
        let (mut client, server) = pair_with(limits);
        let id = client.open(Direction::Bidi).unwrap();
        Self {
            link,
            now: Instant::now(),
            client,
            server,
            id,
            accepted: false,
            up: VecDeque::new(),
            acks: VecDeque::new(),
            down: VecDeque::new(),
            window: 10 * 1200,
            in_flight: 0,
            read: 0,
            idle: 0,
            turns: 0,
            answers: 0,
            renewals: 0,
            most_held: 0,
        }
    }

    fn timing(&self) -> Timing {
        Timing {
            now: self.now,
            rtt: 2 * self.link.delay,
        }
    }

    /// Runs for some milliseconds. Returns the bytes read.
    fn run(&mut self, milliseconds: u32) -> u64 {
        let before = self.read;
        for _ in 0..milliseconds {
            self.now += MS;
            self.arrive();
            self.send();
            self.turns += 1;
        }
        self.read - before
    }

    fn arrive(&mut self) {
        let due = |at: Option<&Instant>| at.is_some_and(|&at| at <= self.now);
        while due(self.acks.front().map(|(at, ..)| at)) {
            let (_, sent, size) = self.acks.pop_front().unwrap();
            self.client.on_acked(&sent);
            self.in_flight -= size;
            // Slow start, and an eighth of the path in its queue.
            let most = self.link.holds() * 9 / 8;
            self.window = (self.window + size).min(most);
        }
        while due(self.down.front().map(|(at, ..)| at)) {
            let (_, payload, sent) = self.down.pop_front().unwrap();
            self.answers += 1;
            if self
                .link
                .lost
                .is_some_and(|every| self.answers.is_multiple_of(every))
            {
                self.server.on_lost(&sent);
            } else {
                deliver(&payload, &mut self.client);
                self.server.on_acked(&sent);
            }
        }
        while due(self.up.front().map(|(at, ..)| at)) {
            let (_, payload, sent) = self.up.pop_front().unwrap();
            deliver(&payload, &mut self.server);
            let heard = self.now + self.link.delay;
            self.acks.push_back((heard, sent, payload.len() as u64));
        }
        self.read();
        while let Some((payload, sent)) = packet_at(self.timing(), LARGE, &mut self.server) {
            let credit =
                |frame: &Frame<'_>| matches!(frame, Frame::MaxData(_) | Frame::MaxStreamData(_));
            self.renewals += frames(&payload).iter().filter(|it| credit(it)).count() as u64;
            let arrives = self.now + self.link.delay;
            self.down.push_back((arrives, payload, sent));
        }
    }

    fn read(&mut self) {
        self.accepted |= self.server.accept(Direction::Bidi).is_some();
        if !self.accepted || !self.turns.is_multiple_of(self.link.sleep) {
            return;
        }
        let mut left = self.link.reader;
        while left > 0 {
            let max = usize::try_from(left).unwrap_or(usize::MAX);
            match self.server.read_chunk(self.id, max) {
                Ok(Some(chunk)) => {
                    left -= chunk.len() as u64;
                    self.read += chunk.len() as u64;
                }
                Err(ReadError::Blocked) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn send(&mut self) {
        self.write();
        let mut budget = self.link.rate;
        let full = self.window == self.link.holds() * 9 / 8;
        while budget > 0 {
            let size = LARGE.min(usize::try_from(budget).unwrap_or(LARGE)).max(100);
            if self.in_flight + size as u64 > self.window {
                return;
            }
            let Some((payload, sent)) = packet_at(self.timing(), size, &mut self.client) else {
                self.idle += budget * u64::from(full);
                return;
            };
            budget = budget.saturating_sub(payload.len() as u64);
            self.in_flight += payload.len() as u64;
            let arrives = self.now + self.link.delay;
            self.up.push_back((arrives, payload, sent));
            while self.client.poll_event().is_some() {}
            self.write();
        }
    }

    fn write(&mut self) {
        static DATA: [u8; 256 * 1024] = [0; 256 * 1024];
        loop {
            match self
                .client
                .write_chunk(self.id, &mut Bytes::from_static(&DATA))
            {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let send = self.client.sends.get_mut(self.id).unwrap();
        self.most_held = self.most_held.max(send.buffer.held());
    }

    /// Returns the receiver's windows of the connection and of the stream.
    fn windows(&mut self) -> (u64, u64) {
        let stream = self.server.recvs.get_mut(self.id).unwrap();
        (self.server.receive_credit.window(), stream.credit.window())
    }
}

#[test]
fn a_long_fat_path_is_filled_as_if_there_were_no_windows() {
    let mut endless = Transfer::new(FAT, ENDLESS);
    let mut tuned = Transfer::new(FAT, DEFAULT);
    let (most, got) = (endless.run(3000), tuned.run(3000));
    assert!(got * 100 >= most * 98, "{got} of {most} in the ramp-up");
    let (most, got) = (endless.run(2000), tuned.run(2000));
    assert!(got * 1000 >= 2000 * FAT.rate * 999, "{got} of {most}");
    assert_eq!(tuned.idle, 0, "it never waited for credit or for a writer");
    let (connection, stream) = tuned.windows();
    assert!(
        stream >= FAT.holds() * 4 / 3 && stream <= FAT.holds() * 6,
        "{stream}"
    );
    assert!(connection * 2 >= stream * 3, "{connection} for {stream}");
}

#[test]
fn a_short_path_keeps_its_small_windows() {
    let short = Link {
        delay: 5 * MS,
        ..FAT
    };
    let mut transfer = Transfer::new(short, DEFAULT);
    transfer.run(100);
    assert!(transfer.run(1000) >= 999 * short.rate);
    assert_eq!(transfer.windows(), (3 * MIB / 2, MIB));
    assert_eq!(transfer.idle, 0);
}

#[test]
fn a_sender_holds_what_is_under_way_and_no_more_than_may_wait() {
    let mut transfer = Transfer::new(FAT, DEFAULT);
    transfer.run(4000);
    let least = FAT.holds();
    assert!((least..least * 9 / 8 + MIB + LARGE as u64).contains(&transfer.most_held));

    let mut bounded = Transfer::new(
        FAT,
        Limits {
            max_send_buffer: 2 * MIB,
            ..DEFAULT
        },
    );
    bounded.run(4000);
    assert_eq!(bounded.most_held, 2 * MIB);
}

#[test]
fn windows_grow_to_their_bounds_and_no_further() {
    let limits = Limits {
        receive_window: 5_000_000,
        stream_receive_window: 3_000_000,
        ..DEFAULT
    };
    let mut transfer = Transfer::new(FAT, limits);
    transfer.run(4000);
    assert_eq!(transfer.windows(), (5_000_000, 3_000_000));
    let limits = Limits {
        receive_window: 2_000_000,
        ..DEFAULT
    };
    let mut transfer = Transfer::new(FAT, limits);
    transfer.run(4000);
    assert_eq!(transfer.windows().0, 2_000_000);
    // More than that cannot be in flight.
    assert!(transfer.run(1000) <= 4 * 2_000_000 + MIB);
}

#[test]
fn a_slow_reader_gets_no_larger_window() {
    // 1 MB/s out of 25, in small steps, or rarely and then everything available.
    let steady = Link {
        reader: 1000,
        ..FAT
    };
    let seldom = Link { sleep: 2000, ..FAT };
    let at_once = Link {
        reader: 100_000,
        sleep: 400,
        ..FAT
    };
    for link in [steady, seldom, at_once] {
        let mut transfer = Transfer::new(link, DEFAULT);
        let read = transfer.run(12_000);
        assert!(read > MIB, "{read}");
        assert_eq!(transfer.windows(), (3 * MIB / 2, MIB));
    }
}

#[test]
fn a_reader_that_wakes_to_a_full_window_in_several_turns_is_slow_all_the_same() {
    let (_, mut server) = pair_with(DEFAULT);
    let id = client_bidi(0);
    let mut now = Instant::now();
    let rtt = 100 * MS;
    let data = vec![0; MIB as usize / 8];
    for round in 0..10 {
        for part in 0..8 {
            let offset = round * MIB + part * MIB / 8;
            receive(&mut server, &stream(id, offset, &data, false)).unwrap();
        }
        server.accept(Direction::Bidi);
        now += Duration::from_secs(5);
        for _ in 0..64 {
            let mut buffer = vec![0; MIB as usize / 64];
            assert_eq!(server.read(id, &mut buffer), Ok(buffer.len()));
            while packet_at(Timing { now, rtt }, LARGE, &mut server).is_some() {}
            now += MS;
        }
    }
    assert_eq!(server.recvs.get_mut(id).unwrap().credit.window(), MIB);
    assert_eq!(server.receive_credit.window(), 3 * MIB / 2);
}

#[test]
fn data_that_is_dropped_unread_grows_nothing() {
    let (_, mut server) = pair_with(DEFAULT);
    let mut now = Instant::now();
    for index in 0..100 {
        let id = client_bidi(index);
        receive(&mut server, &stream(id, MIB / 2, &[0], false)).unwrap();
        server.accept(Direction::Bidi);
        if index % 2 == 0 {
            server.stop(id, 0).unwrap();
        }
        let reset = ResetStream {
            id,
            code: 0,
            final_size: MIB,
        };
        receive(&mut server, &Frame::ResetStream(reset)).unwrap();
        server.forget_recv(id, 0);
        server.forget_send(id, 0);
        let timing = Timing { now, rtt: 100 * MS };
        while let Some((_, sent)) = packet_at(timing, LARGE, &mut server) {
            server.on_acked(&sent);
        }
        now += MS;
        if index >= 9 && server.totals().opened_by_peer < index {
            break;
        }
    }
    assert!(server.totals().bytes_received >= 10 * MIB);
    assert_eq!(server.receive_credit.window(), 3 * MIB / 2);
}

#[test]
fn an_unread_stream_does_not_keep_the_window_of_the_others_small() {
    let (_, mut server) = pair_with(DEFAULT);
    let (unread, busy) = (client_bidi(0), client_bidi(1));
    let data = vec![0; 64 * 1024];
    for part in 0..12 {
        receive(&mut server, &stream(unread, part * 64 * 1024, &data, false)).unwrap();
    }
    let mut now = Instant::now();
    for part in 0..100 {
        receive(&mut server, &stream(busy, part * 64 * 1024, &data, false)).unwrap();
        assert_eq!(server.read(busy, &mut data.clone()), Ok(data.len()));
        let rtt = 100 * MS;
        while packet_at(Timing { now, rtt }, LARGE, &mut server).is_some() {}
        now += 5 * MS;
    }
    assert!(server.receive_credit.window() >= 2 * MIB);
}

#[test]
fn the_window_of_the_connection_keeps_ahead_of_that_of_a_stream() {
    let (_, mut server) = pair_with(Limits {
        initial_receive_window: MIB,
        ..DEFAULT
    });
    let id = client_bidi(0);
    let data = vec![0; 256 * 1024];
    let mut now = Instant::now();
    for part in 0..3 {
        receive(&mut server, &stream(id, part * 256 * 1024, &data, false)).unwrap();
        assert_eq!(server.read(id, &mut data.clone()), Ok(data.len()));
        let rtt = 100 * MS;
        while packet_at(Timing { now, rtt }, LARGE, &mut server).is_some() {}
        now += MS;
        let stream = server.recvs.get_mut(id).unwrap().credit.window();
        let expected = [(MIB, MIB), (3 * MIB, 2 * MIB), (3 * MIB, 2 * MIB)][part as usize];
        assert_eq!((server.receive_credit.window(), stream), expected);
    }
}

#[test]
fn a_later_stream_grows_at_once_to_what_an_earlier_one_needed() {
    let (_, mut server) = pair_with(DEFAULT);
    let data = vec![0; 256 * 1024];
    let mut now = Instant::now();
    let mut windows = Vec::new();
    for (index, parts) in [(0, 12), (1, 2)] {
        let id = client_bidi(index);
        for part in 0..parts {
            receive(&mut server, &stream(id, part * 256 * 1024, &data, false)).unwrap();
            assert_eq!(server.read(id, &mut data.clone()), Ok(data.len()));
            let rtt = 100 * MS;
            while packet_at(Timing { now, rtt }, LARGE, &mut server).is_some() {}
            now += MS;
            windows.push(server.recvs.get_mut(id).unwrap().credit.window() / MIB);
        }
    }
    let (first, second) = windows.split_at(12);
    assert_eq!(first.last(), Some(&8), "{windows:?}");
    assert_eq!(second, [1, 8]);
}

#[test]
fn a_peer_with_a_window_of_four_thirds_of_the_path_never_waits() {
    let window = FAT.holds() * 9 / 8 * 4 / 3 + 2 * LARGE as u64;
    let fixed = Limits {
        initial_receive_window: u64::MAX,
        receive_window: window,
        initial_stream_receive_window: u64::MAX,
        stream_receive_window: window,
        ..DEFAULT
    };
    let mut transfer = Transfer::new(FAT, fixed);
    transfer.run(5000);
    assert_eq!(transfer.idle, 0);
    assert!(transfer.run(1000) >= 999 * FAT.rate);
    // Less is not enough: the test would notice.
    let mut tight = Transfer::new(
        FAT,
        Limits {
            stream_receive_window: FAT.holds(),
            ..fixed
        },
    );
    tight.run(5000);
    assert!(tight.idle > 0);
}

#[test]
fn limits_are_renewed_a_few_times_in_a_window_and_not_more() {
    let mut transfer = Transfer::new(FAT, DEFAULT);
    let read = transfer.run(4000) / MIB;
    assert!(read >= 40);
    assert!(
        transfer.renewals <= 40,
        "{} for {read} MiB",
        transfer.renewals
    );
    // At most four for each window, of the stream and of the connection.
    let (before, (connection, stream)) = (transfer.renewals, transfer.windows());
    let read = transfer.run(2000);
    let most = 4 * (read.div_ceil(stream) + read.div_ceil(connection)) + 2;
    assert!(transfer.renewals - before <= most);
}

#[test]
fn limits_that_are_lost_are_repeated_and_the_path_stays_full() {
    let lossy = Link {
        lost: Some(3),
        ..FAT
    };
    let mut transfer = Transfer::new(lossy, DEFAULT);
    transfer.run(4000);
    assert!(transfer.run(2000) >= 1990 * FAT.rate);
}

fn fast(window: u64, max: u64) -> (ReceiveCredit, Timing) {
    let timing = Timing {
        now: Instant::now(),
        rtt: 100 * MS,
    };
    (ReceiveCredit::new(Window::new(window, max)), timing)
}

/// Receives and reads everything allowed, and sends the limit.
fn cycle(credit: &mut ReceiveCredit, timing: &mut Timing, bytes: u64, takes: Duration) {
    timing.now += takes;
    credit.receive(bytes);
    credit.consume(bytes);
    credit.tune(*timing);
    credit.advertise();
}

#[test]
fn a_window_grows_while_it_lasts_for_less_than_three_round_trips() {
    for (milliseconds, grows) in [(10, true), (74, true), (75, false), (500, false)] {
        let (mut credit, mut timing) = fast(1000, 1 << 30);
        cycle(&mut credit, &mut timing, 250, MS);
        cycle(&mut credit, &mut timing, 250, milliseconds * MS);
        let expected = if grows { 2000 } else { 1000 };
        assert_eq!(credit.window(), expected, "a quarter in {milliseconds} ms");
    }
}

#[test]
fn the_first_bytes_say_nothing_about_time() {
    let (mut credit, mut timing) = fast(1000, 1 << 30);
    cycle(&mut credit, &mut timing, 1000, Duration::ZERO);
    assert_eq!(credit.window(), 1000);
}

#[test]
fn a_few_bytes_read_at_once_say_nothing_about_speed() {
    let (mut credit, mut timing) = fast(1000, 1 << 30);
    cycle(&mut credit, &mut timing, 250, MS);
    for _ in 0..124 {
        cycle(&mut credit, &mut timing, 1, Duration::ZERO);
        assert_eq!(credit.window(), 1000);
    }
    cycle(&mut credit, &mut timing, 1, Duration::ZERO);
    assert_eq!(credit.window(), 2000, "an eighth of the window does");
}

#[test]
fn what_arrives_and_is_not_read_grows_nothing() {
    let (mut credit, mut timing) = fast(1000, 1 << 30);
    cycle(&mut credit, &mut timing, 250, MS);
    timing.now += MS;
    credit.receive(1000);
    credit.tune(timing);
    assert_eq!(credit.window(), 1000);
    // And data that was read and arrived long before does not grow the window either.
    timing.now += 50 * MS;
    credit.tune(timing);
    timing.now += 60 * MS;
    credit.tune(timing);
    credit.consume(1000);
    timing.now += MS;
    credit.tune(timing);
    assert_eq!(credit.window(), 1000);
}

#[test]
fn a_window_never_shrinks_and_has_a_bound_on_the_wire() {
    let (mut credit, mut timing) = fast(u64::MAX, u64::MAX);
    assert_eq!(credit.window(), (1 << 62) - 1);
    for _ in 0..10 {
        cycle(&mut credit, &mut timing, 1 << 58, MS);
        assert_eq!(credit.target(), (1 << 62) - 1);
    }
    let (mut credit, mut timing) = fast(1000, 10);
    assert_eq!(credit.window(), 10, "the bound counts");
    cycle(&mut credit, &mut timing, 10, MS);
    cycle(&mut credit, &mut timing, 10, MS);
    assert_eq!(credit.window(), 10);
    credit.raise_window(5);
    assert_eq!(credit.window(), 10);
}

#[test]
fn a_very_short_round_trip_counts_as_a_millisecond() {
    let (mut credit, mut timing) = fast(1000, 1 << 30);
    timing.rtt = Duration::ZERO;
    cycle(&mut credit, &mut timing, 250, MS);
    cycle(&mut credit, &mut timing, 250, MS / 2);
    assert_eq!(credit.window(), 2000);
    cycle(&mut credit, &mut timing, 500, MS);
    assert_eq!(credit.window(), 2000);
}
