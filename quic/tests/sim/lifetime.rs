//! Ends of connections: closed, refused, forgotten, given up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq::{Backend, ConnectionError, Group, KeyExchange, error::By, tls::Side};
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    wire::error::Code,
};
use hybriq_sim::{Answer, App, Ask, DropNth, Idle, Network, Progress, World, ms};

use crate::support::{
    LIMIT, PTO, RTT, client, client_with, client_with_alpn, only, pair, plain, server, server_with,
    transport, world,
};

/// An established connection with nothing to do.
fn established(network: Network, client: &Setup, server: &Setup) -> World {
    let mut world = world(network, client, server, Ask::one_byte().keep_open());
    let confirmed = world.run_until(LIMIT, |world| {
        world.client(0).done_at.is_some() && world.client(0).confirmed_at.is_some()
    });
    assert!(confirmed);
    world.run_for(2 * RTT);
    world
}

fn reason(by: By, code: u64, reason: &'static str) -> ConnectionError {
    ConnectionError::Application {
        by,
        code,
        reason: Bytes::from_static(reason.as_bytes()),
    }
}

#[test]
fn both_ends_confirm_the_handshake() {
    let (client, server) = pair();
    let world = established(plain(1), &client, &server);
    assert_eq!(world.client(0).complete_at, Some(RTT));
    assert_eq!(world.accepted(0).complete_at, Some(RTT * 3 / 2));
    assert_eq!(world.accepted(0).confirmed_at, Some(RTT * 3 / 2));
    assert_eq!(world.client(0).confirmed_at, Some(RTT * 2));
}

/// The transfer continues, so acknowledgements of later packets show that it was lost.
/// Proves: rfc9000 13.3 handshake-done-is-repeated
#[test]
fn a_lost_handshake_done_is_sent_again() {
    for place in 0..6 {
        let (client, server) = pair();
        let network = plain(1).toward(Side::Client, DropNth::new([place]));
        let app = Ask::streams(4, 20_000).keep_open();
        let mut world = world(network, &client, &server, app);
        let confirmed = world.run_until(10 * RTT, |world| world.client(0).confirmed_at.is_some());
        assert!(confirmed, "lost datagram {place}");
    }
}

/// Proves: rfc9000 10.1 idle-timeout-is-the-smaller
#[test]
fn an_idle_connection_ends_on_both_sides_without_a_word() {
    let idle = |seconds| transport().idle_timeout(Some(Duration::from_secs(seconds)));
    let (client, server) = (client_with(idle(20)), server_with(idle(5)));
    let mut world = established(plain(1), &client, &server);
    let before = world.trace().datagrams();
    world.run(LIMIT);
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::TimedOut)
    );
    assert_eq!(
        world.accepted(0).close_reason(),
        Some(&ConnectionError::TimedOut)
    );
    assert_eq!(world.trace().datagrams(), before, "nobody says anything");
    let (at, _) = world.client(0).closed.clone().unwrap();
    let expected = Duration::from_secs(5)..Duration::from_secs(6);
    assert!(expected.contains(&at), "the smaller timeout counts: {at:?}");
}

#[test]
fn a_connection_without_an_idle_timeout_stays() {
    let forever = || transport().idle_timeout(None);
    let mut world = established(plain(1), &client_with(forever()), &server_with(forever()));
    world.run_for(Duration::from_secs(100_000));
    assert_eq!(world.client(0).close_reason(), None);
    assert_eq!(world.accepted(0).close_reason(), None);
}

#[test]
fn a_client_that_hears_nothing_gives_up_after_the_handshake_timeout() {
    let patience = Duration::from_secs(10);
    let client = client_with(transport().handshake_timeout(patience));
    let (_, server) = pair();
    let mut world = world(plain(1).drop_if(|_, _| true), &client, &server, Idle);
    world.run(LIMIT);
    assert_eq!(
        world.client(0).closed,
        Some((patience, ConnectionError::NoAnswer))
    );
    // Sent at 0, 1, 3, 7, 15 and 31 PTOs, two datagrams each.
    assert_eq!(world.trace().datagrams(), 12);
}

