use super::*;
use crate::{testing::pn, wire::packet::PacketNumber};

const SIZE: u64 = 1200;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn acked(pn: PacketNumber, time_sent: Instant, snapshot: Snapshot) -> Acked {
    Acked {
        pn,
        time_sent,
        bytes: SIZE,
        snapshot,
    }
}

/// Ten packets, a millisecond apart, acknowledged one by one, each `spacing` after the one before.
fn train(start: Instant, spacing: Duration) -> Vec<RateSample> {
    let mut delivery = Delivery::new(start);
    let sent: Vec<_> = (0..10)
        .map(|pn| {
            let at = start + ms(pn);
            (pn, at, delivery.on_sent(at, pn * SIZE, SIZE))
        })
        .collect();
    sent.into_iter()
        .map(|(pn, at, snapshot)| {
            let mut sampling = Sampling::default();
            let now = start + ms(100) + spacing * (pn as u32);
            delivery.on_acked(
                now,
                &mut sampling,
                acked(PacketNumber::saturating(pn), at, snapshot),
            );
            delivery.finish(&sampling, ms(1)).unwrap()
        })
        .collect()
}

#[test]
fn the_rate_is_what_arrived_over_the_time_it_took() {
    let samples = train(Instant::now(), ms(2));
    let last = samples.last().unwrap();
    assert_eq!(last.delivered, 10 * SIZE);
    assert_eq!(last.interval, ms(118));
    assert_eq!(last.rate, Some(rate(10 * SIZE, ms(118))));
}

/// The rate that is told is that of the last sample that had one, with its time.
#[test]
fn the_last_rate_has_an_age() {
    let start = Instant::now();
    let mut delivery = Delivery::new(start);
    assert_eq!(delivery.last_rate(), None);
    let mut acknowledge = |number, sent: Duration, at: Duration, least| {
        let snapshot = delivery.on_sent(start + sent, 0, SIZE);
        let mut sampling = Sampling::default();
        let packet = acked(pn(number), start + sent, snapshot);
        delivery.on_acked(start + at, &mut sampling, packet);
        delivery.finish(&sampling, least);
        delivery.last_rate()
    };
    let measured = Some((rate(SIZE, ms(10)), start + ms(10)));
    assert_eq!(acknowledge(0, ms(0), ms(10), ms(1)), measured);
    // An interval that is too short gives no rate, and the one before grows old.
    assert_eq!(acknowledge(1, ms(500), ms(501), ms(5)), measured);
}

#[test]
fn compressed_acknowledgements_do_not_raise_the_rate_above_that_of_sending() {
    let start = Instant::now();
    let mut delivery = Delivery::new(start);
    let first = delivery.on_sent(start, 0, SIZE);
    let mut sampling = Sampling::default();
    delivery.on_acked(start + ms(10), &mut sampling, acked(pn(0), start, first));
    delivery.finish(&sampling, ms(1));
    // Sent over 50 ms, acknowledged within one.
    let sent: Vec<_> = (0..6)
        .map(|n| {
            let at = start + ms(10 + 10 * n);
            (1 + n, at, delivery.on_sent(at, SIZE + n * SIZE, SIZE))
        })
        .collect();
    let mut best = 0;
    for (pn, at, snapshot) in sent {
        let mut sampling = Sampling::default();
        let now = start + ms(80) + Duration::from_micros(100 * pn);
        delivery.on_acked(
            now,
            &mut sampling,
            acked(PacketNumber::saturating(pn), at, snapshot),
        );
        best = best.max(delivery.finish(&sampling, ms(1)).unwrap().rate.unwrap());
    }
    assert!(best <= rate(SIZE, ms(10)), "{best}");
}

#[test]
fn an_interval_shorter_than_a_round_trip_gives_no_rate() {
    let start = Instant::now();
    let mut delivery = Delivery::new(start);
    let snapshot = delivery.on_sent(start, 0, SIZE);
    let mut sampling = Sampling::default();
    delivery.on_acked(start + ms(5), &mut sampling, acked(pn(0), start, snapshot));
    let sample = delivery.finish(&sampling, ms(10)).unwrap();
    assert_eq!(sample.rate, None);
    assert_eq!(sample.delivered, SIZE);
}

#[test]
fn the_applications_limit_ends_with_what_was_in_flight() {
    let start = Instant::now();
    let mut delivery = Delivery::new(start);
    let first = delivery.on_sent(start, 0, SIZE);
    delivery.on_app_limited(SIZE);
    let second = delivery.on_sent(start, SIZE, SIZE);
    assert!(!first.app_limited && second.app_limited);
    for (pn, snapshot) in [(0, first), (1, second)] {
        let mut sampling = Sampling::default();
        delivery.on_acked(
            start + ms(10),
            &mut sampling,
            acked(PacketNumber::saturating(pn), start, snapshot),
        );
        delivery.finish(&sampling, ms(1));
    }
    assert!(!delivery.is_app_limited());
}

#[test]
fn losses_since_a_packet_left_are_counted() {
    let start = Instant::now();
    let mut delivery = Delivery::new(start);
    delivery.on_lost(700);
    let snapshot = delivery.on_sent(start, 0, SIZE);
    delivery.on_lost(2 * SIZE);
    let mut sampling = Sampling::default();
    delivery.on_acked(start + ms(10), &mut sampling, acked(pn(3), start, snapshot));
    let sample = delivery.finish(&sampling, ms(1)).unwrap();
    assert_eq!((sample.lost, sample.in_flight), (2 * SIZE, SIZE));
}
