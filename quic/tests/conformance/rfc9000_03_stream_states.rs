//! RFC 9000 §3: what may follow what on a stream.

use hybriq::{Direction, tls::Side};
use hybriq_proto::wire::frame::StopSending;

use crate::{
    duo::Duo,
    wiretap::{Seen, tapped},
};

/// Proves: rfc9000 3.3 nothing-after-reset
/// Proves: rfc9000 13.3 reset-does-not-change
#[test]
fn after_a_reset_comes_nothing_of_that_stream() {
    let (tap, config) = tapped();
    let mut duo = Duo::with(config, hybriq::TransportConfig::new());
    let streams = duo.connection(Side::Client).streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.write(id, &[7; 5000]).unwrap();
    duo.world.run_for(hybriq_sim::ms(12));
    let streams = duo.connection(Side::Client).streams();
    streams.write(id, &[7; 5000]).unwrap();
    streams.reset(id, 3).unwrap();
    duo.world.run_for(hybriq_sim::ms(500));
    let mut reset = None;
    for frame in tap
        .packets()
        .into_iter()
        .filter(|it| it.sent)
        .flat_map(|it| it.frames)
    {
        match frame {
            Seen::Reset { .. } => {
                assert!(
                    reset.is_none() || reset.as_ref() == Some(&frame),
                    "{frame:?}"
                );
                reset = Some(frame);
            }
            Seen::Stream { .. } => assert_eq!(reset, None, "{frame:?}"),
            _ => {}
        }
    }
    assert!(matches!(reset, Some(Seen::Reset { code: 3, .. })));
}

/// Proves: rfc9000 3.5 stop-sending-is-answered-by-reset
#[test]
fn stop_sending_is_answered() {
    let (tap, config) = tapped();
    let mut duo = Duo::with(config, hybriq::TransportConfig::new());
    let streams = duo.connection(Side::Client).streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.write(id, &[7; 100]).unwrap();
    duo.send(Side::Server, |out| {
        assert!(out.write(&StopSending { id, code: 9 }));
    });
    let reset = Seen::Reset {
        id: id.0,
        code: 9,
        final_size: 100,
    };
    let packets = tap.packets();
    assert!(
        packets
            .iter()
            .any(|it| it.sent && it.frames.contains(&reset))
    );
    duo.assert_alive();
}

/// Proves: rfc9000 3.3 nothing-in-terminal-states
#[test]
fn a_stream_of_which_all_arrived_is_silent() {
    let (tap, config) = tapped();
    let mut duo = Duo::with(config, hybriq::TransportConfig::new());
    let streams = duo.connection(Side::Client).streams();
    let id = streams.open(Direction::Uni).unwrap();
    streams.write(id, &[7; 100]).unwrap();
    streams.finish(id).unwrap();
    duo.world.run_for(hybriq_sim::ms(200));
    assert!(
        duo.connection(Side::Client)
            .streams()
            .is_send_acknowledged(id)
    );
    let before = tap.packets().len();
    duo.send(Side::Server, |out| {
        assert!(out.write(&StopSending { id, code: 9 }));
    });
    let _ = duo.connection(Side::Client).streams().reset(id, 1);
    duo.world.run_for(hybriq_sim::ms(200));
    for packet in tap.packets().split_off(before).iter().filter(|it| it.sent) {
        for frame in &packet.frames {
            let of_stream = matches!(frame, Seen::Stream { .. } | Seen::Reset { .. });
            assert!(!of_stream, "{frame:?}");
        }
    }
    duo.assert_alive();
}
