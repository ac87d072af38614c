//! Limits that the application changes while the connection runs.

use super::*;
use crate::wire::frame::Owner as _;

const NONE: Limits = Limits {
    max_bidi: 0,
    max_uni: 0,
    ..LIMITS
};

/// The MAX_STREAMS and MAX_DATA frames that are pending.
fn told(from: &mut Streams) -> Vec<String> {
    let mut found = Vec::new();
    for (payload, _) in packets(from) {
        found.extend(frames(&payload).iter().map(|frame| match frame {
            Frame::MaxStreams(frame) => format!("{:?} {}", frame.direction, frame.max),
            Frame::MaxData(frame) => format!("data {}", frame.max),
            other => format!("{other:?}"),
        }));
    }
    found
}

/// Proves: rfc9000 4.6 stream-credit-needs-no-blocked-frame
/// Proves: rfc9000 4.6 opener-obeys-the-limit
#[test]
fn streams_that_were_forbidden_at_first_are_allowed_later() {
    let (mut client, mut server) = pair_with(NONE);
    assert_eq!(client.open(Direction::Bidi), None);
    assert_eq!(client.open(Direction::Uni), None);
    server.set_max_streams(Direction::Bidi, 2);
    assert_eq!(told(&mut server), ["Bidi 2"]);
    server.set_max_streams(Direction::Uni, 1);
    exchange_all(&mut server, &mut client);
    // The first frame was lost with its packet above.
    assert_eq!(
        events(&mut client),
        [StreamEvent::Available(Direction::Uni)]
    );
    assert!(client.open(Direction::Uni).is_some());
    assert_eq!(client.open(Direction::Uni), None);
}

#[test]
fn a_lost_limit_is_told_again() {
    let (_, mut server) = pair_with(NONE);
    server.set_max_streams(Direction::Bidi, 2);
    for (_, sent) in packets(&mut server) {
        server.on_lost(&sent);
    }
    assert_eq!(told(&mut server), ["Bidi 2"]);
}

/// Proves: rfc9000 4.1 limits-never-shrink
#[test]
fn a_lower_limit_takes_nothing_back() {
    let (mut client, mut server) = pair();
    server.set_max_streams(Direction::Bidi, 1);
    server.set_receive_window(10);
    assert!(!server.has_pending());
    for _ in 0..LIMITS.max_bidi {
        let id = client.open(Direction::Bidi).expect("as was promised");
        client.write(id, &[1; 100]).unwrap();
        client.finish(id).unwrap();
    }
    send_all(&mut client, &mut server);
    // Closed streams free no place until only one would be left.
    for index in 0..LIMITS.max_bidi {
        let id = server.accept(Direction::Bidi).unwrap();
        read_all(&mut server, id);
        server.read(id, &mut [0; 1]).unwrap_err();
        server.finish(id).unwrap();
        let more = told(&mut server)
            .iter()
            .any(|frame| frame.starts_with("Bidi"));
        assert!(!more, "{index}");
    }
}

#[test]
fn a_slight_rise_is_told_at_once() {
    let (_, mut server) = pair();
    server.set_max_streams(Direction::Uni, LIMITS.max_uni + 1);
    server.set_receive_window(LIMITS.receive_window + 1);
    let data = format!("data {}", LIMITS.receive_window + 1);
    assert_eq!(
        told(&mut server),
        [data, format!("Uni {}", LIMITS.max_uni + 1)]
    );
    assert!(!server.has_pending());
}

#[test]
fn a_report_about_an_old_limit_does_not_lower_the_new_one() {
    let (_, mut server) = pair();
    server.set_receive_window(10);
    receive(
        &mut server,
        &Frame::DataBlocked(crate::wire::frame::DataBlocked {
            limit: LIMITS.receive_window,
        }),
    )
    .unwrap();
    assert_eq!(told(&mut server), [""; 0]);
}

/// Proves: rfc9000 4.6 stream-limits-are-bounded
#[test]
fn no_limit_exceeds_what_can_be_said() {
    let (_, mut server) = pair();
    server.set_max_streams(Direction::Uni, u64::MAX);
    server.set_receive_window(u64::MAX);
    for (payload, _) in packets(&mut server) {
        for frame in frames(&payload) {
            match frame {
                Frame::MaxStreams(frame) => assert!(frame.max <= 1 << 60),
                Frame::MaxData(frame) => assert!(frame.max < 1 << 62),
                other => panic!("{other:?}"),
            }
        }
    }
}
