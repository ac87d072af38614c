//! RFC 9001 §5: packets that do not open.

use hybriq::tls::Side;
use hybriq_proto::wire::packet::Space;
use hybriq_sim::{Forge, Raw};

use crate::duo::Duo;

const BOTH: [Side; 2] = [Side::Client, Side::Server];

fn stream(fill: u8) -> [u8; 40] {
    let mut frame = [fill; 40];
    // STREAM to the end of the packet, of the peer's first unidirectional stream.
    frame[0] = 0x08;
    frame[1] = 2;
    frame
}

fn received(duo: &mut Duo, side: Side) -> u64 {
    duo.connection(side).stats().packets_received
}

/// Proves: rfc9001 5.4.2 short-samples-are-dropped
#[test]
fn packets_too_short_for_a_sample() {
    for from in BOTH {
        let mut duo = Duo::new();
        let whole = duo.connection(from).forge(
            Space::Data,
            |_| (),
            0,
            |out| assert!(out.write(&Raw(&[1]))),
        );
        let before = received(&mut duo, from.peer());
        // The rest has no 16 bytes behind the 4 that a packet number may have.
        for len in 1..whole.len() {
            duo.put(from, whole[..len].to_vec());
        }
        assert_eq!(received(&mut duo, from.peer()), before);
        duo.assert_alive();
        duo.put(from, whole);
        assert!(received(&mut duo, from.peer()) > before);
    }
}

/// Proves: rfc9001 5.5 packets-that-do-not-open-are-dropped
#[test]
fn packets_that_were_changed_on_the_way() {
    let mut duo = Duo::new();
    let whole = duo.connection(Side::Client).forge(
        Space::Data,
        |_| (),
        0,
        |out| assert!(out.write(&Raw(&stream(7)))),
    );
    let before = received(&mut duo, Side::Server);
    for place in 9..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        duo.put(Side::Client, changed);
    }
    assert_eq!(received(&mut duo, Side::Server), before);
    duo.assert_alive();
    duo.put(Side::Client, whole);
    assert!(received(&mut duo, Side::Server) > before);
    duo.assert_alive();
}
