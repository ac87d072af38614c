//! RFC 9000 §7: connection ids until the handshake is complete.

use std::collections::BTreeSet;

use hybriq::{Backend, ConnectionError, TransportConfig, Trust, tls::Side};
use hybriq_proto::wire::packet::{Cid, Header, PacketNumber, Space};
use hybriq_sim::{Forge, Idle, InitialFrame, Network, World, build_initial, ms};
use hybriq_tls::ClientOptions;

use crate::{
    duo::{client, server},
    invariants::{Long, answers},
    stalled::{give, heard_initials_only, heard_nothing, ping, received},
};

/// Proves: rfc9000 7.2 first-dcid-has-8-bytes
/// Proves: rfc9000 7.2 first-dcid-stays
#[test]
fn a_client_that_hears_nothing_keeps_the_id_it_made_up() {
    let mut made_up = BTreeSet::new();
    for seed in 0..20 {
        let network = Network::new(seed).drop_if(|_, _| true);
        let mut world = World::new(network, server(TransportConfig::new()));
        world.connect(&client(TransportConfig::new()), Idle);
        world.run_for(ms(5000));
        let sent = world.trace().sent(Side::Server);
        let ids: Vec<_> = sent.map(|record| Long::read(&record.payload)).collect();
        assert!(ids.len() > 4);
        assert!(ids[0].dcid.len() >= 8);
        let same = |said: &Long| said.dcid == ids[0].dcid && said.scid == ids[0].scid;
        assert!(ids.iter().all(same));
        made_up.insert(ids[0].dcid.clone());
    }
    assert_eq!(made_up.len(), 20);
}

/// Proves: rfc9000 7.2 short-first-dcids-are-dropped
#[test]
fn a_server_takes_no_first_packet_with_a_short_id() {
    for (len, count) in [(0, 0), (7, 0), (8, 1), (20, 1)] {
        let dcid = Cid::new(&[1; 20][..len]).unwrap();
        let data = vec![1, 0, 5, 0];
        let begin = InitialFrame::Crypto { offset: 0, data };
        let packet = build_initial(dcid, Cid::from([2; 8]), PacketNumber::ZERO, &[begin]);
        assert_eq!(answers(packet).len(), count, "{len} bytes");
    }
}

fn other_source(header: &mut Header<'_>) {
    if let Header::Long { scid, .. } = header {
        *scid = Cid::from([0x55; 8]);
    }
}

/// Proves: rfc9000 7.2 client-follows-the-first-answer-only
#[test]
fn a_client_drops_packets_with_another_source_id() {
    for space in [Space::Initial, Space::Handshake] {
        let mut stalled = heard_initials_only();
        let server = stalled.accepted_connection(0);
        let other = server.forge(space, other_source, 1200, ping);
        let own = server.forge(space, |_| (), 1200, ping);
        let before = received(&mut stalled, Side::Client);
        give(&mut stalled, Side::Client, other);
        assert_eq!(received(&mut stalled, Side::Client), before, "{space:?}");
        give(&mut stalled, Side::Client, own);
        assert_eq!(
            received(&mut stalled, Side::Client),
            before + 1,
            "{space:?}"
        );
        let said = stalled.trace().sent(Side::Client).next().unwrap();
        let id = Long::read(&said.payload).scid;
        stalled.run_for(ms(300));
        let last = stalled.trace().sent(Side::Server).next_back().unwrap();
        assert_eq!(Long::read(&last.payload).dcid, id);
    }
}

/// Proves: rfc9000 7.2 server-takes-the-first-source-id
#[test]
fn a_server_drops_initials_with_another_source_id() {
    let mut stalled = heard_nothing();
    let client = stalled.client_connection(0);
    let other = client.forge(Space::Initial, other_source, 1200, ping);
    let own = client.forge(Space::Initial, |_| (), 1200, ping);
    let before = received(&mut stalled, Side::Server);
    give(&mut stalled, Side::Server, other);
    assert_eq!(received(&mut stalled, Side::Server), before);
    give(&mut stalled, Side::Server, own);
    assert_eq!(received(&mut stalled, Side::Server), before + 1);
    let first = stalled.trace().sent(Side::Server).next().unwrap();
    let id = Long::read(&first.payload).scid;
    let answers = stalled.trace().sent(Side::Client);
    assert!(
        answers
            .map(|record| Long::read(&record.payload))
            .all(|said| said.dcid == id)
    );
}

/// Proves: rfc9000 7 alpn-is-negotiated
#[test]
fn ends_without_a_common_application_protocol_part() {
    for protocols in [&["other"][..], &[]] {
        let options = ClientOptions::new()
            .alpn(protocols)
            .trust(Trust::default())
            .without_resumption();
        let Ok(provider) = Backend::Rustls.client(&options) else {
            continue;
        };
        let mut setup = client(TransportConfig::new());
        setup.provider = provider;
        let network = Network::new(1).delay(ms(10));
        let mut world = World::new(network, server(TransportConfig::new()));
        world.connect(&setup, Idle);
        world.run_for(ms(1000));
        let told = |reason: Option<&ConnectionError>| match reason {
            Some(ConnectionError::Transport { code, .. }) => code.0,
            other => panic!("{other:?}"),
        };
        // no_application_protocol
        assert_eq!(told(world.client(0).close_reason()), 0x100 + 120);
        assert_eq!(told(world.accepted(0).close_reason()), 0x100 + 120);
    }
}
