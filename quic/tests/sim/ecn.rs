//! ECN over paths that carry it, and over those that break it (RFC 9000 §13.4).

use std::sync::{Arc, Mutex};

use hybriq::{TransportConfig, stats::EcnState, tls::Side};
use hybriq_proto::wire::udp::Ecn;
use hybriq_sim::{Ask, Bandwidth, Mangle, Marking, Network, Overtake, Progress, World, ms, one_in};

use crate::support::{
    DELAY, LIMIT, PTO, RTT, answered_after, client_with, server_with, transport, world,
};

const SIZE: usize = 300_000;

/// The marks of the datagrams that passed towards the server, in their order.
#[derive(Clone, Default)]
struct Marks(Arc<Mutex<Vec<Option<Ecn>>>>);

impl Marks {
    fn watch(&self, network: Network) -> Network {
        let marks = self.0.clone();
        network.drop_if(move |datagram, toward| {
            if toward.is_server() {
                marks.lock().unwrap().push(datagram.ecn);
            }
            false
        })
    }

    fn count(&self, mark: Option<Ecn>) -> usize {
        let marks = self.0.lock().unwrap();
        marks.iter().filter(|seen| **seen == mark).count()
    }

    fn last(&self) -> Option<Ecn> {
        self.0.lock().unwrap().last().copied().flatten()
    }
}

/// Sends and gets back [`SIZE`] bytes over a network that `break_it` builds.
fn transfer(
    transport: &TransportConfig,
    break_it: impl FnOnce(Network) -> Network,
) -> (World, Marks) {
    let marks = Marks::default();
    let network = break_it(marks.watch(Network::new(1)).delay(DELAY));
    let (client, server) = (
        client_with(transport.clone()),
        server_with(transport.clone()),
    );
    let ask = Ask::streams(1, SIZE).keep_open();
    let mut world = world(network, &client, &server, ask);
    let done = world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done);
    assert!(done, "{:?}", world.client(0).stats());
    (world, marks)
}

fn states(world: &World) -> [EcnState; 2] {
    [world.client(0), world.accepted(0)].map(|peer| {
        let connection = peer.connection.as_ref().unwrap();
        connection.path_stats().ecn
    })
}

#[test]
fn a_path_that_carries_marks_is_used_with_them() {
    let (world, marks) = transfer(&transport(), |network| network);
    assert_eq!(states(&world), [EcnState::Capable; 2]);
    assert!(marks.count(Some(Ecn::Ect0)) > 200);
    assert!(
        marks.count(None) < 20,
        "while it waited for word of the first"
    );
    assert_eq!(marks.count(Some(Ecn::Ect1)) + marks.count(Some(Ecn::Ce)), 0);
    assert_eq!(
        (
            world.client(0).stats().ecn_echoed.ce,
            world.accepted(0).stats().ecn_echoed.ce
        ),
        (0, 0)
    );
}

/// Proves: rfc9000 13.4.2.2 failed-ecn-is-switched-off
#[test]
fn a_path_that_bleaches_marks_is_used_without_them() {
    let (world, marks) = transfer(&transport(), |network| network.node(Mangle::Bleach));
    assert_eq!(states(&world), [EcnState::Failed; 2]);
    assert!(marks.count(Some(Ecn::Ect0)) <= 20, "those of the handshake");
    assert_eq!(marks.last(), None);
    assert_eq!(world.client(0).stats().packets_lost, 0);
}

#[test]
fn a_path_that_changes_marks_is_used_without_them() {
    let (world, marks) = transfer(&transport(), |network| network.node(Mangle::Ect0ToEct1));
    assert_eq!(states(&world), [EcnState::Failed; 2]);
    assert_eq!(marks.last(), None);
}

#[test]
fn a_path_that_marks_everything_is_used_without_marks() {
    let (world, marks) = transfer(&transport(), |network| network.node(Mangle::AllCe));
    assert_eq!(states(&world), [EcnState::Failed; 2]);
    assert_eq!(marks.last(), None);
    let window = world.client(0).stats().congestion_window;
    assert!(window > 20_000, "it recovered: {window}");
}

/// The handshake takes two probe timeouts of each end longer, and a round trip in which the server waits at
/// its limit of amplification, and no more.
#[test]
fn a_path_that_drops_marked_datagrams_is_used_without_them() {
    let drop = |network: Network| network.drop_if(|datagram, _| datagram.ecn.is_some());
    let (world, marks) = transfer(&transport(), drop);
    for state in states(&world) {
        // An end whose marked packets went with their keys never learns what became of them.
        assert!(matches!(state, EcnState::Failed | EcnState::Unknown));
    }
    assert_eq!(marks.last(), None);
    let complete = world.client(0).complete_at.unwrap();
    assert!(complete <= 2 * RTT + 3 * PTO + 3 * PTO, "{complete:?}");
}

/// Proves: rfc9000 13.4.2.1 reordered-acks-do-not-fail-ecn
#[test]
fn acks_that_overtake_one_another_do_not_fail_a_path() {
    for most in [1, 2, 5, 20] {
        let (world, _) = transfer(&transport(), |network| {
            network.toward(Side::Client, Overtake::new(one_in(3), most))
        });
        assert_eq!(states(&world), [EcnState::Capable; 2], "up to {most}");
    }
}

#[test]
fn a_queue_that_marks_need_not_drop() {
    let link = |marking| {
        move |network: Network| {
            // Ten times what fits on the way.
            let node = Bandwidth::new(5_000_000, 625_000).marking(marking);
            network.toward(Side::Server, node)
        }
    };
    let (marked, _) = transfer(&transport(), link(Marking::Above(ms(20))));
    let (unmarked, _) = transfer(&transport(), link(Marking::Never));
    let stats = marked.client(0).stats();
    assert!(
        stats.ecn_echoed.ce > 0 && stats.packets_lost == 0,
        "{stats:?}"
    );
    assert_eq!(states(&marked)[0], EcnState::Capable);
    assert_eq!(unmarked.client(0).stats().ecn_echoed.ce, 0);
    assert!(stats.congestion_window < unmarked.client(0).stats().congestion_window);
    assert!(answered_after(&marked) < 2 * answered_after(&unmarked));
}

#[test]
fn nothing_is_marked_where_it_is_switched_off() {
    let (world, marks) = transfer(&transport().without_ecn(), |network| network);
    assert_eq!(states(&world), [EcnState::Disabled; 2]);
    assert_eq!(marks.count(None), marks.0.lock().unwrap().len());
}

/// One end without ECN still tells the other what it sees.
/// Proves: rfc9000 13.4.1 ecn-is-reported
#[test]
fn marks_are_reported_by_those_who_set_none() {
    let (client, server) = (
        client_with(transport().without_ecn()),
        server_with(transport()),
    );
    let network = Network::new(1).delay(DELAY);
    let ask = Ask::streams(1, SIZE).keep_open();
    let mut world = world(network, &client, &server, ask);
    assert!(world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done));
    assert_eq!(states(&world), [EcnState::Disabled, EcnState::Capable]);
}
