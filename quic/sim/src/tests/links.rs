//! Tests of rates, queues, marks, and a link's statistics.

use std::time::Duration;

use hybriq_tls::Side;

use super::{Datagram, deliver, numbered, run};
use crate::{Bandwidth, LinkStats, Marking, Network, Node, ms};
use hybriq_proto::owners::acks::Ecn;

/// Returns datagrams of 1,000 bytes, all at the same time.
fn burst(at: Duration, count: u32, ecn: Option<Ecn>) -> impl Iterator<Item = (Duration, Datagram)> {
    (0..count).map(move |number| {
        let datagram = numbered(Side::Server, number, 1000);
        (at, Datagram { ecn, ..datagram })
    })
}

/// Rate of 8 Mbit/s: a datagram of 1,000 bytes takes a millisecond.
const RATE: u64 = 8_000_000;

fn network(node: impl Node + 'static) -> Network {
    Network::new(1).node(node)
}

#[test]
fn a_queue_holds_its_bytes_and_the_one_on_the_wire_besides() {
    let stats = LinkStats::new();
    let link = Bandwidth::new(RATE, 3000).stats(&stats);
    let came = deliver(network(link), Side::Server, burst(ms(0), 10, None));
    let times: Vec<_> = came.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [ms(1), ms(2), ms(3), ms(4)]);
    let report = stats.toward(Side::Server);
    assert_eq!((report.datagrams, report.bytes), (4, 4000));
    assert_eq!((report.dropped, report.most_queued), (6, 3000));
    assert_eq!(stats.toward(Side::Client).datagrams, 0);
}

#[test]
fn bytes_that_nobody_wrote_take_their_time_too() {
    let mut datagram = numbered(Side::Server, 0, 4);
    datagram.stand_in.bytes = 996;
    let link = Bandwidth::new(RATE, 3000);
    let came = deliver(network(link), Side::Server, [(ms(0), datagram)]);
    assert_eq!(came[0].0, ms(1));
}

#[test]
fn a_queue_delay_is_averaged_over_time() {
    let stats = LinkStats::new();
    let link = Bandwidth::new(RATE, 100_000).stats(&stats);
    // Ten milliseconds of work at once, nothing for ten, then one more.
    let sent = burst(ms(0), 10, None).chain(burst(ms(20), 1, None));
    deliver(network(link), Side::Server, sent);
    let delay = stats.toward(Side::Server).delay;
    assert_eq!(delay.max(), ms(10));
    assert_eq!(delay.mean(), Duration::from_micros(2500));
    // The queue was empty for half of the time, and longer than five milliseconds for a quarter of
    // it.
    assert_eq!(delay.percentile(40), Duration::ZERO);
    let (p75, p95) = (delay.percentile(75), delay.percentile(95));
    assert!(p75 >= ms(5) && p75 < ms(5) * 33 / 32, "{p75:?}");
    assert!(p95 >= ms(9) && p95 < ms(9) * 33 / 32, "{p95:?}");
}

#[test]
fn a_cleared_statistic_starts_anew() {
    let stats = LinkStats::new();
    let link = Bandwidth::new(RATE, 100_000).stats(&stats);
    deliver(network(link), Side::Server, burst(ms(0), 10, None));
    stats.clear();
    let report = stats.toward(Side::Server);
    assert_eq!((report.datagrams, report.delay.max()), (0, ms(0)));
}

#[test]
fn a_rate_changes_at_its_time_within_a_datagram() {
    // Half of the first datagram is sent at the full rate, the rest at a tenth of it; then nothing
    // for 100 ms.
    let changes = [
        (Duration::from_micros(500), RATE / 10),
        (ms(10), 0),
        (ms(110), RATE),
    ];
    let link = Bandwidth::new(RATE, 100_000).then(changes);
    let came = deliver(network(link), Side::Server, burst(ms(0), 3, None));
    let times: Vec<_> = came.iter().map(|(at, _)| *at).collect();
    let second = ms(110) + Duration::from_micros(550);
    assert_eq!(times, [Duration::from_micros(5500), second, second + ms(1)]);
}

#[test]
fn both_ways_have_the_same_rates() {
    let link = || Bandwidth::new(RATE, 100_000).then([(ms(1), RATE / 2)]);
    for side in [Side::Server, Side::Client] {
        let times: Vec<_> = run(network(link()), side, 2);
        assert_eq!(times, [(ms(1), 0), (ms(3), 1)]);
    }
}

#[test]
fn a_link_that_is_gone_for_good_loses_everything() {
    let link = Bandwidth::new(RATE, 100_000).then([(ms(1), 0)]);
    assert_eq!(run(network(link), Side::Server, 10).len(), 1);
}

fn marks(marking: Marking, ecn: Option<Ecn>) -> Vec<bool> {
    let stats = LinkStats::new();
    let link = Bandwidth::new(RATE, 1_000_000)
        .marking(marking)
        .stats(&stats);
    let came = deliver(network(link), Side::Server, burst(ms(0), 1000, ecn));
    assert_eq!(came.len(), 1000);
    let marks: Vec<_> = came
        .iter()
        .map(|(_, datagram)| datagram.ecn == Some(Ecn::Ce))
        .collect();
    let count = marks.iter().filter(|&&marked| marked).count();
    assert_eq!(stats.toward(Side::Server).marked, count as u64);
    marks
}

#[test]
fn a_step_marks_what_waits_longer_and_only_what_is_ecn_capable() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let marks = marks(Marking::Above(ms(100)), Some(ecn));
        assert_eq!(marks.iter().position(|marked| *marked), Some(101));
        assert!(marks[101..].iter().all(|marked| *marked));
    }
    assert!(!marks(Marking::Above(ms(100)), None).contains(&true));
    assert!(!marks(Marking::Never, Some(Ecn::Ect0)).contains(&true));
}

#[test]
fn a_ramp_marks_the_more_the_longer_the_queue_is() {
    let (from, to) = (ms(200), ms(600));
    let marks = marks(Marking::Ramp { from, to }, Some(Ecn::Ect0));
    let count = |range: &[bool]| range.iter().filter(|&&marked| marked).count();
    assert_eq!(count(&marks[..201]), 0);
    assert!(
        (20..80).contains(&count(&marks[200..400])),
        "a quarter of 200"
    );
    assert!(
        (120..180).contains(&count(&marks[400..600])),
        "three quarters"
    );
    assert_eq!(count(&marks[600..]), 400);
}
