//! RFC 9000 §10 and §11: how connections end.

use std::time::Duration;

use hybriq::{ConnectionError, TransportConfig, tls::Side};
use hybriq_sim::{Forge, PacketKind, ms};

use crate::duo::{Duo, Verdict};

/// Proves: rfc9000 10.1 idle-timeout-has-a-floor
#[test]
fn a_tiny_idle_timeout_lasts_three_probe_timeouts() {
    let tiny = || TransportConfig::new().idle_timeout(Some(ms(1)));
    let duo = Duo::with(tiny(), tiny());
    let client = duo.world.client(0);
    let (at, reason) = client.closed.clone().unwrap();
    assert_eq!(reason, ConnectionError::TimedOut);
    // A probe timeout is a round trip and more.
    let open = at.checked_sub(client.complete_at.unwrap()).unwrap();
    assert!(
        open > 3 * ms(20) && open < Duration::from_secs(1),
        "{open:?}"
    );
}

/// Proves: rfc9000 10.2.3 close-after-confirmation-is-1rtt
#[test]
fn a_confirmed_connection_closes_in_1_rtt_packets() {
    let mut duo = Duo::new();
    duo.world.close_client(0, 7);
    duo.world.run_for(ms(100));
    let last = duo.world.trace().sent(Side::Server).next_back().unwrap();
    let kinds: Vec<_> = last.packets.iter().map(|packet| packet.kind).collect();
    assert_eq!(kinds, [PacketKind::OneRtt]);
}

/// Proves: rfc9000 11.1 violations-are-signalled
/// Proves: rfc9000 11 no-reset-while-there-is-state
#[test]
fn a_violation_is_told_by_a_frame() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        // PATH_CHALLENGE cut short.
        duo.send_raw(from, &[0x1a, 1, 2]);
        let told = Verdict {
            code: 0x07,
            frame: 0x1a,
        };
        assert_eq!(duo.verdict(from.peer()), Some(told), "and not by a reset");
    }
}

/// Proves: rfc9000 11 no-reset-while-there-is-state
#[test]
fn what_does_not_open_is_dropped_where_the_connection_is_known() {
    for from in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        let mut packet = duo.connection(from).forge(
            hybriq_proto::wire::packet::Space::Data,
            |_| (),
            200,
            |out| assert!(out.ping()),
        );
        *packet.last_mut().unwrap() ^= 1;
        let before = duo.world.trace().sent(from).count();
        duo.put(from, packet);
        assert_eq!(duo.world.trace().sent(from).count(), before, "no answer");
        duo.assert_alive();
    }
}
