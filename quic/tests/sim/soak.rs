//! Half an hour on a link that never stays as it is.

use std::time::Duration;

use hybriq_sim::{
    Bandwidth, Marking, Network, Rng,
    flow::{FlowReport, FlowSetup, Flows},
    matrix::CONTROLLERS,
    ms, one_in, per_mille,
};

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// Most packets that one flow may hold at any time: a little more than a second of the fastest link
/// carries.
const MOST_HELD: usize = 2000;

/// A link whose rate is another one every few seconds, that goes dark now and then, and loses,
/// reorders, repeats, delays and marks datagrams.
fn restless(seed: u64) -> Network {
    let mut rng = Rng::nth(seed, 1000);
    let mut at = Duration::ZERO;
    let (mut rates, mut dark) = (Vec::new(), Vec::new());
    while at < HALF_AN_HOUR {
        at += ms(1000) + rng.up_to(ms(20_000));
        rates.push((at, 500_000 + rng.below(4_000_000)));
        if rng.happens(one_in(8)) {
            let from = at + rng.up_to(ms(5000));
            dark.push((from, from + ms(100) + rng.up_to(ms(3000))));
        }
    }
    let (from, to) = (ms(20), ms(150));
    let link = Bandwidth::new(2_000_000, 60_000)
        .then(rates)
        .marking(Marking::Ramp { from, to });
    Network::new(seed)
        .node(link)
        .delay(ms(20))
        .blackout(dark)
        .ordered_jitter(ms(5))
        .bursts(one_in(2000), 5)
        .loss(per_mille(1))
        .overtake(one_in(500), 20)
        .duplicate(one_in(500), ms(30))
}

#[test]
fn half_an_hour_of_changes_stalls_nothing_and_leaks_nothing() {
    for seed in 0..1 {
        let mut flows = Flows::new(restless(seed));
        for (_, congestion) in &CONTROLLERS {
            flows.add(&FlowSetup {
                ends_at: HALF_AN_HOUR,
                ..FlowSetup::new(congestion.clone())
            });
        }
        let reports = |flows: &Flows| -> Vec<(&str, FlowReport)> {
            let named = CONTROLLERS.iter().enumerate();
            named
                .map(|(flow, (name, _))| (*name, flows.report(flow)))
                .collect()
        };
        while flows.now() < HALF_AN_HOUR {
            flows.run_for(Duration::from_secs(5));
            for (name, report) in reports(&flows) {
                let idle = flows.now().saturating_sub(report.progress_at);
                assert!(idle < Duration::from_secs(20), "{name} stalls: {report:?}");
                assert!(report.held < MOST_HELD, "{name} holds: {report:?}");
            }
        }
        flows.run_for(Duration::from_secs(120));
        assert!(flows.is_quiet(), "something goes on for ever");
        assert_eq!(flows.in_flight(), 0);
        for (name, report) in reports(&flows) {
            assert_eq!(report.bytes_in_flight, 0, "{name}");
            assert!(report.delivered > 20_000_000, "{name}: {report:?}");
            assert!(report.delivered + report.repeated <= report.sent, "{name}");
            // Nothing in flight, nothing to send again; only a last message and the ranges since
            // the last acknowledgement of an acknowledgement.
            assert!(report.held < 70, "{name}: {report:?}");
        }
    }
}
