use RecvState::{DataRead, DataRecvd, Recv as Receiving, ResetRead, ResetRecvd, SizeKnown};

use super::StreamId;
use crate::{
    owners::streams::{
        ClosedStream, ReadError,
        flow::{ReceiveCredit, window::Window},
        recv::{Recv, RecvState},
    },
    wire::{
        error::{Code, Violation},
        frame,
    },
};

const ID: StreamId = StreamId(0);
const STATES: [RecvState; 6] = [
    Receiving, SizeKnown, DataRecvd, DataRead, ResetRecvd, ResetRead,
];

/// A window that does not grow.
const fn fixed(bytes: u64) -> Window {
    Window::new(bytes, bytes)
}

/// Something that the peer does.
type Event = fn(&mut Half) -> Result<(), Violation>;

/// A receiving part and the credit of its connection.
struct Half {
    recv: Recv,
    total: ReceiveCredit,
}

impl Half {
    fn stream(&mut self, offset: u64, len: usize, fin: bool) -> Result<(), Violation> {
        let data = &vec![0; len];
        self.recv.on_stream(
            &frame::Stream {
                id: ID,
                offset,
                fin,
                data,
            },
            &mut self.total,
        )
    }

    fn reset(&mut self, final_size: u64) -> Result<(), Violation> {
        self.recv.on_reset_stream(
            &frame::ResetStream {
                id: ID,
                code: 5,
                final_size,
            },
            &mut self.total,
        )
    }

    fn read(&mut self) -> Result<usize, ReadError> {
        self.recv.read(&mut [0; 100], &mut self.total)
    }

    fn stop(&mut self) -> Result<bool, ClosedStream> {
        self.recv.stop(8, &mut self.total)
    }

    /// The stream has bytes 0 to 10, and ends at 20 if its size is known.
    fn in_state(state: RecvState) -> Self {
        let mut half = Self {
            recv: Recv::new(fixed(1000)),
            total: ReceiveCredit::new(fixed(1000)),
        };
        half.stream(0, 10, false).unwrap();
        match state {
            Receiving => {}
            SizeKnown => half.stream(20, 0, true).unwrap(),
            DataRecvd => half.stream(10, 10, true).unwrap(),
            DataRead => {
                half.stream(10, 10, true).unwrap();
                assert_eq!((half.read(), half.read()), (Ok(20), Ok(0)));
            }
            ResetRecvd => half.reset(20).unwrap(),
            ResetRead => {
                half.reset(20).unwrap();
                assert_eq!(half.read(), Err(ReadError::Reset(5)));
            }
        }
        assert_eq!(half.recv.state, state);
        half
    }
}

/// Applies the event to every state, and compares with the states expected.
fn every_state(event: impl Fn(&mut Half), expected: [RecvState; 6]) {
    for (state, expected) in STATES.into_iter().zip(expected) {
        let mut half = Half::in_state(state);
        event(&mut half);
        assert_eq!(half.recv.state, expected, "from {state:?}");
    }
}

#[test]
fn data_alone_changes_nothing() {
    every_state(|half| half.stream(5, 10, false).unwrap(), STATES);
}

#[test]
fn the_last_missing_data_completes_a_known_size() {
    every_state(
        |half| half.stream(10, 10, false).unwrap(),
        [
            Receiving, DataRecvd, DataRecvd, DataRead, ResetRecvd, ResetRead,
        ],
    );
}

#[test]
fn a_fin_makes_the_size_known() {
    every_state(
        |half| half.stream(20, 0, true).unwrap(),
        [
            SizeKnown, SizeKnown, DataRecvd, DataRead, ResetRecvd, ResetRead,
        ],
    );
}

#[test]
fn a_reset_counts_until_all_data_is_there() {
    every_state(
        |half| half.reset(20).unwrap(),
        [
            ResetRecvd, ResetRecvd, DataRecvd, DataRead, ResetRecvd, ResetRead,
        ],
    );
}

#[test]
fn reading_to_the_end_or_the_reset_ends_the_stream() {
    let read = |half: &mut Half| while half.read().is_ok_and(|len| len > 0) {};
    every_state(
        read,
        [
            Receiving, SizeKnown, DataRead, DataRead, ResetRead, ResetRead,
        ],
    );
}

#[test]
fn stopping_waits_for_the_final_size_only() {
    every_state(
        |half| _ = half.stop(),
        [
            Receiving, SizeKnown, DataRead, DataRead, ResetRead, ResetRead,
        ],
    );
}

