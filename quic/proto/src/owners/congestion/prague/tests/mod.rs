mod bottleneck;
mod bounds;

use super::*;
use crate::owners::congestion::{NewReno, testing};

const SIZE: u64 = 1200;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The simplest classic controller: it doubles up to a threshold, and halves.
#[derive(Debug)]
struct Halving {
    least: u64,
    window: u64,
    threshold: u64,
    answered: Option<Instant>,
    recovers: bool,
}

impl Halving {
    fn new() -> Self {
        Self {
            least: 2 * SIZE,
            window: 10 * SIZE,
            threshold: u64::MAX,
            answered: None,
            recovers: false,
        }
    }
}

impl Controller for Halving {
    fn on_acked(&mut self, acked: &Acked) {
        self.recovers &= self.answered.is_some_and(|at| acked.newest_sent <= at);
        if !self.recovers && self.window < self.threshold {
            self.window += acked.bytes;
        }
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        if self.answered.is_none_or(|at| lost.newest_sent > at) {
            self.window = (self.window / 2).max(self.least);
            (self.threshold, self.answered, self.recovers) = (self.window, Some(lost.now), true);
        }
        if lost.severity == Severity::PersistentCongestion {
            (self.window, self.recovers) = (self.least, false);
        }
    }

    fn on_marked(&mut self, _: &Marked) {
        panic!("marks are Prague's");
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.window = resume.window.max(self.least);
        self.threshold = resume.slow_start_threshold.unwrap_or(self.threshold);
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.least = 2 * u64::from(bytes);
        self.window = self.window.max(self.least);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn phase(&self) -> Phase {
        match self.recovers {
            true => Phase::Recovery,
            false if self.window < self.threshold => Phase::SlowStart,
            false => Phase::Avoidance,
        }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        (self.threshold != u64::MAX).then_some(self.threshold)
    }

    fn name(&self) -> &'static str {
        "Halving"
    }
}

fn prague(now: Instant) -> Prague {
    with(now, Box::new(Halving::new()))
}

fn with(now: Instant, classic: Box<dyn Controller>) -> Prague {
    let start = Start {
        now,
        datagram_size: 1200,
        initial_rtt: ms(100),
        seed: 1,
    };
    Prague::new(&start, classic)
}

/// Packets acknowledged together, all sent at `sent` and received a round trip of 100 ms later.
fn acked(prague: &mut Prague, sent: Instant, packets: u64, marks: u64) {
    let now = sent + ms(100);
    if marks > 0 {
        marked(prague, now, sent, marks);
    }
    prague.on_acked(&Acked {
        now,
        packets,
        marks,
        ..testing::acked(sent, packets * SIZE, Usage::Full)
    });
}

fn marked(prague: &mut Prague, now: Instant, newest_sent: Instant, marks: u64) {
    prague.on_marked(&Marked {
        now,
        marks,
        newest_sent,
        bytes_in_flight: 0,
    });
}

fn lost(prague: &mut Prague, now: Instant, sent: Instant, severity: Severity) {
    testing::lost(prague, now, sent, SIZE, severity);
}

/// A controller of 100 datagrams that saw its first mark at the end of slow start, and does not
/// have to make up for that reduction.
fn scalable(start: Instant) -> Prague {
    let mut prague = reduced(start);
    let state = prague.scalable.as_mut().unwrap();
    state.reduced.from = state.reduced.to;
    state.searches = false;
    prague
}

/// The same, just after the reduction from 200 datagrams.
fn reduced(start: Instant) -> Prague {
    let mut prague = prague(start);
    acked(&mut prague, start, 190, 0);
    assert_eq!(prague.window(), 200 * SIZE);
    marked(&mut prague, start + ms(200), start + ms(100), 1);
    assert_eq!(prague.window(), 100 * SIZE);
    prague
}