/// Proves: rfc9000 8 three-times-what-came
#[test]
fn a_client_that_vanishes_costs_the_server_at_most_three_times_what_it_sent() {
    let (client, server) = pair();
    let gone = plain(1).drop_if(|_, toward| toward.is_client());
    let mut world = world(gone, &client, &server, Idle);
    world.run(10 * LIMIT);
    assert_eq!(
        world.accepted(0).close_reason(),
        Some(&ConnectionError::HandshakeTimedOut)
    );
    assert_eq!(world.server().stats().connections, 0);
}

#[test]
fn a_close_carries_its_code_and_its_reason() {
    for side in [Side::Client, Side::Server] {
        let (client, server) = pair();
        let mut world = established(plain(1), &client, &server);
        let now = world.instant();
        let text = Bytes::from_static(b"enough");
        if side.is_client() {
            world.client_connection(0).close(now, 42, text);
        } else {
            world.accepted_connection(0).close(now, 42, text);
        }
        world.run(LIMIT);
        let (ours, theirs) = if side.is_client() {
            (world.client(0), world.accepted(0))
        } else {
            (world.accepted(0), world.client(0))
        };
        assert_eq!(ours.close_reason(), Some(&reason(By::Local, 42, "enough")));
        assert_eq!(theirs.close_reason(), Some(&reason(By::Peer, 42, "enough")));
    }
}

/// Proves: rfc9000 10.2.2 draining-is-silent
#[test]
fn a_connection_is_drained_after_three_ptos_and_says_nothing_more() {
    let (client, server) = pair();
    let mut world = established(plain(1), &client, &server);
    world.close_client(0, 0);
    let closed_at = world.now();
    let before = world.trace().datagrams();
    world.run(LIMIT);
    assert_eq!(
        world.trace().datagrams(),
        before + 1,
        "one CONNECTION_CLOSE, and no answer to it"
    );
    for peer in [world.client(0), world.accepted(0)] {
        let lingered = peer.drained_at.unwrap().saturating_sub(closed_at);
        assert!(
            lingered > 2 * RTT && lingered < 4 * PTO,
            "drained after {lingered:?}"
        );
    }
}

/// Proves: rfc9000 10.2.1 closing-is-rate-limited
#[test]
fn a_lost_close_is_said_again_to_who_goes_on_talking() {
    let (client, server) = pair();
    let app = Ask::streams(1, 4 * 1024 * 1024);
    let drop_next = Arc::new(AtomicBool::new(false));
    let flag = drop_next.clone();
    let network = Network::new(1)
        .drop_if(move |_, toward| toward.is_server() && flag.swap(false, Ordering::Relaxed))
        .delay(RTT / 2);
    let mut world = world(network, &client, &server, app);
    assert!(
        world.run_until(LIMIT, |world| world.client(0).stats().bytes_received
            > 100_000)
    );
    let closed_at = world.now();
    world.close_client(0, 9);
    drop_next.store(true, Ordering::Relaxed);
    world.run(LIMIT);
    assert_eq!(
        world.accepted(0).close_reason(),
        Some(&reason(By::Peer, 9, ""))
    );
    let again = world
        .trace()
        .sent(Side::Server)
        .filter(|record| record.at > closed_at)
        .count();
    let heard = world
        .trace()
        .arrived(Side::Client)
        .filter(|record| record.at > closed_at)
        .count();
    assert!(again > 0, "said once");
    assert!(
        heard > 10 && again * 2 < heard,
        "{again} answers to {heard} datagrams"
    );
}

