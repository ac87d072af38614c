//! Sessions of WebTransport: capsules of a hostile peer, and two ends whose capsules come late.

use hybriq::Direction;
use hybriq_h3::{
    Violation,
    webtransport::{Capsule, Dialect, Event, FlowControl, LONGEST_REASON, Session, Terms, Windows},
};

/// A part of what a hostile peer sends: a capsule, or any bytes.
pub(crate) type Part = (u8, u64, Vec<u8>);

/// A step of an honest pair: what happens, and a number.
pub(crate) type Step = (u8, u8);

/// Bytes of a capsule that an end may hold: the content of the longest that it reads.
const HELD: usize = 4 + LONGEST_REASON;

/// More than all capsules take that may wait at once, without the reason of the last.
const OUTPUT: usize = 100;

/// Larger than any window here.
const MANY: u64 = 1000;

const DIRECTIONS: [Direction; 2] = [Direction::Bidi, Direction::Uni];

fn windows(choice: u8) -> Windows {
    let data = [1, 7, 100, 0][usize::from(choice / 16 % 4)];
    Windows::new((choice % 4).into(), (choice / 4 % 4).into(), data)
}

fn session(own: Windows, peer: Windows) -> Session {
    Session::new(Terms::new(
        Dialect::Draft15,
        Some(FlowControl { own, peer }),
    ))
}

/// Returns how many streams an end may open, and what it may send.
fn credit(session: &mut Session) -> [u64; 3] {
    let [bidi, uni] = DIRECTIONS.map(|direction| {
        let open = (0..MANY).take_while(|_| session.take_stream(direction));
        open.count() as u64
    });
    [bidi, uni, session.take_data(MANY)]
}

/// What an end makes of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    result: Result<(), Violation>,
    is_draining: bool,
    closed: Option<(u32, String)>,
    credit: [u64; 3],
}

/// Encodes what a peer sends.
pub(crate) fn encode(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, value, bytes) in parts {
        let direction = DIRECTIONS[bytes.len() % 2];
        let value = if kind & 0x80 == 0 { value % 50 } else { *value };
        match kind % 8 {
            0 => Capsule::MaxData(value).write(&mut out),
            1 => Capsule::MaxStreams(direction, value).write(&mut out),
            2 => Capsule::DataBlocked(value).write(&mut out),
            3 => Capsule::StreamsBlocked(direction, value).write(&mut out),
            4 => Capsule::Drain.write(&mut out),
            5 if kind & 0x40 != 0 => {
                let reason = String::from_utf8_lossy(bytes);
                Capsule::close(value as u32, &reason).write(&mut out);
            }
            _ => out.extend_from_slice(bytes),
        }
    }
    out
}

/// Gives bytes to an end in pieces of this size, and then their end.
pub(crate) fn play(choice: u8, bytes: &[u8], piece: usize) -> Verdict {
    let mut session = session(windows(choice), windows(choice.rotate_left(3)));
    let mut verdict = Verdict {
        result: Ok(()),
        is_draining: false,
        closed: None,
        credit: [0; 3],
    };
    let mut data = bytes.chunks(piece.max(1));
    while verdict.result.is_ok() {
        let piece = data.next();
        verdict.result = match piece {
            Some(piece) => session.on_data(piece.to_vec().into()),
            None => session.on_fin(),
        };
        assert!(session.held() <= HELD, "{} bytes", session.held());
        while let Some(event) = session.poll_event() {
            match event {
                Event::Drain => verdict.is_draining = true,
                Event::Closed { code, reason } => verdict.closed = Some((code, reason)),
                _ => {}
            }
        }
        if piece.is_none() {
            break;
        }
    }
    verdict.credit = credit(&mut session);
    assert!(session.take_output().len() <= OUTPUT);
    assert!(!session.has_output());
    verdict
}

/// One end of an honest pair, and what is on its way to it.
struct End {
    session: Session,
    window: Windows,
    /// Capsules.
    arriving: Vec<u8>,
    /// Streams that the peer has opened and whose header has not arrived, and those that are open.
    streams: [(u64, u64); 2],
    /// Bytes of streams that have not arrived, and those that are not read.
    data: (u64, u64),
}

