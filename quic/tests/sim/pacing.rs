//! Pacing: a window's datagrams are spread over the round trip (RFC 9002 §7.7).

use std::{collections::BTreeMap, time::Duration};

use hybriq::{TransportConfig, tls::Side};
use hybriq_sim::{
    Ask, Network, Progress, World,
    flow::{FlowSetup, Flows},
    matrix::CONTROLLERS,
    ms,
};

use crate::support::{LIMIT, RTT, client_with, plain, server_with, transport, world};

const MIB: usize = 1024 * 1024;

/// Sends a mebibyte there and back.
fn transfer(config: &TransportConfig) -> World {
    let (client, server) = (client_with(config.clone()), server_with(config.clone()));
    let mut world = world(plain(1), &client, &server, Ask::streams(1, MIB));
    assert!(world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done));
    world
}

/// Most datagrams that left for the server at one instant.
fn longest_burst(world: &World) -> usize {
    let mut bursts = BTreeMap::<Duration, usize>::new();
    for record in world.trace().sent(Side::Server) {
        *bursts.entry(record.at).or_default() += 1;
    }
    bursts.into_values().max().unwrap_or(0)
}

#[test]
fn a_window_is_spread_over_the_round_trip() {
    let unpaced = longest_burst(&transfer(&transport().without_pacing()));
    assert!(unpaced > 200, "half a window at once: {unpaced}");
    let world = transfer(&transport());
    // Three milliseconds of the fastest rate: twice the largest window per round trip.
    let window = world.client(0).stats().congestion_window;
    let most = 2 * window * 3 / RTT.as_millis() as u64 / 1200;
    let paced = longest_burst(&world);
    assert!(paced as u64 <= most.max(10), "{paced} of {most}");
}

#[test]
fn pacing_costs_a_transfer_no_round_trip() {
    let done = |config| {
        let world = transfer(config);
        world.client(0).done_at.unwrap()
    };
    let (paced, unpaced) = (done(&transport()), done(&transport().without_pacing()));
    assert!(paced < unpaced + RTT, "{paced:?} against {unpaced:?}");
}

/// A busy machine wakes a sender up to 10 ms after a timer or a datagram. A controller that paces by
/// the rate it measures would otherwise take its own lateness for the path, and slow down further.
#[test]
fn a_sender_that_wakes_late_still_fills_the_link() {
    let (rate, round_trip) = (20_000_000, ms(60));
    for (name, congestion) in &CONTROLLERS {
        let queue = rate / 8 * 60 / 1000;
        let network = Network::new(1).bandwidth(rate, queue).delay(round_trip / 2);
        let mut flows = Flows::new(network);
        let late = FlowSetup {
            late: ms(10),
            ..FlowSetup::new(congestion.clone())
        };
        let flow = flows.add(&late);
        flows.run_for(ms(2000));
        let before = flows.report(flow).delivered;
        flows.run_for(ms(4000));
        let delivered = flows.report(flow).delivered - before;
        let share = delivered as f64 / (rate / 2) as f64;
        assert!(share >= 0.8, "{name}: {share:.3} of the link");
    }
}
