//! Prague behind queues that mark early (RFC 9331).

use std::time::Duration;

use hybriq::{tls::Side, transport::Congestion};
use hybriq_sim::{
    DualQueue, LinkReport, LinkStats, Network,
    flow::{FlowSetup, Flows},
    ms,
};

const MBIT: u64 = 1_000_000;

/// More than any flow fills.
const QUEUE: u64 = 10_000_000;

/// Flows over a link with a dual queue: what each carried, as a part of the link's rate, and what
/// the link saw, in ten seconds after as many to begin.
fn share(mbit: u64, rtt: u64, flows: &[Congestion]) -> (Vec<f64>, LinkReport) {
    let stats = LinkStats::new();
    let queue = DualQueue::new(mbit * MBIT, QUEUE).stats(&stats);
    let mut world = Flows::new(Network::new(1).delay(ms(rtt) / 2).node(queue));
    for (index, congestion) in flows.iter().enumerate() {
        world.add(&FlowSetup {
            starts_at: ms(150) * index as u32,
            ..FlowSetup::new(congestion.clone())
        });
    }
    world.run_for(Duration::from_secs(10));
    stats.clear();
    let delivered = |world: &Flows| -> Vec<u64> {
        let each = 0..flows.len();
        each.map(|index| world.report(index).delivered).collect()
    };
    let before = delivered(&world);
    world.run_for(Duration::from_secs(10));
    let parts = delivered(&world)
        .iter()
        .zip(&before)
        .map(|(after, before)| (after - before) as f64 * 8.0 / (10 * mbit * MBIT) as f64)
        .collect();
    (parts, stats.toward(Side::Server))
}

#[test]
fn a_flow_fills_the_link_and_not_the_queue() {
    for (mbit, rtt, least) in [
        (10, 1, 0.95),
        (10, 30, 0.95),
        (10, 100, 0.9),
        (100, 5, 0.95),
        (100, 30, 0.95),
        (100, 100, 0.9),
    ] {
        let (parts, link) = share(mbit, rtt, &[Congestion::Prague]);
        let case = format!("{mbit} Mbit/s, {rtt} ms");
        assert!(parts[0] > least, "{case}: {:.3}", parts[0]);
        let delay = link.low_latency_delay.percentile(99);
        assert!(delay < ms(5), "{case}: {delay:?}");
        assert_eq!(link.dropped, 0, "{case}");
        assert!(link.marked > 0, "{case}");
    }
}

#[test]
fn slow_start_that_bursts_ended_early_is_made_up_for() {
    // The initial window alone is marked here.
    let stats = LinkStats::new();
    let queue = DualQueue::new(10 * MBIT, QUEUE).stats(&stats);
    let mut flows = Flows::new(Network::new(1).delay(ms(50)).node(queue));
    flows.add(&FlowSetup::new(Congestion::Prague));
    flows.run_for(ms(200));
    assert!(stats.toward(Side::Server).marked > 0);
    assert!(flows.report(0).window < 12_000);
    flows.run_for(ms(3_800));
    assert!(flows.report(0).window > 85 * 1200);
}

#[test]
fn two_flows_share() {
    for (mbit, rtt) in [(20, 10), (20, 50)] {
        let (parts, _) = share(mbit, rtt, &[Congestion::Prague, Congestion::Prague]);
        let total = parts[0] + parts[1];
        assert!(total > 0.9, "{mbit} Mbit/s, {rtt} ms: {total:.2} together");
        let most = parts[0].max(parts[1]) / total;
        assert!(most < 0.6, "{mbit} Mbit/s, {rtt} ms: {most:.2} for one");
    }
}

#[test]
fn a_classic_flow_beside_it_is_not_starved() {
    let (parts, link) = share(20, 20, &[Congestion::Prague, Congestion::NewReno]);
    assert!(parts[0] + parts[1] > 0.9, "{parts:.2?}");
    assert!(parts[1] > 0.2 && parts[0] > 0.2, "{parts:.2?}");
    let delay = link.low_latency_delay.percentile(99);
    assert!(delay < ms(5), "{delay:?}");
}