/// Proves: rfc9000 10.2.3 application-close-is-hidden
#[test]
fn closing_during_the_handshake_tells_the_server_too() {
    for after in [ms(0), RTT / 2, RTT] {
        let (client, server) = pair();
        let mut world = world(plain(1), &client, &server, Idle);
        world.run_for(after);
        world.close_client(0, 3);
        world.run(LIMIT);
        assert_eq!(
            world.client(0).close_reason(),
            Some(&reason(By::Local, 3, ""))
        );
        let Some(accepted) = world.server().peers().first() else {
            assert_eq!(after, ms(0), "the server never heard of it");
            continue;
        };
        match accepted.close_reason() {
            Some(ConnectionError::Transport {
                by: By::Peer,
                code: Code::APPLICATION_ERROR,
                ..
            }) => {}
            other => {
                assert_eq!(after, RTT, "{other:?}");
                assert_eq!(other, Some(&reason(By::Peer, 3, "")));
            }
        }
    }
}

/// Closes as soon as it is connected.
struct CloseAtOnce;

impl App for CloseAtOnce {
    fn on_event(&mut self, now: Instant, event: &Event, connection: &mut Connection) {
        if *event == Event::HandshakeComplete {
            connection.close(now, 7, Bytes::from_static(b"seen enough"));
        }
    }

    fn progress(&self) -> Progress {
        Progress::Busy
    }
}

#[test]
fn a_client_that_closes_at_once_was_connected_for_the_server_too() {
    for lost in [None, Some(2), Some(3)] {
        let (client, server) = pair();
        let network = plain(1).toward(Side::Server, DropNth::new(lost));
        let mut world = world(network, &client, &server, CloseAtOnce);
        world.run(LIMIT);
        let accepted = world.accepted(0);
        assert!(accepted.complete_at.is_some(), "lost {lost:?}");
        assert_eq!(
            accepted.close_reason(),
            Some(&reason(By::Peer, 7, "seen enough")),
            "lost {lost:?}"
        );
    }
}

#[test]
fn who_is_refused_learns_it_at_once() {
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    world.server_mut().on_incoming(|_| Answer::Refuse);
    world.connect(&client, Idle);
    world.run(LIMIT);
    let Some((at, ConnectionError::Transport { by, code, .. })) = world.client(0).closed.clone()
    else {
        panic!("{:?}", world.client(0).closed);
    };
    assert_eq!((at, by, code), (RTT, By::Peer, Code::CONNECTION_REFUSED));
    let stats = world.server().stats();
    assert_eq!((stats.connections, stats.waiting_incoming), (0, 0));
}

#[test]
fn who_is_ignored_gives_up() {
    let (client, server) = pair();
    let mut world = World::new(plain(1), server);
    world.server_mut().on_incoming(|_| Answer::Ignore);
    world.connect(&client, Idle);
    world.run(LIMIT);
    assert_eq!(
        world.client(0).close_reason(),
        Some(&ConnectionError::NoAnswer)
    );
    assert_eq!(world.trace().sent(Side::Client).count(), 0);
    assert_eq!(world.server().stats().waiting_incoming, 0);
}

#[test]
fn a_classical_client_is_refused_where_post_quantum_is_required() {
    for backend in Backend::ALL {
        let server = server(backend, KeyExchange::RequirePostQuantum);
        let client = client(Backend::Rustls, KeyExchange::OnlyClassical);
        let mut world = world(plain(1), &client, &server, Idle);
        world.run(LIMIT);
        let Some(ConnectionError::KeyExchangeRefused { by: By::Peer, .. }) =
            world.client(0).close_reason()
        else {
            panic!("{backend}: {:?}", world.client(0).close_reason());
        };
        assert!(matches!(
            world.server().refused(),
            [ConnectionError::KeyExchangeRefused { by: By::Local, .. }]
        ));
        let stats = world.server().stats();
        assert_eq!((stats.connections, stats.key_exchange_refused), (0, 1));
    }
}

