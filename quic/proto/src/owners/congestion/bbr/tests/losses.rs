//! Effect of losses, marks and spurious losses on a flow.

use super::*;
use crate::owners::congestion::delivery::Snapshot;

const SIZE: u64 = 1200;

/// Loses `count` consecutive packets at once.
fn lose(bbr: &mut Bbr, now: Instant, count: u64, severity: Severity) {
    let in_flight = bbr.bdp().max(count * SIZE);
    let packets: Vec<_> = (0..count)
        .map(|_| LostPacket {
            bytes: SIZE,
            time_sent: now,
            snapshot: Snapshot {
                delivered: bbr.delivered,
                delivered_at: now,
                first_sent_at: now,
                lost: 0,
                in_flight,
                app_limited: false,
            },
        })
        .collect();
    bbr.on_lost(&Lost {
        now,
        packets: &packets,
        bytes: count * SIZE,
        newest_sent: now,
        prior_in_flight: in_flight,
        bytes_in_flight: in_flight - count * SIZE,
        delivered: bbr.delivered,
        lost: count * SIZE,
        severity,
    });
}

fn spurious(bbr: &mut Bbr, now: Instant) {
    bbr.on_spurious(&Spurious {
        now,
        bytes_in_flight: 0,
    });
}

fn mark(bbr: &mut Bbr, now: Instant) {
    bbr.on_marked(&Marked {
        now,
        marks: 1,
        newest_sent: now,
        bytes_in_flight: 0,
    });
}

fn at(state: State) -> World {
    let mut world = World::new(Link::new(mbit(20), ms(50), 400), 1, 1);
    run_until(&mut world, State::Cruise);
    run_until(&mut world, state);
    world
}

#[test]
fn losses_while_going_up_set_the_limit_and_turn_the_flow_down() {
    let mut world = at(State::Up);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| {
        let target = bbr.target_inflight();
        lose(bbr, now, 10, Severity::Congestion);
        assert_eq!(bbr.state, State::Down);
        assert!(bbr.cycle.prev_too_high);
        let limit = bbr.model.inflight_longterm;
        assert!(
            limit >= target * 7 / 10 && limit <= target * 5 / 4,
            "{limit} of {target}"
        );
    });
    // The controller leaves room below the limit when it cruises.
    run_until(&mut world, State::Cruise);
    world.run(ms(60));
    world.flows[0].bbr.with(|bbr| {
        assert_eq!(
            bbr.inflight_with_headroom(),
            bbr.model.inflight_longterm - Gain::HEADROOM.of(bbr.model.inflight_longterm)
        );
        assert!(bbr.window <= bbr.inflight_with_headroom());
    });
}

#[test]
fn a_probe_after_one_that_lost_too_much_stops_at_its_limit_and_is_followed_by_another() {
    let mut world = at(State::Up);
    let now = world.now;
    world.flows[0]
        .bbr
        .with(|bbr| lose(bbr, now, 10, Severity::Congestion));
    run_until(&mut world, State::Up);
    run_until(&mut world, State::Down);
    let round = world.flows[0].bbr.with(|bbr| {
        assert!(!bbr.cycle.prev_too_high);
        bbr.model.round.count
    });
    run_until(&mut world, State::Refill);
    let rounds = world.flows[0].bbr.with(|bbr| bbr.model.round.count) - round;
    assert!(rounds <= 2, "the caution was not needed: {rounds}");
}

#[test]
fn few_losses_do_not_end_a_probe() {
    let world = at(State::Up);
    world.flows[0].bbr.with(|bbr| {
        lose(bbr, world.now, 1, Severity::Congestion);
        assert_eq!(bbr.state, State::Up);
        assert_eq!(bbr.model.inflight_longterm, params::UNBOUNDED);
    });
}

#[test]
fn the_limit_grows_ever_faster_while_it_is_reached_without_loss() {
    let mut world = at(State::Up);
    let now = world.now;
    world.flows[0]
        .bbr
        .with(|bbr| lose(bbr, now, 10, Severity::Congestion));
    world.link = Link::new(mbit(200), ms(50), 100);
    let before = world.flows[0].bbr.with(|bbr| bbr.model.inflight_longterm);
    world.run(secs(7));
    let after = world.flows[0].bbr.with(|bbr| bbr.model.inflight_longterm);
    assert!(after > 4 * before, "{after} after {before}");
}

#[test]
fn losses_while_cruising_slow_the_flow_down_until_the_next_probe() {
    let mut world = at(State::Cruise);
    let before = world.flows[0].bbr.with(|bbr| bbr.pacing_rate);
    world.link.loss = 1500;
    world.run(ms(300));
    world.flows[0].bbr.with(|bbr| {
        assert!(bbr.model.bw_shortterm < bbr.model.max_bw.get());
        assert!(bbr.model.inflight_shortterm < params::UNBOUNDED);
        assert!(bbr.pacing_rate < before * 8 / 10, "{}", bbr.pacing_rate);
    });
    world.link.loss = 0;
    run_until(&mut world, State::Refill);
    world.flows[0].bbr.with(|bbr| {
        assert_eq!(bbr.model.bw_shortterm, params::UNBOUNDED);
        assert_eq!(bbr.model.inflight_shortterm, params::UNBOUNDED);
    });
}

