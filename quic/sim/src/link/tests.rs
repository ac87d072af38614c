//! Tests of the link model.

use std::time::Duration;

use super::{
    Blackouts, Decision, Direction, Fate, GilbertElliott, Line, Loss, Marking, Offer, Passage,
    Reorder, Settings,
};
use crate::{
    Chance, Rng, ms,
    tests::{deliver, numbered},
};

const SIZE: u64 = 1250;

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

/// Returns a line of 10 Mbit/s, on which a datagram of [`SIZE`] takes 1 ms.
fn line(queue: u64) -> Line {
    Line::new(10_000_000, queue)
}

/// Returns bursts that lose this share, with `mean` losses in a row on average.
fn bursts(share: f64, mean: f64) -> GilbertElliott {
    let begin = share / (mean * (1.0 - share));
    GilbertElliott::new(Chance::share(begin), Chance::share(1.0 / mean))
}

/// Offers `count` datagrams, `gap` apart.
fn run(settings: Settings, count: u32, gap: Duration) -> Vec<Fate> {
    fates(decide(settings, 1, count, gap))
}

fn decide(settings: Settings, seed: u64, count: u32, gap: Duration) -> Vec<Decision> {
    let mut direction = Direction::new(settings, seed);
    (0..count)
        .map(|n| direction.offer(offer(gap * n)))
        .collect()
}

fn fates(decisions: Vec<Decision>) -> Vec<Fate> {
    decisions
        .into_iter()
        .map(|decision| decision.fate)
        .collect()
}

fn lost(fates: &[Fate], loss: Loss) -> usize {
    fates
        .iter()
        .filter(|fate| **fate == Fate::Lost(loss))
        .count()
}

fn counted(fates: &[Fate], is_counted: impl Fn(&Passage) -> bool) -> usize {
    passages(fates)
        .iter()
        .filter(|passage| is_counted(passage))
        .count()
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
    let fates = run(Settings::default(), 100, ms(1));
    let expected: Vec<_> = (0..100)
        .map(|n| {
            Fate::Passed(Passage {
                due: ms(n),
                copies: 1,
                flip: None,
                marked: false,
                held_back: false,
            })
        })
        .collect();
    assert_eq!(fates, expected);
}

#[test]
fn every_datagram_is_delayed_by_the_delay_exactly() {
    let settings = Settings {
        delay: ms(50),
        ..Settings::default()
    };
    let fates = run(settings, 5, us(10));
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
    let fates = run(settings, 10_000, ms(20));
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
    let fates = run(settings, 10_000, us(100));
    assert!(dues(&fates).is_sorted());
}

#[test]
fn the_line_sends_at_its_rate_and_no_faster() {
    let settings = Settings {
        delay: ms(5),
        line: Some(line(u64::MAX / 2)),
        ..Settings::default()
    };
    let fates = run(settings, 1000, us(1));
    let expected: Vec<_> = (1..=1000).map(|n| ms(n) + ms(5)).collect();
    assert_eq!(dues(&fates), expected);
}

#[test]
fn a_line_that_rested_sends_at_once() {
    let settings = Settings {
        line: Some(line(15_000)),
        ..Settings::default()
    };
    let fates = run(settings, 10, ms(7));
    let expected: Vec<_> = (0..10).map(|n| ms(7) * n + ms(1)).collect();
    assert_eq!(dues(&fates), expected);
}

