//! RFC 9000 §5: connection ids, and which packets belong to a connection.

use std::collections::BTreeSet;

use hybriq::tls::Side;
use hybriq_proto::wire::packet::{Header, Space, Version};
use hybriq_sim::{Forge, ms};

use crate::{
    duo::Duo,
    invariants::{UNKNOWN, long},
    stalled::{heard_initials_only, ping, received},
    wiretap::{Seen, tapped},
};

/// Proves: rfc9000 5.1 ids-tell-nothing
/// Proves: rfc9000 5.1.1 sequence-numbers-step-by-one
#[test]
fn ids_of_one_connection_share_nothing() {
    for side in [Side::Client, Side::Server] {
        let (tap, config) = tapped();
        let mut duo = Duo::with(config.clone(), config);
        for _ in 0..20 {
            let now = duo.world.instant();
            duo.connection(side).rotate_cids(now);
            duo.world.run_for(ms(2000));
        }
        duo.assert_alive();
        let sent = tap.packets().into_iter();
        let issued: Vec<_> = sent
            .filter(|packet| packet.sent && packet.side == side)
            .flat_map(|packet| packet.frames)
            .filter_map(|frame| match frame {
                Seen::NewCid {
                    sequence,
                    id,
                    token,
                } => Some((sequence, id, token)),
                _ => None,
            })
            .collect();
        assert!(issued.len() >= 20, "{}", issued.len());
        let mut sequences: Vec<_> = issued.iter().map(|(sequence, ..)| *sequence).collect();
        sequences.dedup();
        assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1));
        let ids: BTreeSet<_> = issued.iter().map(|(_, id, _)| id).collect();
        let tokens: BTreeSet<_> = issued.iter().map(|(_, _, token)| token).collect();
        assert_eq!((ids.len(), tokens.len()), (issued.len(), issued.len()));
        for (_, id, token) in &issued {
            assert!(
                !token
                    .windows(4)
                    .any(|part| id.windows(4).any(|other| other == part))
            );
        }
    }
}

/// Proves: rfc9000 5.2 packets-of-strangers-are-dropped
/// Proves: rfc9000 5.2.2 server-drops-the-rest
#[test]
fn packets_that_belong_nowhere_change_nothing() {
    for to in [Side::Client, Side::Server] {
        let mut duo = Duo::new();
        let mut packet = duo
            .connection(to.peer())
            .forge(Space::Data, |_| (), 60, ping);
        packet[3] ^= 1;
        let before = received(&mut duo.world, to);
        let sent = duo.world.trace().sent(to.peer()).count();
        duo.put(to.peer(), packet);
        // A version that is not the connection's, and one that nobody speaks.
        for version in [1, 0x6b33_43cf, UNKNOWN] {
            duo.put(to.peer(), long(version, &[7; 8], &[8; 8], 100));
        }
        assert_eq!(received(&mut duo.world, to), before);
        let answers = duo.world.trace().sent(to.peer()).count() - sent;
        assert!(answers <= 1, "nothing but a stateless reset");
        duo.assert_alive();
    }
}

/// Proves: rfc9000 5.2.1 client-drops-other-versions
#[test]
fn a_client_drops_authentic_packets_of_another_version() {
    let mut world = heard_initials_only();
    let change = |header: &mut Header<'_>| {
        if let Header::Long { version, .. } = header {
            *version = match *version {
                Version::V1 => Version::V2,
                _ => Version::V1,
            };
        }
    };
    let server = world.accepted_connection(0);
    let other = server.forge(Space::Handshake, change, 100, ping);
    let own = server.forge(Space::Handshake, |_| (), 100, ping);
    let before = received(&mut world, Side::Client);
    crate::stalled::give(&mut world, Side::Client, other);
    assert_eq!(received(&mut world, Side::Client), before);
    crate::stalled::give(&mut world, Side::Client, own);
    assert_eq!(received(&mut world, Side::Client), before + 1);
}
