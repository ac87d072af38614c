//! RFC 9000 §6: answers that list versions.

use hybriq::{ConnectionError, TransportConfig, tls::Side};
use hybriq_sim::{Datagram, SERVER_ADDRESS, ms};

use crate::{
    duo::Duo,
    invariants::{Long, UNKNOWN, answers, long},
    stalled::{give, heard_initials_only, received},
};

/// Proves: rfc9000 6.1 no-answer-to-version-negotiation
#[test]
fn version_negotiation_is_not_answered() {
    for [dcid_len, scid_len] in [[0, 0], [8, 8], [20, 20], [21, 21], [255, 255]] {
        let (dcid, scid) = (vec![1; dcid_len], vec![2; scid_len]);
        let mut packet = long(0, &dcid, &scid, 1200);
        assert_eq!(answers(packet.clone()), Vec::<Vec<u8>>::new());
        packet.extend(UNKNOWN.to_be_bytes());
        assert_eq!(answers(packet), Vec::<Vec<u8>>::new());
    }
}

/// Proves: rfc9000 6.1 no-answer-to-version-negotiation
#[test]
fn a_client_answers_no_version() {
    for version in [0, UNKNOWN] {
        let mut duo = Duo::new();
        let before = duo.world.trace().sent(Side::Server).count();
        duo.put(Side::Server, long(version, &[7; 8], &[8; 8], 1200));
        assert_eq!(duo.world.trace().sent(Side::Server).count(), before);
        duo.assert_alive();
    }
}

/// Proves: rfc9000 5.2.2 small-packets-of-unknown-versions-are-dropped
#[test]
fn an_unknown_version_is_answered_in_a_full_datagram_only() {
    for size in [0, 100, 1199] {
        assert!(answers(long(UNKNOWN, &[1; 8], &[2; 8], size)).is_empty());
    }
    assert_eq!(answers(long(UNKNOWN, &[1; 8], &[2; 8], 1200)).len(), 1);
}

/// Proves: rfc9000 17.2.1 one-version-negotiation-per-datagram
#[test]
fn packets_of_one_datagram_get_one_answer() {
    let mut packet = long(UNKNOWN, &[1; 8], &[2; 8], 1200);
    packet.extend(long(UNKNOWN + 1, &[1; 8], &[2; 8], 1200));
    assert_eq!(answers(packet).len(), 1);
}

fn negotiation(dcid: &[u8], scid: &[u8]) -> Vec<u8> {
    let mut packet = long(0, dcid, scid, 0);
    packet.extend(UNKNOWN.to_be_bytes());
    packet
}

/// Proves: rfc9000 6.2 late-version-negotiation-is-ignored
#[test]
fn version_negotiation_behind_another_packet_is_ignored() {
    let mut stalled = heard_initials_only();
    let last = stalled.trace().sent(Side::Client).next().unwrap();
    let said = Long::read(&last.payload);
    let first = stalled.trace().sent(Side::Server).next().unwrap();
    let original = Long::read(&first.payload).dcid;
    assert!(received(&mut stalled, Side::Client) > 0);
    for scid in [&said.scid, &original] {
        give(&mut stalled, Side::Client, negotiation(&said.dcid, scid));
        assert_eq!(stalled.client(0).close_reason(), None);
    }
}

/// Proves: rfc9000 6.2 late-version-negotiation-is-ignored
/// Proves: rfc9000 6.2 client-gives-up-on-version-negotiation
#[test]
fn version_negotiation_counts_as_the_first_packet_only() {
    let network = hybriq_sim::Network::new(1).drop_if(|_, toward| toward.is_server());
    let config = TransportConfig::new;
    let mut world = hybriq_sim::World::new(network, crate::duo::server(config()));
    world.connect(&crate::duo::client(config()), hybriq_sim::Idle);
    world.run_for(ms(0));
    let first = world.trace().sent(Side::Server).next().unwrap();
    let said = Long::read(&first.payload);
    let to = world.client_host(0).address;
    let packet = negotiation(&said.scid, &said.dcid);
    world.inject(Side::Client, Datagram::new(SERVER_ADDRESS, to, packet));
    world.run_for(ms(100));
    let reason = world.client(0).close_reason();
    assert_eq!(reason, Some(&ConnectionError::VersionMismatch));
    let sent = world.trace().sent(Side::Server).count();
    world.run_for(ms(5000));
    assert_eq!(
        world.trace().sent(Side::Server).count(),
        sent,
        "not a word more"
    );
}
