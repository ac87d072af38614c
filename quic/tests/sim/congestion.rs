//! Duties of congestion control on paths whose capacity is known. Bounds are ratios of what the
//! link allows. Every controller is held to those that do not name one.

use std::time::Duration;

use hybriq::tls::Side;
use hybriq_proto::owners::{congestion::Congestion, recovery::Pacing};
use hybriq_sim::{
    Bandwidth, DualQueue, LinkReport, LinkStats, Loss, Marking, Network, OrderedJitter, Overtake,
    flow::{FlowReport, FlowSetup, Flows},
    matrix::CONTROLLERS,
    ms, per_mille,
};

const MBIT: u64 = 1_000_000;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Bytes that a link carries in a time.
fn capacity(rate: u64, span: Duration) -> f64 {
    rate as f64 / 8.0 * span.as_secs_f64()
}

/// The bandwidth-delay product in bytes.
fn bdp(rate: u64, round_trip: Duration) -> u64 {
    capacity(rate, round_trip) as u64
}

/// Flows over one network, and what they did between two moments.
struct Run {
    flows: Flows,
    before: Vec<FlowReport>,
    span: Duration,
}

impl Run {
    fn new(network: Network, setups: &[FlowSetup]) -> Self {
        let mut flows = Flows::new(network);
        for setup in setups {
            flows.add(setup);
        }
        Self {
            flows,
            before: vec![FlowReport::default(); setups.len()],
            span: Duration::ZERO,
        }
    }

    /// Runs until `end`, and counts from `start` on.
    fn measure(network: Network, setups: &[FlowSetup], start: Duration, end: Duration) -> Self {
        let mut run = Self::new(network, setups);
        run.flows.run_for(start);
        run.before = (0..setups.len())
            .map(|flow| run.flows.report(flow))
            .collect();
        run.span = end.saturating_sub(start);
        run.flows.run_for(run.span);
        run
    }

    fn delivered(&self, flow: usize) -> u64 {
        self.flows.report(flow).delivered - self.before[flow].delivered
    }

    /// The first flow's goodput as a share of what the link carries.
    fn goodput(&self, rate: u64) -> f64 {
        self.delivered(0) as f64 / capacity(rate, self.span)
    }
}

fn flow(congestion: &Congestion) -> FlowSetup {
    FlowSetup::new(congestion.clone())
}

/// 100 Mbit/s and 100 ms with a queue of one bandwidth-delay product.
fn long_and_fast(seed: u64) -> Network {
    let (rate, round_trip) = (100 * MBIT, ms(100));
    Network::new(seed)
        .bandwidth(rate, bdp(rate, round_trip))
        .delay(round_trip / 2)
}

#[test]
fn a_lossless_link_is_full_after_ten_seconds() {
    for (name, congestion) in &CONTROLLERS {
        let run = Run::measure(long_and_fast(1), &[flow(congestion)], secs(10), secs(15));
        let goodput = run.goodput(100 * MBIT);
        assert!(goodput >= 0.9, "{name}: {goodput:.3}");
    }
}

#[test]
fn bbr_holds_its_rate_where_cubic_takes_loss_for_congestion() {
    let goodput = |congestion: &Congestion| {
        let network = long_and_fast(1).toward(Side::Server, Loss(per_mille(10)));
        Run::measure(network, &[flow(congestion)], secs(10), secs(15)).goodput(100 * MBIT)
    };
    let (bbr, cubic) = (goodput(&Congestion::Bbr), goodput(&Congestion::Cubic));
    assert!(bbr >= 0.8, "BBRv3: {bbr:.3}");
    assert!(cubic < 0.3, "CUBIC: {cubic:.3}");
}

#[test]
fn two_flows_of_one_controller_share_the_link() {
    let (rate, round_trip) = (20 * MBIT, ms(40));
    for (name, congestion) in &CONTROLLERS {
        for seed in 0..2 {
            // Without any jitter the losses of two flows lock into step, and the seed says nothing.
            let network = Network::new(seed)
                .toward(Side::Server, OrderedJitter::new(ms(1)))
                .bandwidth(rate, bdp(rate, round_trip))
                .delay(round_trip / 2);
            let late = FlowSetup {
                starts_at: ms(2500),
                ..flow(congestion)
            };
            let run = Run::measure(network, &[flow(congestion), late], secs(20), secs(60));
            let (first, second) = (run.delivered(0) as f64, run.delivered(1) as f64);
            let share = first.max(second) / (first + second);
            assert!(share <= 0.6, "{name}, seed {seed}: {share:.3}");
            let both = (first + second) / capacity(rate, run.span);
            assert!(both >= 0.85, "{name}, seed {seed}: {both:.3} of the link");
        }
    }
}

fn behind_a_dual_queue(setups: &[FlowSetup]) -> (Run, LinkReport) {
    let (rate, round_trip) = (50 * MBIT, ms(30));
    let stats = LinkStats::new();
    let queue = DualQueue::new(rate, 4 * bdp(rate, round_trip)).stats(&stats);
    let network = Network::new(1).node(queue).delay(round_trip / 2);
    let mut run = Run::new(network, setups);
    run.flows.run_for(secs(5));
    stats.clear();
    run.before = (0..setups.len())
        .map(|flow| run.flows.report(flow))
        .collect();
    run.span = secs(10);
    run.flows.run_for(run.span);
    (run, stats.toward(Side::Server))
}

