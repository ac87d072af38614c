use SendState::{DataRecvd, DataSent, Ready, ResetRecvd, ResetSent, Send as Sending};

use super::{Sent, StreamId};
use crate::{
    owners::streams::{
        ClosedStream, WriteError,
        send::{Send, SendRoom, SendState, sent::End},
    },
    wire::frame::FrameWriter,
};

const ID: StreamId = StreamId(0);
const LIMIT: u64 = 1000;
const ROOM: SendRoom = SendRoom {
    unsent: LIMIT,
    held: LIMIT,
};

const STATES: [SendState; 6] = [Ready, Sending, DataSent, DataRecvd, ResetSent, ResetRecvd];

/// Sends everything there is.
fn transmit(send: &mut Send) {
    let mut buffer = [0; 1200];
    let mut out = FrameWriter::new(&mut buffer);
    let mut sent = Sent::default();
    send.write_free(ID, &mut out, &mut sent);
    if send.has_fresh() {
        send.write_fresh(ID, u64::MAX, &mut out, &mut sent);
    }
}

/// A sending part in the state, with ten bytes sent from `Send` on.
fn in_state(state: SendState) -> Send {
    let mut send = Send::new(LIMIT);
    if state == Ready {
        return send;
    }
    assert_eq!(send.write(&[0; 10], ROOM), Ok(10));
    transmit(&mut send);
    match state {
        Ready | Sending => {}
        DataSent | DataRecvd => {
            send.finish().unwrap();
            transmit(&mut send);
        }
        ResetSent | ResetRecvd => send.reset(7).unwrap(),
    }
    match state {
        DataRecvd => {
            send.on_stream_acked(0, 10, End::Open);
            send.on_stream_acked(10, 0, End::Fin);
        }
        ResetRecvd => assert!(send.on_reset_acked()),
        _ => {}
    }
    assert_eq!(send.state, state);
    send
}

/// Applies the event to every state, and compares with the states expected.
fn every_state(event: impl Fn(&mut Send), expected: [SendState; 6]) {
    for (state, expected) in STATES.into_iter().zip(expected) {
        let mut send = in_state(state);
        event(&mut send);
        assert_eq!(send.state, expected, "from {state:?}");
    }
}

#[test]
fn sending_data_starts_the_stream() {
    let write = |send: &mut Send| {
        _ = send.write(&[0; 10], ROOM);
        transmit(send);
    };
    every_state(
        write,
        [Sending, Sending, DataSent, DataRecvd, ResetSent, ResetRecvd],
    );
}

#[test]
fn reporting_a_blocked_stream_starts_it() {
    every_state(
        Send::on_blocked_sent,
        STATES.map(|it| if it == Ready { Sending } else { it }),
    );
}

#[test]
fn sending_the_fin_ends_the_data() {
    let finish = |send: &mut Send| {
        _ = send.finish();
        transmit(send);
    };
    every_state(
        finish,
        [
            DataSent, DataSent, DataSent, DataRecvd, ResetSent, ResetRecvd,
        ],
    );
}

#[test]
fn finishing_alone_changes_nothing() {
    every_state(|send| _ = send.finish(), STATES);
}

#[test]
fn resetting_aborts_unless_all_is_acknowledged() {
    every_state(
        |send| _ = send.reset(1),
        [
            ResetSent, ResetSent, ResetSent, DataRecvd, ResetSent, ResetRecvd,
        ],
    );
}

#[test]
fn stop_sending_aborts_unless_all_is_acknowledged() {
    every_state(
        |send| assert_eq!(send.on_stop_sending(9), send.stop_code() == Some(9)),
        [
            ResetSent, ResetSent, ResetSent, DataRecvd, ResetSent, ResetRecvd,
        ],
    );
}

#[test]
fn releasing_aborts_what_is_not_finished() {
    every_state(
        |send| _ = send.release(0),
        [
            ResetSent, ResetSent, DataSent, DataRecvd, ResetSent, ResetRecvd,
        ],
    );
}