#[test]
fn packets_are_marked_as_those_of_a_scalable_sender() {
    let prague = prague(Instant::now());
    assert_eq!(prague.ecn(), Ecn::Ect1);
    assert_eq!(prague.name(), "Prague");
}

#[test]
fn without_marks_it_is_the_classic_controller() {
    let start = Instant::now();
    let mut prague = with(start, Box::new(NewReno::new(1200)));
    let mut reno = NewReno::new(1200);
    for round in 0..50 {
        let sent = start + ms(100) * round;
        if round % 7 == 3 {
            lost(&mut prague, sent + ms(100), sent, Severity::Congestion);
            testing::lost(&mut reno, sent + ms(100), sent, SIZE, Severity::Congestion);
        } else {
            acked(&mut prague, sent, 10, 0);
            reno.on_acked(&testing::acked(sent, 10 * SIZE, Usage::Full));
        }
        assert_eq!(prague.window(), reno.window());
        assert_eq!(prague.phase(), reno.phase());
        assert_eq!(prague.slow_start_threshold(), reno.slow_start_threshold());
        assert_eq!(prague.pacing_rate(), reno.pacing_rate());
    }
}

#[test]
fn the_first_mark_ends_slow_start_and_halves_the_window() {
    let start = Instant::now();
    let mut prague = prague(start);
    assert_eq!(prague.phase(), Phase::SlowStart);
    assert_eq!(prague.alpha(), None);
    marked(&mut prague, start + ms(100), start, 1);
    assert_eq!(prague.window(), 6000);
    assert_eq!(prague.phase(), Phase::Avoidance);
    assert_eq!(prague.slow_start_threshold(), Some(6000));
    assert_eq!(prague.alpha(), Some(1.0));
}

#[test]
fn the_average_moves_a_sixteenth_per_round_trip() {
    let start = Instant::now();
    let mut prague = scalable(start);
    acked(&mut prague, start + ms(201), 100, 50);
    assert_eq!(prague.alpha(), Some(1.0 - 0.5 / 16.0));
    acked(&mut prague, start + ms(202), 100, 50);
    assert_eq!(prague.alpha(), Some(1.0 - 0.5 / 16.0), "the same round");
}

#[test]
fn the_average_converges_to_the_fraction_of_marks() {
    let start = Instant::now();
    let mut prague = scalable(start);
    for round in 2..202 {
        acked(&mut prague, start + ms(101) * round, 100, 20);
    }
    let alpha = prague.alpha().unwrap();
    assert!((alpha - 0.2).abs() < 0.001, "{alpha}");
    for round in 202..402 {
        acked(&mut prague, start + ms(101) * round, 100, 0);
    }
    let alpha = prague.alpha().unwrap();
    assert!(alpha < 0.001, "{alpha}");
}

#[test]
fn the_window_is_reduced_by_half_the_average_once_per_round_trip() {
    let start = Instant::now();
    let mut prague = scalable(start);
    for round in 2..202 {
        acked(&mut prague, start + ms(101) * round, 100, 0);
        prague.marking.on_acked(
            &Acked {
                marks: 40,
                ..testing::acked(start + ms(101) * round, 100 * SIZE, Usage::Full)
            },
            ms(0),
        );
    }
    let alpha = prague.alpha().unwrap();
    assert!(alpha > 0.0 && alpha < 0.5);
    let before = prague.window_bytes();
    let sent = start + ms(30_000);
    marked(&mut prague, sent + ms(100), sent, 1);
    let expected = before * (1.0 - alpha / 2.0);
    assert!((prague.window_bytes() - expected).abs() < 1e-6);
    marked(&mut prague, sent + ms(110), sent + ms(10), 100);
    marked(&mut prague, sent + ms(200), sent + ms(100), 100);
    assert!((prague.window_bytes() - expected).abs() < 1e-6);
    marked(&mut prague, sent + ms(201), sent + ms(101), 1);
    assert!(prague.window_bytes() < expected);
}

