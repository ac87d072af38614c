use std::time::Duration;

use super::{Direction, Fate, Line, Offer, Passage, Settings};
use crate::link::tally::{Loss, Tally};

const SIZE: u64 = 1250;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn us(count: u64) -> Duration {
    Duration::from_micros(count)
}

fn offer(now: Duration) -> Offer {
    Offer {
        now,
        bytes: SIZE,
        ecn_capable: true,
    }
}

/// 10 Mbit/s: a datagram of [`SIZE`] takes 1 ms.
fn line(queue: u64) -> Line {
    Line {
        rate: "10mbit".parse().unwrap(),
        queue,
        mark_above: None,
    }
}

/// Offers `count` datagrams, `gap` apart.
fn run(settings: Settings, count: u32, gap: Duration) -> (Vec<Fate>, Tally) {
    let mut direction = Direction::new(settings, 1);
    let fates = (0..count)
        .map(|n| direction.offer(offer(gap * n)))
        .collect();
    (fates, direction.tally())
}

fn passages(fates: &[Fate]) -> Vec<Passage> {
    fates
        .iter()
        .filter_map(|fate| match fate {
            Fate::Passed(passage) => Some(*passage),
            Fate::Lost(_) => None,
        })
        .collect()
}

fn dues(fates: &[Fate]) -> Vec<Duration> {
    passages(fates).iter().map(|passage| passage.due).collect()
}

#[test]
fn nothing_happens_where_nothing_is_set() {
    let (fates, tally) = run(Settings::default(), 100, ms(1));
    let expected: Vec<_> = (0..100)
        .map(|n| {
            Fate::Passed(Passage {
                due: ms(n),
                copies: 1,
                flip: None,
                marked: false,
            })
        })
        .collect();
    assert_eq!(fates, expected);
    assert_eq!((tally.datagrams_in, tally.lost.sum()), (100, 0));
}

#[test]
fn every_datagram_is_delayed_by_the_delay_exactly() {
    let settings = Settings {
        delay: ms(50),
        ..Settings::default()
    };
    let (fates, _) = run(settings, 5, us(10));
    let expected: Vec<_> = (0..5).map(|n| ms(50) + us(10 * n)).collect();
    assert_eq!(dues(&fates), expected);
}

#[test]
fn jitter_adds_up_to_its_bound_and_keeps_the_order() {
    let settings = Settings {
        delay: ms(20),
        jitter: ms(10),
        ..Settings::default()
    };
    let (fates, _) = run(settings, 10_000, ms(20));
    let added: Vec<_> = (0..)
        .zip(dues(&fates))
        .map(|(n, due)| due.saturating_sub(ms(20) * n + ms(20)))
        .collect();
    assert!(added.iter().all(|added| *added < ms(10)));
    let mean = added.iter().sum::<Duration>() / 10_000;
    assert!(mean > us(4900) && mean < us(5100), "{mean:?}");

    let settings = Settings {
        jitter: ms(10),
        ..Settings::default()
    };
    let (fates, _) = run(settings, 10_000, us(100));
    assert!(dues(&fates).is_sorted());
}

#[test]
fn the_line_sends_at_its_rate_and_no_faster() {
    let settings = Settings {
        delay: ms(5),
        line: Some(line(u64::MAX / 8_000_000_000)),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 1000, us(1));
    let expected: Vec<_> = (1..=1000).map(|n| ms(n) + ms(5)).collect();
    assert_eq!(dues(&fates), expected);
    assert!((9.99..=10.0).contains(&tally.rate_mbit), "{tally:?}");
    assert!(
        (tally.max_queue_delay_us - 998_001.0).abs() < 1.0,
        "{tally:?}"
    );
}

#[test]
fn a_line_that_rested_sends_at_once() {
    let settings = Settings {
        line: Some(line(15_000)),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 10, ms(7));
    let expected: Vec<_> = (0..10).map(|n| ms(7) * n + ms(1)).collect();
    assert_eq!(dues(&fates), expected);
    assert_eq!(tally.max_queue_delay_us.to_bits(), 0.0_f64.to_bits());
}

