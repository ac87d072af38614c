use std::time::{Duration, Instant};

use hybriq_proto::stats::{EndpointStats, MemoryHeld};
use hybriq_tls::Side;

use super::{INTERVAL, Meter};

fn stats(datagrams: u64) -> EndpointStats {
    let mut stats = EndpointStats::default();
    stats.datagrams_received = datagrams;
    stats
}

/// Publishes as at the end of a turn, with no memory to measure.
fn publish(meter: &mut Meter, now: Instant, stats: &EndpointStats) {
    meter.publish(now, stats);
    meter.take_census(now, |_| (MemoryHeld::default(), None));
}

#[test]
fn counters_are_published_at_most_once_in_an_interval() {
    let (mut meter, start) = (Meter::new(None, 0), Instant::now());
    let ms = |ms| start + Duration::from_millis(ms);
    publish(&mut meter, start, &stats(0));
    assert_eq!(meter.next_timeout(), None, "zeros are published at once");
    publish(&mut meter, ms(10), &stats(1));
    assert_eq!(meter.next_timeout(), Some(start + INTERVAL));
    publish(&mut meter, ms(999), &stats(2));
    assert!(meter.published.is(&stats(0)), "too early");
    assert_eq!(meter.next_timeout(), Some(start + INTERVAL));
    publish(&mut meter, ms(1000), &stats(2));
    assert!(meter.published.is(&stats(2)));
    assert_eq!(meter.next_timeout(), None, "nothing is new");
    publish(&mut meter, ms(9000), &stats(3));
    assert!(meter.published.is(&stats(3)), "at once after a silence");
}

#[test]
fn a_connection_is_published_without_any_counter_of_the_worker() {
    let (mut meter, start) = (Meter::new(None, 0), Instant::now());
    publish(&mut meter, start, &stats(0));
    meter.on_started(Side::Server, start);
    publish(&mut meter, start, &stats(0));
    assert_eq!(meter.next_timeout(), Some(start + INTERVAL));
}