#[test]
fn unmarked_packets_add_a_datagram_per_window() {
    let start = Instant::now();
    let mut prague = scalable(start);
    acked(&mut prague, start + ms(200), 100, 0);
    assert_eq!(prague.window(), 101 * SIZE);
}

#[test]
fn a_large_reduction_is_made_up_for_as_cubic_does() {
    let start = Instant::now();
    let mut prague = reduced(start);
    prague.scalable.as_mut().unwrap().searches = false;
    let seconds = |prague: &mut Prague, from: u64, to: u64| {
        for tenth in from * 10..to * 10 {
            let sent = start + ms(201) + ms(100) * tenth as u32;
            acked(prague, sent, prague.window() / SIZE, 0);
        }
        prague.window() / SIZE
    };
    // (100 / 0.4)^(1/3) = 6.3 s
    assert!((140..=150).contains(&seconds(&mut prague, 0, 1)));
    assert!((197..=230).contains(&seconds(&mut prague, 1, 6)));
    assert!(seconds(&mut prague, 6, 7) < 245, "slowly beyond");
}

#[test]
fn the_capacity_is_searched_after_slow_start_until_a_mark() {
    let start = Instant::now();
    let mut prague = reduced(start);
    acked(&mut prague, start + ms(201), 100, 0);
    assert_eq!(prague.window() / SIZE, 112, "an eighth more");
    marked(&mut prague, start + ms(500), start + ms(400), 1);
    let before = prague.window();
    let state = prague.scalable.as_mut().unwrap();
    state.reduced.from = state.reduced.to;
    acked(&mut prague, start + ms(501), before / SIZE, 0);
    assert!(prague.window() < before + SIZE + SIZE / 2);
}

#[test]
fn the_capacity_is_searched_when_the_old_one_is_outgrown() {
    let start = Instant::now();
    let mut prague = scalable(start);
    prague.scalable.as_mut().unwrap().window = 125.0 * 1200.0;
    acked(&mut prague, start + ms(201), 125, 0);
    assert!(prague.window() < 127 * SIZE);
    acked(&mut prague, start + ms(202), 125, 0);
    assert!(prague.window() > 140 * SIZE);
}

#[test]
fn marked_packets_add_nothing() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let sent = start + ms(200);
    let now = sent + ms(100);
    prague.answered = Some(now);
    acked(&mut prague, sent, 100, 100);
    assert_eq!(prague.window(), 100 * SIZE);
    acked(&mut prague, sent, 100, 50);
    assert_eq!(prague.window(), 100 * SIZE + SIZE / 2);
}

#[test]
fn a_small_window_grows_and_falls_by_less_than_a_datagram() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let state = prague.scalable.as_mut().unwrap();
    state.window = 3.0 * 1200.0;
    (state.reduced.from, state.reduced.to) = (state.window, state.window);
    acked(&mut prague, start + ms(200), 1, 0);
    assert_eq!(prague.window(), 3 * SIZE + SIZE / 3);
    acked(&mut prague, start + ms(200), 1, 0);
    assert_eq!(prague.window(), 3 * SIZE + SIZE / 3 + 360);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let start = Instant::now();
    let mut prague = scalable(start);
    prague.on_acked(&testing::acked(
        start + ms(200),
        100 * SIZE,
        Usage::Underused,
    ));
    assert_eq!(prague.window(), 100 * SIZE);
}

