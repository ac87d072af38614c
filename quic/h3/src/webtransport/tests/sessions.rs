//! Sessions, and hostile peers of them.

use bytes::Bytes;
use hybriq_proto::Direction::{Bidi, Uni};

use crate::{
    error::{Code, Scope, Violation},
    webtransport::{Capsule, Decoder, Dialect, Event, FlowControl, Session, Terms, Windows},
};

const OWN: Windows = Windows {
    bidi: 2,
    uni: 4,
    data: 100,
};

const PEER: Windows = Windows {
    bidi: 1,
    uni: 0,
    data: 10,
};

fn session() -> Session {
    Session::new(Terms {
        dialect: Dialect::Draft15,
        flow: Some(FlowControl {
            own: OWN,
            peer: PEER,
        }),
    })
}

fn bytes(capsule: &Capsule) -> Bytes {
    let mut out = Vec::new();
    capsule.write(&mut out);
    out.into()
}

/// Takes the output as capsules.
fn output(session: &mut Session) -> Vec<Capsule> {
    let (mut decoder, mut capsules) = (Decoder::default(), Vec::new());
    assert!(session.has_output());
    let mut data = session.take_output();
    while let Some(capsule) = decoder.next(&mut data).unwrap() {
        capsules.push(capsule);
    }
    assert!(!session.has_output() && session.take_output().is_empty());
    capsules
}

/// Everything is answered by the code of the draft, and ends the session alone.
fn refused(capsules: &[Capsule], violation: Violation, code: Code) {
    let mut session = session();
    let (last, before) = capsules.split_last().unwrap();
    for capsule in before {
        assert_eq!(session.on_data(bytes(capsule)), Ok(()));
    }
    let data = match last {
        Capsule::OfStream => Bytes::from_static(&[0x99, 0x0b, 0x4d, 0x3e, 2, 0, 7]),
        last => bytes(last),
    };
    assert_eq!(session.on_data(data), Err(violation));
    assert_eq!((violation.code(), violation.scope()), (code, Scope::Stream));
}

#[test]
fn a_peer_opens_as_many_streams_as_it_may() {
    let mut session = session();
    for (direction, most) in [(Bidi, OWN.bidi), (Uni, OWN.uni)] {
        for _ in 0..most {
            assert_eq!(session.on_stream(direction), Ok(()));
        }
    }
    // Half of the window makes a new limit.
    session.on_stream_over(Bidi);
    assert_eq!(output(&mut session), [Capsule::MaxStreams(Bidi, 3)]);
    session.on_stream_over(Uni);
    assert!(!session.has_output());
    session.on_stream_over(Uni);
    assert_eq!(output(&mut session), [Capsule::MaxStreams(Uni, 6)]);
    assert_eq!(session.on_stream(Bidi), Ok(()));
    let one_more = session.on_stream(Bidi);
    assert_eq!(one_more, Err(Violation::SessionStreamLimit));
    assert_eq!(
        Violation::SessionStreamLimit.code(),
        Code::WT_FLOW_CONTROL_ERROR
    );
}

#[test]
fn a_peer_sends_as_much_data_as_it_may() {
    let mut session = session();
    assert_eq!(session.on_received(100), Ok(()));
    session.on_consumed(49);
    assert!(!session.has_output());
    session.on_consumed(1);
    assert_eq!(output(&mut session), [Capsule::MaxData(150)]);
    assert_eq!(session.on_received(50), Ok(()));
    assert_eq!(session.on_received(1), Err(Violation::SessionDataLimit));
    assert_eq!(
        Violation::SessionDataLimit.code(),
        Code::WT_FLOW_CONTROL_ERROR
    );
}

#[test]
fn this_end_keeps_the_limits_of_the_peer() {
    let mut session = session();
    assert!(session.take_stream(Bidi));
    assert!(!session.take_stream(Bidi) && !session.take_stream(Uni));
    assert_eq!(session.take_data(7), 7);
    assert_eq!(session.take_data(7), 3);
    assert_eq!((session.take_data(7), session.take_data(0)), (0, 0));
    // Each limit is told once.
    assert!(!session.take_stream(Uni) && session.take_data(1) == 0);
    let blocked = [
        Capsule::DataBlocked(10),
        Capsule::StreamsBlocked(Bidi, 1),
        Capsule::StreamsBlocked(Uni, 0),
    ];
    assert_eq!(output(&mut session), blocked);
    assert!(!session.take_stream(Uni) && !session.has_output());

    for capsule in [Capsule::MaxStreams(Uni, 1), Capsule::MaxData(12)] {
        assert_eq!(session.on_data(bytes(&capsule)), Ok(()));
        assert_eq!(session.poll_event(), Some(Event::Credit));
        assert_eq!(session.on_data(bytes(&capsule)), Ok(()));
        assert_eq!(session.poll_event(), None);
    }
    assert!(session.take_stream(Uni) && !session.take_stream(Uni));
    assert_eq!(session.take_data(7), 2);
    // What was not used is there again.
    session.give_back_stream(Uni);
    session.give_back_data(5);
    assert_eq!(session.poll_event(), Some(Event::Credit));
    assert!(session.take_stream(Uni));
    assert_eq!(session.take_data(7), 5);
}