#[test]
fn acknowledged_data_and_fin_end_the_stream() {
    for state in [Sending, DataSent, DataRecvd, ResetSent, ResetRecvd] {
        let mut send = in_state(state);
        assert!(!send.on_stream_acked(0, 10, End::Open), "in {state:?}");
        assert_eq!(send.state, state);
    }
    for state in [DataSent, DataRecvd, ResetSent, ResetRecvd] {
        let mut send = in_state(state);
        send.on_stream_acked(0, 10, End::Open);
        let news = send.on_stream_acked(10, 0, End::Fin);
        assert_eq!(news, state == DataSent, "in {state:?}, once");
        assert_eq!(
            send.state,
            if state == DataSent { DataRecvd } else { state }
        );
    }
}

#[test]
fn a_fin_acknowledged_before_the_data_does_not_end_the_stream() {
    let mut send = in_state(DataSent);
    assert!(!send.on_stream_acked(10, 0, End::Fin));
    assert_eq!(send.state, DataSent);
    assert!(send.on_stream_acked(0, 10, End::Open));
    assert_eq!(send.state, DataRecvd);
}

#[test]
fn an_acknowledged_reset_ends_the_stream() {
    every_state(
        |send| _ = send.on_reset_acked(),
        [Ready, Sending, DataSent, DataRecvd, ResetRecvd, ResetRecvd],
    );
}

#[test]
fn loss_changes_no_state() {
    let lost = |send: &mut Send| {
        if send.state != Ready {
            send.on_stream_lost(0, 10, End::Open);
        }
        if send.state == DataSent {
            send.on_stream_lost(10, 0, End::Fin);
        }
        assert_eq!(send.has_free(), matches!(send.state, Sending | DataSent));
    };
    every_state(lost, STATES);
}

#[test]
fn writing_after_the_end_is_refused() {
    for state in STATES {
        let expected = match state {
            Ready | Sending => Ok(1),
            _ => Err(WriteError::Closed),
        };
        assert_eq!(in_state(state).write(&[0], ROOM), expected, "in {state:?}");
    }
}

#[test]
fn a_writer_learns_the_code_of_stop_sending() {
    let mut send = in_state(Sending);
    assert!(send.on_stop_sending(42));
    assert!(!send.on_stop_sending(43), "told once");
    assert_eq!(send.write(&[0], ROOM), Err(WriteError::Stopped(42)));
    assert_eq!(
        send.reset_frame(ID)
            .map(|frame| (frame.code, frame.final_size)),
        Some((42, 10))
    );
    assert_eq!(send.finish(), Err(ClosedStream));
    assert_eq!(send.write(&[0], ROOM), Err(WriteError::Closed));
}

#[test]
fn a_stream_ends_once() {
    for state in [DataSent, DataRecvd, ResetSent, ResetRecvd] {
        assert_eq!(in_state(state).finish(), Err(ClosedStream), "in {state:?}");
    }
    for state in [DataRecvd, ResetSent, ResetRecvd] {
        assert_eq!(in_state(state).reset(0), Err(ClosedStream), "in {state:?}");
    }
}

#[test]
fn the_final_size_of_a_reset_is_what_was_sent_not_what_was_written() {
    let mut send = Send::new(4);
    send.write(&[0; 10], ROOM).unwrap();
    transmit(&mut send);
    send.reset(3).unwrap();
    assert_eq!(send.reset_frame(ID).map(|frame| frame.final_size), Some(4));
    assert!(!send.has_fresh() && !send.has_free());
}

#[test]
fn a_full_buffer_blocks_and_wakes_with_a_quarter_free() {
    let mut send = Send::new(u64::MAX);
    assert_eq!(send.write(&[0; 2000], ROOM), Ok(1000));
    assert_eq!(send.write(&[0], ROOM), Err(WriteError::Blocked));
    transmit(&mut send);
    send.on_stream_acked(0, 249, End::Open);
    assert!(!send.wakes_writer(ROOM));
    send.on_stream_acked(249, 1, End::Open);
    assert!(send.wakes_writer(ROOM));
    assert!(!send.wakes_writer(ROOM), "once");
    assert_eq!(send.write(&[0; 2000], ROOM), Ok(250));
}