#[test]
fn growth_depends_less_on_a_short_round_trip_after_a_while() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let short = |prague: &mut Prague, round: u32| {
        let sent = start + ms(200) + ms(6) * round;
        let before = prague.window_bytes();
        let bytes = prague.window();
        let mut acked = testing::acked(sent, bytes, Usage::Full);
        acked.now = sent + ms(5);
        acked.rtt.smoothed = ms(5);
        prague.on_acked(&acked);
        prague.window_bytes() - before
    };
    let young = short(&mut prague, 0);
    assert!((young - 1200.0).abs() < 1.0, "{young}");
    prague.scalable.as_mut().unwrap().rounds = YOUNG_ROUNDS - 2;
    let young = short(&mut prague, 1);
    assert!(young > 1100.0, "{young}");
    let old = short(&mut prague, 2);
    assert!((old - 1200.0 / 25.0).abs() < 1.0, "{old}");
    // Then reductions are as rare.
    let now = start + ms(10_000);
    marked(&mut prague, now, start + ms(9_995), 1);
    let reduced = prague.window_bytes();
    marked(&mut prague, now + ms(20), now + ms(15), 1);
    assert!((prague.window_bytes() - reduced).abs() < 1e-9);
    marked(&mut prague, now + ms(25), now + ms(20), 1);
    assert!(prague.window_bytes() < reduced);
}

#[test]
fn a_loss_is_answered_as_the_classic_controller_does() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let sent = start + ms(201);
    lost(&mut prague, sent + ms(100), sent, Severity::Congestion);
    assert_eq!(prague.slow_start_threshold(), Some(50 * SIZE));
    assert_eq!(prague.phase(), Phase::Recovery);
    lost(
        &mut prague,
        sent + ms(110),
        sent + ms(10),
        Severity::Congestion,
    );
    let threshold = prague.slow_start_threshold();
    assert_eq!(threshold, Some(50 * SIZE), "the same round trip");
    marked(&mut prague, sent + ms(120), sent + ms(20), 5);
    assert_eq!(
        prague.slow_start_threshold(),
        threshold,
        "marks of the same round trip"
    );
    assert_eq!(prague.phase(), Phase::Recovery);
    marked(&mut prague, sent + ms(220), sent + ms(120), 5);
    assert_eq!(prague.window(), 25 * SIZE);
    assert_eq!(prague.phase(), Phase::Avoidance);
}

#[test]
fn a_loss_in_the_round_trip_of_a_reduction_is_not_answered_twice() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let sent = start + ms(201);
    marked(&mut prague, sent + ms(100), sent, 1);
    assert_eq!(prague.window(), 50 * SIZE);
    lost(
        &mut prague,
        sent + ms(110),
        sent + ms(10),
        Severity::Congestion,
    );
    assert_eq!(
        prague.slow_start_threshold(),
        Some(50 * SIZE),
        "half of what it was before both"
    );
}

#[test]
fn persistent_congestion_starts_over() {
    let start = Instant::now();
    let mut prague = scalable(start);
    let sent = start + ms(300);
    lost(
        &mut prague,
        sent + ms(1000),
        sent,
        Severity::PersistentCongestion,
    );
    assert_eq!(prague.window(), 2 * SIZE);
    assert_eq!(prague.phase(), Phase::SlowStart);
    assert_eq!(prague.alpha(), None);
}

#[test]
fn packets_leave_about_as_fast_as_a_window_per_round_trip() {
    let start = Instant::now();
    let mut prague = scalable(start);
    assert_eq!(prague.pacing_rate(), Some(100 * SIZE * 103 / 10));
    lost(
        &mut prague,
        start + ms(500),
        start + ms(400),
        Severity::Congestion,
    );
    assert_eq!(prague.pacing_rate(), None, "as the classic controller");
}

#[test]
fn what_was_saved_of_the_path_is_used_by_the_classic_controller() {
    let start = Instant::now();
    let mut prague = scalable(start);
    prague.on_resume(&Resume {
        now: start + ms(300),
        window: 500 * SIZE,
        slow_start_threshold: None,
    });
    assert_eq!(prague.window(), 500 * SIZE);
}

#[test]
fn a_larger_datagram_raises_the_minimum() {
    let start = Instant::now();
    let mut prague = scalable(start);
    prague.scalable.as_mut().unwrap().window = 3000.0;
    prague.on_datagram_size(9000);
    assert_eq!(prague.window(), 18_000);
}