#[test]
fn prague_keeps_the_queue_short_behind_a_dual_queue() {
    let (run, link) = behind_a_dual_queue(&[flow(&Congestion::Prague)]);
    let delay = link.low_latency_delay;
    assert!(delay.percentile(99) < ms(5), "{:?}", delay.percentile(99));
    assert!(delay.mean() < ms(2), "{:?}", delay.mean());
    let goodput = run.goodput(50 * MBIT);
    assert!(goodput >= 0.9, "{goodput:.3}");
    assert_eq!(link.dropped, 0);
}

#[test]
fn prague_and_cubic_share_a_dual_queue() {
    let setups = [flow(&Congestion::Prague), flow(&Congestion::Cubic)];
    let (run, link) = behind_a_dual_queue(&setups);
    let delay = link.low_latency_delay;
    assert!(delay.percentile(99) < ms(5), "{:?}", delay.percentile(99));
    let (prague, cubic) = (run.delivered(0) as f64, run.delivered(1) as f64);
    let share = prague.max(cubic) / (prague + cubic);
    assert!(share <= 0.75, "Prague {prague}, CUBIC {cubic}");
    let both = (prague + cubic) / capacity(50 * MBIT, run.span);
    assert!(both >= 0.9, "{both:.3} of the link");
}

#[test]
fn reordering_by_up_to_fifty_packets_costs_little() {
    let (rate, round_trip) = (50 * MBIT, ms(40));
    for (name, congestion) in &CONTROLLERS {
        let goodput = |seed, overtaken| {
            let network = Network::new(seed)
                .bandwidth(rate, bdp(rate, round_trip))
                .delay(round_trip / 2)
                .toward(Side::Server, Overtake::new(per_mille(overtaken), 50));
            Run::measure(network, &[flow(congestion)], secs(3), secs(13)).goodput(rate)
        };
        let (without, with) = (goodput(1, 0), goodput(1, 10));
        assert!(with >= 0.95 * without, "{name}: {with:.3} of {without:.3}");
    }
}

#[test]
fn a_blackout_is_over_one_round_trip_and_one_probe_after_its_end() {
    let (rate, round_trip) = (20 * MBIT, ms(50));
    let (from, to) = (secs(5), secs(7));
    for (name, congestion) in &CONTROLLERS {
        let network = Network::new(1)
            .bandwidth(rate, bdp(rate, round_trip))
            .delay(round_trip / 2)
            .blackout([(from, to)]);
        let mut run = Run::measure(network, &[flow(congestion)], to, to);
        let dark = run.flows.report(0);
        assert!(dark.progress_at < from + round_trip, "{name}: {dark:?}");
        // Doubled with every probe into the dark (RFC 9002 §6.2.1).
        let probe = dark.pto * (1 << dark.backoff);
        run.flows.run_for(round_trip + probe);
        let lit = run.flows.report(0);
        assert!(
            lit.progress_at > to,
            "{name}: nothing came by {:?}",
            run.flows.now()
        );
        // And the link is full again soon after.
        run.flows.run_for(secs(2));
        let before = run.flows.report(0);
        run.flows.run_for(secs(5));
        let after = run.flows.report(0);
        let goodput = (after.delivered - before.delivered) as f64 / capacity(rate, secs(5));
        assert!(goodput >= 0.8, "{name}: {goodput:.3} after the blackout");
    }
}

#[test]
fn pacing_saves_a_shallow_buffer_from_losses() {
    let (rate, round_trip) = (50 * MBIT, ms(50));
    for (name, congestion) in &CONTROLLERS {
        let run = |pacing| {
            let network = Network::new(1)
                .bandwidth(rate, 20 * 1200)
                .delay(round_trip / 2);
            let setup = FlowSetup {
                pacing,
                ..flow(congestion)
            };
            Run::measure(network, &[setup], secs(0), secs(10)).goodput(rate)
        };
        let (paced, unpaced) = (run(Pacing::On), run(Pacing::Off));
        assert!(
            paced > 1.25 * unpaced,
            "{name}: {paced:.3} against {unpaced:.3}"
        );
    }
}

#[test]
fn marks_say_it_before_losses_do() {
    let (rate, round_trip) = (50 * MBIT, ms(30));
    for (name, congestion) in &CONTROLLERS {
        let stats = LinkStats::new();
        let link = Bandwidth::new(rate, 2 * bdp(rate, round_trip))
            .marking(Marking::Above(ms(10)))
            .stats(&stats);
        let network = Network::new(1).node(link).delay(round_trip / 2);
        let mut run = Run::measure(network, &[flow(congestion)], secs(3), secs(3));
        stats.clear();
        run.flows.run_for(secs(5));
        let link = stats.toward(Side::Server);
        assert_eq!(link.dropped, 0, "{name}");
        if name != &"BBRv3" {
            assert!(link.marked > 0, "{name}");
        }
        let p95 = link.delay.percentile(95);
        assert!(p95 < ms(25), "{name}: {p95:?}");
    }
}
