//! Tests that the coupled AQM treats open-loop traffic as RFC 9332 says.

use std::time::Duration;

use hybriq_tls::Side;

use super::{Datagram, deliver, numbered};
use crate::{DualQueue, LinkReport, LinkStats, Network, ms};
use hybriq_proto::owners::acks::Ecn;

/// Rate of 8 Mbit/s: a datagram of 1,000 bytes takes a millisecond.
const RATE: u64 = 8_000_000;

/// Sends this number of datagrams of each kind every hundred milliseconds, evenly.
fn load(kinds: &[(Option<Ecn>, u32)], seconds: u32) -> (Vec<(Duration, Datagram)>, LinkReport) {
    let stats = LinkStats::new();
    let network = Network::new(5).node(DualQueue::new(RATE, 400_000).stats(&stats));
    let mut sent: Vec<_> = kinds
        .iter()
        .flat_map(|&(ecn, count)| {
            (0..count * 10 * seconds).map(move |number| {
                let at = ms(100) * number / count;
                let datagram = numbered(Side::Server, number, 1000);
                (at, Datagram { ecn, ..datagram })
            })
        })
        .collect();
    sent.sort_by_key(|(at, _)| *at);
    let came = deliver(network, Side::Server, sent);
    (came, stats.toward(Side::Server))
}

fn count(came: &[(Duration, Datagram)], ecn: Option<Ecn>) -> usize {
    came.iter().filter(|(_, one)| one.ecn == ecn).count()
}

#[test]
fn a_link_with_room_loses_nothing() {
    let (came, report) = load(&[(None, 40), (Some(Ecn::Ect1), 40)], 5);
    assert_eq!((came.len(), report.dropped), (4000, 0));
    // The controller sometimes sees a datagram wait for another.
    assert!(report.marked < 10, "{}", report.marked);
    assert_eq!(report.bytes, 4_000_000);
}

#[test]
fn classic_overload_is_dropped_until_the_queue_is_at_its_target() {
    // A tenth more than the capacity of the link.
    let (_, report) = load(&[(None, 110)], 60);
    let delay = report.delay.percentile(50);
    assert!(delay > ms(10) && delay < ms(25), "{delay:?}");
    assert!((5000..8000).contains(&report.dropped), "{}", report.dropped);
}

#[test]
fn classic_overload_that_understands_ecn_is_marked() {
    let (came, report) = load(&[(Some(Ecn::Ect0), 101)], 60);
    assert!(report.marked > 100, "{}", report.marked);
    assert_eq!(count(&came, Some(Ecn::Ce)) as u64, report.marked);
}

#[test]
fn l4s_traffic_is_marked_above_a_millisecond() {
    let (came, report) = load(&[(Some(Ecn::Ect1), 101)], 1);
    assert_eq!(report.dropped, 0);
    assert!(count(&came, Some(Ecn::Ce)) > 700, "{}", report.marked);
}

#[test]
fn l4s_traffic_passes_a_classic_queue_and_is_marked_for_it() {
    let (came, report) = load(&[(None, 80), (Some(Ecn::Ect1), 40)], 60);
    let (low, classic) = (&report.low_latency_delay, &report.delay);
    assert!(low.percentile(95) < ms(3), "{:?}", low.percentile(95));
    assert!(classic.mean() > ms(8), "{:?}", classic.mean());
    // The C queue must lose a quarter (20 of 80): p' is about a half, and L is marked by twice that.
    assert!(count(&came, Some(Ecn::Ce)) > 10_000, "{}", report.marked);
    assert!(report.dropped > 6000, "{}", report.dropped);
}

#[test]
fn classic_traffic_is_not_starved() {
    let (came, _) = load(&[(None, 20), (Some(Ecn::Ect1), 200)], 10);
    let classic = count(&came, None);
    assert!(classic > 300, "{classic} of about 10,000 places");
}

#[test]
fn a_full_queue_drops() {
    let stats = LinkStats::new();
    let network = Network::new(5).node(DualQueue::new(RATE, 3000).stats(&stats));
    let burst = (0..10).map(|number| (ms(0), numbered(Side::Server, number, 1000)));
    assert_eq!(deliver(network, Side::Server, burst).len(), 4);
    assert_eq!(stats.toward(Side::Server).dropped, 6);
}