#[test]
fn a_classical_client_connects_where_post_quantum_is_preferred() {
    for backend in Backend::ALL {
        let server = server(backend, KeyExchange::PreferPostQuantum);
        let client = client(Backend::Rustls, KeyExchange::OnlyClassical);
        let world = crate::support::exchange(plain(1), &client, &server);
        let agreed = world.client(0).handshake.clone().unwrap().key_exchange;
        assert!(!agreed.is_post_quantum());
    }
}

/// Both ends end with this alert, one of them its own.
fn fails_with(client: &Setup, server: &Setup, alerts: &[u8]) {
    let mut world = world(plain(1), client, server, Idle);
    world.run(LIMIT);
    let (mut local, mut peer) = (0, 0);
    for end in [world.client(0), world.accepted(0)] {
        let Some(ConnectionError::Transport { by, code, .. }) = end.close_reason() else {
            panic!("{:?}: {:?}", end.side, end.close_reason());
        };
        assert!(
            code.alert().is_some_and(|alert| alerts.contains(&alert)),
            "{code}"
        );
        match by {
            By::Local => local += 1,
            By::Peer => peer += 1,
        }
    }
    assert_eq!((local, peer), (1, 1));
    assert!(world.now() < LIMIT, "it fails at once, not by a timeout");
}

/// Proves: rfc9000 7 alpn-is-negotiated
/// Proves: rfc9001 8.1 no-application-protocol-closes
/// Proves: rfc9001 4.8 alerts-are-fatal
#[test]
fn no_protocol_in_common_is_alert_120_on_both_ends() {
    for backend in Backend::ALL {
        let server = server(backend, KeyExchange::default());
        fails_with(&client_with_alpn("other"), &server, &[120]);
    }
}

/// Proves: rfc9001 4.8 alerts-are-fatal
#[test]
fn no_group_in_common_is_a_refusal_on_both_ends() {
    let server = server(Backend::Rustls, only(Group::X25519));
    let client = client(Backend::Rustls, only(Group::SECP256R1));
    let mut world = world(plain(1), &client, &server, Idle);
    world.run(LIMIT);
    let lists = [Group::SECP256R1, Group::X25519];
    let ends = [world.client(0), world.accepted(0)];
    for (end, ours, peers) in [(ends[0], lists[0], lists[1]), (ends[1], lists[1], lists[0])] {
        let Some(ConnectionError::KeyExchangeRefused { groups, .. }) = end.close_reason() else {
            panic!("{:?}: {:?}", end.side, end.close_reason());
        };
        assert_eq!(
            (&groups.ours[..], &groups.peers[..]),
            (&[ours][..], &[peers][..])
        );
    }
    assert!(world.now() < LIMIT, "it fails at once, not by a timeout");
}

/// Proves: rfc9001 4.4 server-is-authenticated
/// Proves: rfc9001 4.8 alerts-are-fatal
#[test]
fn an_untrusted_certificate_ends_both_sides() {
    let server = server(Backend::Rustls, KeyExchange::default());
    fails_with(
        &crate::support::distrusting_client(),
        &server,
        &[42, 46, 48, 51],
    );
}

#[test]
fn a_failed_handshake_fails_for_both_whatever_is_lost() {
    for mask in 0..32_u32 {
        let places = (0..5)
            .filter(|place| mask >> place & 1 == 1)
            .collect::<Vec<_>>();
        let server = server(Backend::Rustls, KeyExchange::default());
        let mut world = world(
            plain(1).drop_nth(places),
            &client_with_alpn("other"),
            &server,
            Idle,
        );
        world.run(LIMIT);
        for end in [world.client(0), world.accepted(0)] {
            assert!(
                matches!(
                    end.close_reason(),
                    Some(ConnectionError::Transport { .. } | ConnectionError::TimedOut)
                ),
                "{:?}",
                end.close_reason()
            );
        }
        assert_eq!(world.client(0).progress(), Progress::Busy);
    }
}