#[test]
fn stop_sending_is_sent_while_data_may_come() {
    for state in STATES {
        let mut half = Half::in_state(state);
        let asked = half.stop();
        let expected = match state {
            Receiving | SizeKnown => Ok(true),
            DataRecvd | ResetRecvd => Ok(false),
            DataRead | ResetRead => Err(ClosedStream),
        };
        assert_eq!(asked, expected, "in {state:?}");
        let frame = half.recv.stop_frame(ID).map(|frame| frame.code);
        assert_eq!(frame, (expected == Ok(true)).then_some(8), "in {state:?}");
        assert_eq!(half.stop(), Err(ClosedStream), "in {state:?}, twice");
        assert_eq!(half.read(), Err(ReadError::Closed), "in {state:?}");
    }
}

#[test]
fn a_stopped_stream_is_kept_until_size_and_stop_are_known() {
    let spent = |events: [fn(&mut Half); 2]| {
        let mut half = Half::in_state(Receiving);
        half.stop().unwrap();
        events.map(|event| {
            event(&mut half);
            half.recv.is_spent()
        })
    };
    let fin = |half: &mut Half| half.stream(30, 5, true).unwrap();
    let acked = |half: &mut Half| half.recv.on_stop_acked();
    let reset = |half: &mut Half| half.reset(30).unwrap();
    assert_eq!(spent([fin, acked]), [false, true]);
    assert_eq!(spent([acked, fin]), [false, true]);
    assert_eq!(spent([reset, acked]), [true, true]);
}

/// Proves: rfc9000 4.5 final-size-is-final
#[test]
fn the_final_size_cannot_change() {
    let wrong: [(&str, Event); 5] = [
        ("data behind it", |half| half.stream(15, 10, false)),
        ("a later FIN", |half| half.stream(21, 0, true)),
        ("an earlier FIN", |half| half.stream(10, 9, true)),
        ("a larger reset", |half| half.reset(21)),
        ("a smaller reset", |half| half.reset(19)),
    ];
    for state in [SizeKnown, DataRecvd, DataRead, ResetRecvd, ResetRead] {
        for (what, event) in wrong {
            let error = event(&mut Half::in_state(state)).expect_err(what);
            assert_eq!(error.code(), Code::FINAL_SIZE_ERROR, "{what} in {state:?}");
        }
    }
}

/// Proves: rfc9000 4.5 final-size-is-final
#[test]
fn the_final_size_cannot_be_below_what_was_received() {
    for event in [
        |half: &mut Half| half.stream(5, 4, true),
        |half: &mut Half| half.reset(9),
    ] {
        let error = event(&mut Half::in_state(Receiving)).unwrap_err();
        assert_eq!(error.code(), Code::FINAL_SIZE_ERROR);
    }
    Half::in_state(Receiving).reset(10).unwrap();
    Half::in_state(Receiving).stream(10, 0, true).unwrap();
}

#[test]
fn a_reader_is_woken_by_data_the_end_and_a_reset() {
    let events: [fn(&mut Half); 3] = [
        |half| half.stream(10, 1, false).unwrap(),
        |half| half.stream(10, 0, true).unwrap(),
        |half| half.reset(10).unwrap(),
    ];
    for event in events {
        let mut half = Half::in_state(Receiving);
        assert_eq!(half.read(), Ok(10));
        assert_eq!(half.read(), Err(ReadError::Blocked));
        half.stream(20, 0, false).unwrap();
        assert!(!half.recv.wakes_reader(), "nothing to read");
        let mut half = Half::in_state(Receiving);
        assert_eq!(
            (half.read(), half.read()),
            (Ok(10), Err(ReadError::Blocked))
        );
        event(&mut half);
        assert!(half.recv.wakes_reader());
        assert!(!half.recv.wakes_reader(), "once");
    }
}

#[test]
fn credit_is_renewed_by_reading_but_not_once_the_size_is_known() {
    let mut half = Half {
        recv: Recv::new(fixed(1000)),
        total: ReceiveCredit::new(fixed(10_000)),
    };
    half.stream(0, 500, false).unwrap();
    half.recv.read(&mut [0; 249], &mut half.total).unwrap();
    assert_eq!(
        half.recv.credit_frame(ID),
        None,
        "less than a quarter of the window"
    );
    half.recv.read(&mut [0; 1], &mut half.total).unwrap();
    assert_eq!(
        half.recv.credit_frame(ID).map(|frame| frame.max),
        Some(1250)
    );
    half.stream(500, 0, true).unwrap();
    assert_eq!(half.recv.credit_frame(ID), None);
}