#[test]
fn a_full_queue_drops_what_comes_and_takes_again_what_fits() {
    let settings = Settings {
        // The datagram on the wire is not counted.
        line: Some(line(3 * SIZE)),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let mut queue_losses = 0;
    let mut fate = |at| {
        let fate = direction.offer(offer(at)).fate;
        queue_losses += usize::from(fate == Fate::Lost(Loss::Queue));
        fate
    };
    for _ in 0..4 {
        assert!(matches!(fate(ms(0)), Fate::Passed(_)));
    }
    assert_eq!(fate(ms(0)), Fate::Lost(Loss::Queue));
    assert_eq!(fate(us(999)), Fate::Lost(Loss::Queue));
    assert!(matches!(fate(ms(1)), Fate::Passed(_)));
    assert_eq!(fate(ms(1)), Fate::Lost(Loss::Queue));
    assert_eq!(queue_losses, 3);
}

#[test]
fn a_queue_smaller_than_a_datagram_still_sends_to_an_idle_line() {
    let settings = Settings {
        line: Some(line(0)),
        ..Settings::default()
    };
    let fates = run(settings, 10, us(500));
    assert_eq!(passages(&fates).len(), 5);
    assert_eq!(lost(&fates, Loss::Queue), 5);
}

#[test]
fn only_ecn_capable_datagrams_that_waited_longer_are_marked() {
    let settings = Settings {
        line: Some(line(1 << 20).marking(Marking::Above(ms(5)))),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let marked = |direction: &mut Direction, ecn_capable| {
        let offer = Offer {
            ecn_capable,
            ..offer(ms(0))
        };
        passages(&[direction.offer(offer).fate])[0].marked
    };
    let marks: Vec<_> = (0..10).map(|_| marked(&mut direction, true)).collect();
    assert_eq!(
        marks,
        [
            false, false, false, false, false, false, true, true, true, true
        ]
    );
    assert!(!marked(&mut direction, false));
}

#[test]
fn random_loss_loses_its_share() {
    let settings = Settings {
        loss: Chance::share(0.01),
        ..Settings::default()
    };
    let fates = run(settings, 100_000, us(1));
    let lost = lost(&fates, Loss::Random);
    assert!((900..1100).contains(&lost), "{lost}");
    assert_eq!(passages(&fates).len(), 100_000 - lost);
}

#[test]
fn bursts_have_their_share_and_their_mean_length() {
    let settings = Settings {
        bursts: Some(bursts(0.02, 8.0)),
        ..Settings::default()
    };
    let fates = run(settings, 400_000, us(1));
    let count = lost(&fates, Loss::Burst);
    assert!((7200..8800).contains(&count), "{count}");
    let lost = |fate: &Fate| *fate == Fate::Lost(Loss::Burst);
    let begun = fates
        .windows(2)
        .filter(|pair| !lost(&pair[0]) && lost(&pair[1]));
    let mean = count as f64 / begun.count() as f64;
    assert!((7.5..8.5).contains(&mean), "{mean}");
}

#[test]
fn held_back_datagrams_are_overtaken_and_do_not_hold_up_others() {
    let settings = Settings {
        delay: ms(10),
        reorder: Some(Reorder {
            chance: Chance::share(0.05),
            wait: ms(3),
        }),
        ..Settings::default()
    };
    let fates = run(settings, 10_000, ms(1));
    let reordered = counted(&fates, |passage| passage.held_back);
    assert!((450..550).contains(&reordered), "{reordered}");
    let mut held = 0;
    for (n, due) in (0..).zip(dues(&fates)) {
        let extra = due.saturating_sub(ms(1) * n + ms(10));
        assert!(extra == ms(0) || extra == ms(3), "{extra:?}");
        held += usize::from(extra == ms(3));
    }
    assert_eq!(held, reordered);
}

#[test]
fn duplicates_and_corruption_have_their_shares() {
    let settings = Settings {
        duplicate: Chance::share(0.03),
        corrupt: Chance::share(0.05),
        ..Settings::default()
    };
    let fates = run(settings, 20_000, us(1));
    let passages = passages(&fates);
    assert_eq!(passages.len(), 20_000);
    let twice = counted(&fates, |passage| passage.copies == 2);
    assert!((500..700).contains(&twice), "{twice}");
    let flips: Vec<_> = passages.iter().filter_map(|passage| passage.flip).collect();
    assert!((900..1100).contains(&flips.len()), "{}", flips.len());
    assert!(flips.iter().all(|bit| *bit < SIZE * 8));
    assert!(flips.iter().any(|bit| *bit < SIZE) && flips.iter().any(|bit| *bit > SIZE * 7));
}

#[test]
fn an_empty_datagram_has_no_bit_to_flip() {
    let settings = Settings {
        corrupt: Chance::share(1.0),
        ..Settings::default()
    };
    let mut direction = Direction::new(settings, 1);
    let empty = Offer {
        bytes: 0,
        ..offer(ms(0))
    };
    assert_eq!(passages(&[direction.offer(empty).fate])[0].flip, None);
}

#[test]
fn a_blackout_loses_what_enters_the_wire_in_it() {
    let settings = Settings {
        delay: ms(30),
        blackouts: Blackouts::new([(ms(10), ms(15)), (ms(20), ms(21))]),
        ..Settings::default()
    };
    let fates = run(settings, 30, ms(1));
    let lost: Vec<_> = (0..30)
        .filter(|n| fates[*n] == Fate::Lost(Loss::Blackout))
        .collect();
    assert_eq!(lost, [10, 11, 12, 13, 14, 20]);
}

#[test]
fn datagrams_above_the_mtu_are_lost() {
    let settings = Settings {
        mtu: Some(SIZE - 1),
        ..Settings::default()
    };
    let fates = run(settings.clone(), 1, ms(1));
    assert_eq!(fates, [Fate::Lost(Loss::Size)]);
    let settings = Settings {
        mtu: Some(SIZE),
        ..settings
    };
    assert_eq!(passages(&run(settings, 1, ms(1))).len(), 1);
}

fn everything() -> Settings {
    Settings {
        delay: ms(20),
        jitter: ms(3),
        mtu: Some(1500),
        line: Some(line(20_000)),
        loss: Chance::share(0.01),
        bursts: Some(bursts(0.01, 4.0)),
        reorder: Some(Reorder {
            chance: Chance::share(0.02),
            wait: ms(5),
        }),
        duplicate: Chance::share(0.01),
        corrupt: Chance::share(0.01),
        blackouts: Blackouts::new([(ms(500), ms(600))]),
    }
}

#[test]
fn one_seed_decides_alike_and_another_does_not() {
    let decide = |seed| decide(everything(), seed, 5000, us(900));
    assert_eq!(decide(5), decide(5));
    assert_ne!(decide(5), decide(6));
}

#[test]
fn chance_does_not_depend_on_when_datagrams_come() {
    let lost = |gap| {
        let settings = Settings {
            line: None,
            blackouts: Blackouts::default(),
            ..everything()
        };
        let fates = run(settings, 5000, gap);
        fates
            .iter()
            .map(|fate| matches!(fate, Fate::Lost(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(lost(us(1)), lost(ms(3)));
}

#[test]
fn every_datagram_is_accounted_for() {
    let fates = run(everything(), 20_000, us(700));
    let passed = passages(&fates).len();
    let losses = [Loss::Queue, Loss::Random, Loss::Burst, Loss::Blackout];
    let losses = losses.map(|loss| lost(&fates, loss));
    assert_eq!(fates.len(), passed + losses.iter().sum::<usize>());
    assert!(losses.iter().all(|count| *count > 0), "{losses:?}");
    assert!(counted(&fates, |passage| passage.held_back) > 0);
    assert!(counted(&fates, |passage| passage.copies > 1) > 0);
    assert!(counted(&fates, |passage| passage.flip.is_some()) > 0);
}

#[test]
fn time_that_steps_back_is_not_believed() {
    let mut direction = Direction::new(Settings::default(), 1);
    let first = direction.offer(offer(ms(10)));
    let second = direction.offer(offer(ms(9)));
    assert_eq!(first, second);
}

#[test]
fn shares_are_uniform_and_datagrams_independent() {
    const COUNT: u64 = 100_000;
    let share = Chance::share(0.1);
    let hits = |n| {
        let mut rng = Rng::nth(1, n);
        [rng.happens(share), rng.happens(share)]
    };
    let (mut alone, mut both) = (0_u64, 0_u64);
    for n in 0..COUNT {
        let ([one, other], [next, _]) = (hits(n), hits(n + 1));
        alone += u64::from(one);
        both += u64::from(one && other) + u64::from(one && next);
    }
    assert!((9_700..10_300).contains(&alone), "{alone}");
    assert!((1800..2200).contains(&both), "{both}");
}

#[test]
fn a_share_of_nothing_never_happens_and_one_of_all_always() {
    let mut rng = Rng::new(1);
    assert!((0..1000).all(|_| !rng.happens(Chance::share(0.0))));
    assert!((0..1000).all(|_| rng.happens(Chance::share(1.0))));
    assert_eq!(Chance::share(2.0), Chance::share(1.0));
    assert_eq!(Chance::share(-1.0), Chance::share(0.0));
}

#[test]
fn a_whole_link_is_a_node_that_decides_as_a_direction_does() {
    use hybriq_tls::Side;
    let settings = everything();
    let sent = (0..2000).map(|n| (us(900) * n, numbered(Side::Server, n, SIZE as usize)));
    let node = crate::Link::new(settings.clone(), settings.clone(), 3);
    let came = deliver(crate::Network::new(1).node(node), Side::Server, sent);
    let [mut up, _] = Direction::pair(settings.clone(), settings, 3);
    let mut due: Vec<_> = (0..2000)
        .flat_map(|n| passages(&[up.offer(offer(us(900) * n)).fate]))
        .flat_map(|passage| std::iter::repeat_n(passage.due, passage.copies))
        .collect();
    due.sort();
    let times: Vec<_> = came.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, due);
}

#[test]
fn the_time_of_bytes_is_exact_to_the_nanosecond() {
    let takes = |bytes| {
        let mut line = Line::new(3, 0);
        let offer = Offer {
            bytes,
            ..offer(ms(0))
        };
        line.enter(offer, &mut Rng::new(1)).unwrap().at
    };
    assert_eq!(takes(3), Duration::from_secs(8));
    assert_eq!(takes(1), Duration::from_nanos(2_666_666_666));
}

#[test]
fn a_blackout_begins_with_its_first_moment_and_ends_before_its_last() {
    let blackouts = Blackouts::new([(ms(5000), ms(7000))]);
    let covered = [4999, 5000, 6999, 7000].map(|at| blackouts.covers(ms(at)));
    assert_eq!(covered, [false, true, true, false]);
}