/// Two ends.
pub(crate) struct Pair([End; 2]);

impl Pair {
    pub(crate) fn new(choice: u8) -> Self {
        let own = [windows(choice), windows(choice.rotate_left(3))];
        Self([0, 1].map(|side| End {
            session: session(own[side], own[1 - side]),
            window: own[side],
            arriving: Vec::new(),
            streams: [(0, 0); 2],
            data: (0, 0),
        }))
    }

    pub(crate) fn step(&mut self, (what, number): Step) {
        let [one, other] = &mut self.0;
        let (end, peer) = if number % 2 == 0 {
            (one, other)
        } else {
            (other, one)
        };
        let most = u64::from(number / 4);
        let index = usize::from(number / 2 % 2);
        let direction = DIRECTIONS[index];
        let streams = &mut peer.streams[index];
        match what % 9 {
            0 => streams.0 += u64::from(end.session.take_stream(direction)),
            1 => peer.data.0 += end.session.take_data(most),
            // What was taken was not used.
            2 if streams.0 > 0 => {
                streams.0 -= 1;
                end.session.give_back_stream(direction);
            }
            3 => {
                let unused = most.min(peer.data.0);
                peer.data.0 -= unused;
                end.session.give_back_data(unused);
            }
            4 => peer.arrive(index, most),
            5 => peer.consume(index, most),
            6 => peer.arriving.extend(end.session.take_output()),
            7 => end.read(number.into()),
            8 if number > 250 => end.session.drain(),
            _ => {}
        }
    }

    /// Delivers everything, and reads it. Then nothing waits, and each end may use more than half of its windows
    /// again: no credit is lost.
    pub(crate) fn finish(mut self) {
        for _ in 0..3 {
            for side in [0, 1] {
                let capsules = self.0[side].session.take_output();
                self.0[1 - side].arriving.extend(capsules);
            }
            for end in &mut self.0 {
                end.read(usize::MAX);
                for index in [0, 1] {
                    while end.streams[index] != (0, 0) {
                        end.arrive(index, u64::MAX);
                        end.consume(index, u64::MAX);
                    }
                }
                end.arrive(0, u64::MAX);
                end.consume(0, u64::MAX);
            }
        }
        assert!(self.0.iter().all(|end| !end.session.has_output()));
        for side in [0, 1] {
            let Windows {
                bidi, uni, data, ..
            } = self.0[1 - side].window;
            let credit = credit(&mut self.0[side].session);
            for (window, credit) in [bidi, uni, data].into_iter().zip(credit) {
                let least = window.div_euclid(2) + window.min(1);
                assert!((least..=window).contains(&credit), "{credit} of {window}");
            }
        }
    }
}

impl End {
    /// A stream and data arrive.
    fn arrive(&mut self, index: usize, most: u64) {
        let (coming, open) = &mut self.streams[index];
        if *coming > 0 {
            *coming -= 1;
            *open += 1;
            let taken = self.session.on_stream(DIRECTIONS[index]);
            taken.expect("a stream within the limit");
        }
        let most = most.min(self.data.0);
        self.data.0 -= most;
        self.data.1 += most;
        let taken = self.session.on_received(most);
        taken.expect("data within the limit");
    }

    /// A stream is over, and data is read.
    fn consume(&mut self, index: usize, most: u64) {
        let open = &mut self.streams[index].1;
        if *open > 0 {
            *open -= 1;
            self.session.on_stream_over(DIRECTIONS[index]);
        }
        let most = most.min(self.data.1);
        self.data.1 -= most;
        self.session.on_consumed(most);
    }

    /// Reads capsules that have arrived.
    fn read(&mut self, most: usize) {
        let most = most.min(self.arriving.len());
        let data: Vec<u8> = self.arriving.drain(..most).collect();
        let taken = self.session.on_data(data.into());
        taken.expect("capsules of our own");
        while self.session.poll_event().is_some() {}
    }
}