#[test]
fn a_full_queue_drops_what_comes_and_takes_again_what_fits() {
    let settings = Settings {
        line: Some(line(4 * SIZE)),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let mut fate = |at| direction.offer(offer(at));
    for _ in 0..4 {
        assert!(matches!(fate(ms(0)), Fate::Passed(_)));
    }
    assert_eq!(fate(ms(0)), Fate::Lost(Loss::Queue));
    assert_eq!(fate(us(999)), Fate::Lost(Loss::Queue));
    assert!(matches!(fate(ms(1)), Fate::Passed(_)));
    assert_eq!(fate(ms(1)), Fate::Lost(Loss::Queue));
    assert_eq!(direction.tally().lost.queue, 3);
}

#[test]
fn a_queue_smaller_than_a_datagram_still_sends_to_an_idle_line() {
    let settings = Settings {
        line: Some(line(0)),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 10, us(500));
    assert_eq!(passages(&fates).len(), 5);
    assert_eq!(tally.lost.queue, 5);
}

#[test]
fn only_ecn_capable_datagrams_that_waited_longer_are_marked() {
    let settings = Settings {
        line: Some(Line {
            mark_above: Some(ms(5)),
            ..line(1 << 20)
        }),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let marked = |direction: &mut Direction, ecn_capable| {
        let offer = Offer {
            ecn_capable,
            ..offer(ms(0))
        };
        passages(&[direction.offer(offer)])[0].marked
    };
    let marks: Vec<_> = (0..10).map(|_| marked(&mut direction, true)).collect();
    assert_eq!(
        marks,
        [
            false, false, false, false, false, false, true, true, true, true
        ]
    );
    assert!(!marked(&mut direction, false));
    assert_eq!(direction.tally().marked, 4);
}

#[test]
fn random_loss_loses_its_share() {
    let settings = Settings {
        loss: "1%".parse().unwrap(),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 100_000, us(1));
    assert!((900..1100).contains(&tally.lost.random), "{tally:?}");
    assert_eq!(tally.lost.sum(), tally.lost.random);
    assert_eq!(passages(&fates).len() as u64, 100_000 - tally.lost.random);
}

#[test]
fn bursts_have_their_share_and_their_mean_length() {
    let settings = Settings {
        burst: Some("2%x8".parse().unwrap()),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 400_000, us(1));
    assert!((7200..8800).contains(&tally.lost.burst), "{tally:?}");
    let lost = |fate: &Fate| *fate == Fate::Lost(Loss::Burst);
    let begun = fates
        .windows(2)
        .filter(|pair| !lost(&pair[0]) && lost(&pair[1]));
    let mean = tally.lost.burst as f64 / begun.count() as f64;
    assert!((7.5..8.5).contains(&mean), "{mean}");
}

#[test]
fn held_back_datagrams_are_overtaken_and_do_not_hold_up_others() {
    let settings = Settings {
        delay: ms(10),
        reorder: Some("5%,3ms".parse().unwrap()),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 10_000, ms(1));
    assert!((450..550).contains(&tally.reordered), "{tally:?}");
    let mut held = 0;
    for (n, due) in (0..).zip(dues(&fates)) {
        let extra = due.saturating_sub(ms(1) * n + ms(10));
        assert!(extra == ms(0) || extra == ms(3), "{extra:?}");
        held += u64::from(extra == ms(3));
    }
    assert_eq!(held, tally.reordered);
}

#[test]
fn duplicates_and_corruption_have_their_shares() {
    let settings = Settings {
        duplicate: "3%".parse().unwrap(),
        corrupt: "5%".parse().unwrap(),
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 20_000, us(1));
    let passages = passages(&fates);
    assert_eq!(passages.len(), 20_000);
    let twice = passages.iter().filter(|passage| passage.copies == 2);
    assert_eq!(twice.count() as u64, tally.duplicated);
    assert!((500..700).contains(&tally.duplicated), "{tally:?}");
    let flips: Vec<_> = passages.iter().filter_map(|passage| passage.flip).collect();
    assert_eq!(flips.len() as u64, tally.corrupted);
    assert!((900..1100).contains(&tally.corrupted), "{tally:?}");
    assert!(flips.iter().all(|bit| *bit < SIZE * 8));
    assert!(flips.iter().any(|bit| *bit < SIZE) && flips.iter().any(|bit| *bit > SIZE * 7));
}

#[test]
fn an_empty_datagram_has_no_bit_to_flip() {
    let settings = Settings {
        corrupt: "100%".parse().unwrap(),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let empty = Offer {
        bytes: 0,
        ..offer(ms(0))
    };
    assert_eq!(passages(&[direction.offer(empty)])[0].flip, None);
}

#[test]
fn a_blackout_loses_what_enters_the_wire_in_it() {
    let settings = Settings {
        delay: ms(30),
        blackouts: vec!["10ms,5ms".parse().unwrap(), "20ms,1ms".parse().unwrap()],
        ..Settings::default()
    };
    let (fates, tally) = run(settings, 30, ms(1));
    let lost: Vec<_> = (0..30)
        .filter(|n| fates[*n] == Fate::Lost(Loss::Blackout))
        .collect();
    assert_eq!(lost, [10, 11, 12, 13, 14, 20]);
    assert_eq!(tally.lost.blackout, 6);
}

#[test]
fn datagrams_above_the_mtu_are_lost() {
    let settings = Settings {
        mtu: Some(SIZE - 1),
        ..Settings::default()
    };
    let (fates, _) = run(settings.clone(), 1, ms(1));
    assert_eq!(fates, [Fate::Lost(Loss::Size)]);
    let settings = Settings {
        mtu: Some(SIZE),
        ..settings
    };
    assert_eq!(passages(&run(settings, 1, ms(1)).0).len(), 1);
}

fn everything() -> Settings {
    Settings {
        delay: ms(20),
        jitter: ms(3),
        mtu: Some(1500),
        line: Some(line(20_000)),
        loss: "1%".parse().unwrap(),
        burst: Some("1%x4".parse().unwrap()),
        reorder: Some("2%,5ms".parse().unwrap()),
        duplicate: "1%".parse().unwrap(),
        corrupt: "1%".parse().unwrap(),
        blackouts: vec!["500ms,100ms".parse().unwrap()],
    }
}

#[test]
fn one_seed_decides_alike_and_another_does_not() {
    let decide = |seed| {
        let mut direction = Direction::new(everything(), seed);
        (0..5000)
            .map(|n| direction.offer(offer(us(900) * n)))
            .collect::<Vec<_>>()
    };
    assert_eq!(decide(5), decide(5));
    assert_ne!(decide(5), decide(6));
}

#[test]
fn chance_does_not_depend_on_when_datagrams_come() {
    let lost = |gap| {
        let settings = Settings {
            line: None,
            blackouts: Vec::new(),
            ..everything()
        };
        let (fates, _) = run(settings, 5000, gap);
        fates
            .iter()
            .map(|fate| matches!(fate, Fate::Lost(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(lost(us(1)), lost(ms(3)));
}

#[test]
fn every_datagram_is_accounted_for() {
    let (fates, tally) = run(everything(), 20_000, us(700));
    let passed = passages(&fates).len() as u64;
    assert_eq!(tally.datagrams_in, passed + tally.lost.sum());
    for count in [
        tally.lost.queue,
        tally.lost.random,
        tally.lost.burst,
        tally.lost.blackout,
        tally.reordered,
        tally.duplicated,
        tally.corrupted,
    ] {
        assert!(count > 0, "{tally:?}");
    }
}

#[test]
fn time_that_steps_back_is_not_believed() {
    let mut direction = Direction::new(Settings::default(), 1);
    let first = direction.offer(offer(ms(10)));
    let second = direction.offer(offer(ms(9)));
    assert_eq!(first, second);
}