#[test]
fn a_peer_that_breaks_a_rule_loses_its_session() {
    let flow_control = Code::WT_FLOW_CONTROL_ERROR;
    for capsules in [
        &[Capsule::MaxData(9)][..],
        &[Capsule::MaxData(20), Capsule::MaxData(19)],
        &[Capsule::MaxStreams(Bidi, 0)],
        &[Capsule::MaxStreams(Uni, 5), Capsule::MaxStreams(Uni, 4)],
    ] {
        refused(capsules, Violation::SessionLimitReduced, flow_control);
    }
    refused(
        &[Capsule::OfStream],
        Violation::CapsuleOfStream,
        flow_control,
    );
    let most = 1 << 60;
    assert_eq!(
        session().on_data(bytes(&Capsule::MaxStreams(Bidi, most))),
        Ok(())
    );
    let many = [Capsule::MaxStreams(Bidi, most + 1)];
    refused(
        &many,
        Violation::SessionStreamsTooMany,
        Code::H3_DATAGRAM_ERROR,
    );
    let late = [Capsule::close(1, "x"), Capsule::Drain];
    refused(&late, Violation::CapsuleAfterClose, Code::H3_MESSAGE_ERROR);
}

#[test]
fn nothing_comes_behind_the_end_of_a_session() {
    let mut session = session();
    let both = [bytes(&Capsule::close(7, "x")), Bytes::from_static(&[0x17])].concat();
    assert_eq!(
        session.on_data(both.into()),
        Err(Violation::CapsuleAfterClose)
    );

    let mut cut = self::session();
    assert_eq!(cut.on_data(Bytes::from_static(&[0x17, 2, 0])), Ok(()));
    assert_eq!(cut.on_fin(), Err(Violation::CapsuleCut));
}

/// Peers of drafts before 13 have no flow control, and their capsules for it are ignored.
#[test]
fn without_flow_control_nothing_is_limited() {
    let mut session = Session::new(Terms::OLDEST);
    for capsule in [
        Capsule::MaxData(9),
        Capsule::MaxData(0),
        Capsule::MaxStreams(Bidi, u64::MAX >> 2),
    ] {
        assert_eq!(session.on_data(bytes(&capsule)), Ok(()));
    }
    let of_stream = Bytes::from_static(&[0x99, 0x0b, 0x4d, 0x3e, 2, 0, 7]);
    assert_eq!(session.on_data(of_stream), Ok(()));
    assert_eq!(session.poll_event(), None);
    for _ in 0..1000 {
        assert_eq!(session.on_stream(Uni), Ok(()));
        assert_eq!(session.on_received(1 << 40), Ok(()));
        assert!(session.take_stream(Bidi));
        assert_eq!(session.take_data(1 << 40), 1 << 40);
    }
    session.on_stream_over(Uni);
    session.on_consumed(1 << 50);
    assert!(!session.has_output());
}

#[test]
fn sessions_are_drained_and_closed_once() {
    let (mut one, mut other) = (session(), session());
    one.drain();
    other.on_data(one.take_output()).unwrap();
    assert_eq!(other.poll_event(), Some(Event::Drain));
    one.drain();
    assert!(!one.has_output());
    one.on_consumed(100);
    one.close(7, "enough");
    one.close(8, "again");
    let closed = Capsule::close(7, "enough");
    assert_eq!(output(&mut one), [Capsule::MaxData(200), closed.clone()]);
    assert!(one.is_closing());
    // Nothing comes behind it.
    one.on_stream_over(Bidi);
    one.close(9, "");
    assert!(!one.has_output() && one.take_output().is_empty());

    other.on_data(bytes(&closed)).unwrap();
    let (code, reason) = (7, "enough".to_owned());
    assert_eq!(other.poll_event(), Some(Event::Closed { code, reason }));
    assert_eq!(other.on_fin(), Ok(()));
    assert_eq!(other.poll_event(), None);
    let mut ended = session();
    ended.on_fin().unwrap();
    let (code, reason) = (0, String::new());
    assert_eq!(ended.poll_event(), Some(Event::Closed { code, reason }));
}

/// Whatever the peer sends, the output is one capsule of each type.
#[test]
fn output_does_not_grow() {
    let mut session = session();
    for limit in 0..10_000 {
        session.on_stream_over(Bidi);
        session.on_consumed(100);
        session.take_stream(Uni);
        session.take_data(100);
        let more = Capsule::MaxData(10 + limit);
        session.on_data(bytes(&more)).unwrap();
    }
    assert!(session.take_output().len() < 6 * 13);
}
