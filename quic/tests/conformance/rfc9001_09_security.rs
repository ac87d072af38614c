//! RFC 9001 §9: what an attacker may learn from what we do.

use hybriq::tls::Side;
use hybriq_proto::wire::packet::{Header, KeyPhase, Space};
use hybriq_sim::{Forge, Raw};

use crate::duo::Duo;

/// Proves: rfc9001 9.5 header-and-payload-open-together
#[test]
fn a_wrong_key_phase_is_dropped_like_a_packet_that_does_not_open() {
    let flip = |header: &mut Header<'_>| {
        if let Header::Short { key_phase, .. } = header {
            *key_phase = KeyPhase::One;
        }
    };
    let count = |duo: &mut Duo, side| {
        let stats = duo.connection(side).stats();
        (
            stats.packets_received,
            stats.packets_dropped,
            stats.key_updates,
        )
    };
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        let to = from.peer();
        let (received, dropped, _) = count(&mut duo, to);
        let wrong = duo.connection(from).forge(Space::Data, flip, 0, |out| {
            assert!(out.write(&Raw(&[1; 30])));
        });
        duo.put(from, wrong.clone());
        let mut changed = wrong;
        *changed.last_mut().unwrap() ^= 1;
        duo.put(from, changed);
        assert_eq!(count(&mut duo, to), (received, dropped + 2, 0));
        duo.assert_alive();
        duo.send_raw(from, &[1; 30]);
        assert!(count(&mut duo, to).0 > received);
    }
}