#[test]
fn rounds_with_few_losses_cost_a_twentieth_at_most() {
    let mut world = at(State::Cruise);
    world.link.loss = 50;
    while state(&world) == State::Cruise {
        world.run(ms(5));
        world.flows[0].bbr.with(|bbr| {
            let floor = Gain::TOLERATED.of(bbr.model.max_bw.get());
            assert!(bbr.model.bw >= floor, "{} of {floor}", bbr.model.bw);
        });
    }
}

#[test]
fn a_round_is_answered_once() {
    let mut world = at(State::Cruise);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| {
        for _ in 0..20 {
            lose(bbr, now, 5, Severity::Congestion);
        }
    });
    world.run(ms(120));
    world.flows[0].bbr.with(|bbr| {
        let least = Gain::BETA.of(bbr.model.max_bw.get());
        assert!(bbr.model.bw >= least);
    });
}

#[test]
fn losses_that_were_none_are_undone() {
    let mut world = at(State::Up);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| {
        let (window, longterm) = (bbr.window, bbr.model.inflight_longterm);
        lose(bbr, now, 10, Severity::Congestion);
        spurious(bbr, now);
        assert_eq!(bbr.state, State::Refill, "to go up again");
        assert_eq!(bbr.model.inflight_longterm, longterm);
        assert!(bbr.window >= window);
        assert_eq!(bbr.phase(), Phase::Avoidance);
    });
    run_until(&mut world, State::Up);
}

#[test]
fn startup_goes_on_if_its_losses_were_none() {
    let link = Link::new(mbit(50), ms(40), 1000).lossy(800);
    let mut world = World::new(link, 1, 1);
    run_until(&mut world, State::Drain);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| {
        spurious(bbr, now);
        assert_eq!(bbr.state, State::Startup);
        assert!(!bbr.full_pipe.reached);
        assert_eq!(bbr.model.inflight_longterm, params::UNBOUNDED);
    });
}

#[test]
fn what_is_undone_once_is_not_undone_twice() {
    let world = at(State::Up);
    world.flows[0].bbr.with(|bbr| {
        lose(bbr, world.now, 10, Severity::Congestion);
        spurious(bbr, world.now);
        bbr.state = State::Cruise;
        spurious(bbr, world.now);
        assert_eq!(bbr.state, State::Cruise);
    });
}

#[test]
fn persistent_congestion_leaves_a_datagram_more_than_is_in_flight() {
    let mut world = at(State::Cruise);
    let now = world.now;
    let before = world.flows[0].bbr.with(|bbr| {
        let before = bbr.window;
        let count = bbr.bdp() / SIZE;
        lose(bbr, now, count, Severity::PersistentCongestion);
        assert!(
            bbr.window() <= bbr.min_pipe_window() + SIZE,
            "{}",
            bbr.window()
        );
        assert_eq!(bbr.phase(), Phase::Recovery);
        before
    });
    // Something gets through: the window again follows the model.
    world.run(ms(200));
    world.flows[0].bbr.with(|bbr| {
        assert_eq!(bbr.phase(), Phase::Avoidance);
        assert!(bbr.window() > before / 2);
    });
}

#[test]
fn a_mark_while_going_up_is_a_limit() {
    let mut world = at(State::Up);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| mark(bbr, now));
    world.run(ms(5));
    world.flows[0].bbr.with(|bbr| {
        assert_eq!(bbr.state, State::Down);
        assert!(bbr.model.inflight_longterm < params::UNBOUNDED);
    });
}

#[test]
fn marks_while_cruising_shrink_what_is_in_flight() {
    let mut world = at(State::Cruise);
    let before = world.flows[0].bbr.with(|bbr| bbr.window);
    for _ in 0..40 {
        let now = world.now;
        world.flows[0].bbr.with(|bbr| mark(bbr, now));
        world.run(ms(5));
    }
    world.flows[0].bbr.with(|bbr| {
        assert!(bbr.window <= before * 6 / 10, "{} of {before}", bbr.window);
    });
}

#[test]
fn two_rounds_with_marks_end_startup() {
    let mut world = World::new(Link::new(mbit(100), ms(50), 100), 1, 1);
    for _ in 0..12 {
        let now = world.now;
        world.flows[0].bbr.with(|bbr| mark(bbr, now));
        world.run(ms(20));
    }
    assert_ne!(state(&world), State::Startup);
    // One does not arrive.
    let mut world = World::new(Link::new(mbit(100), ms(50), 100), 1, 1);
    let now = world.now;
    world.flows[0].bbr.with(|bbr| mark(bbr, now));
    world.run(ms(240));
    assert_eq!(state(&world), State::Startup);
}

#[test]
fn losses_side_by_side_are_one_gap() {
    let mut signals = Signals::default();
    let packet = |place: u64| LostPacket {
        bytes: SIZE,
        time_sent: Instant::now(),
        snapshot: Snapshot {
            delivered: place * SIZE / 2,
            delivered_at: Instant::now(),
            first_sent_at: Instant::now(),
            lost: 0,
            in_flight: place * SIZE - place * SIZE / 2,
            app_limited: false,
        },
    };
    for place in [3, 4, 5, 9, 11, 12] {
        signals.count_range(&packet(place));
    }
    assert_eq!(signals.lost_ranges, 3);
}
