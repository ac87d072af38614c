//! Transitions of the state machine, reached by a flow behind a bottleneck (draft, appendix B).

use super::*;

fn with<T>(world: &World, read: impl FnOnce(&mut Bbr) -> T) -> T {
    world.flows[0].bbr.with(read)
}

#[test]
fn it_starts_with_the_initial_window_spread_over_the_assumed_round_trip() {
    let bbr = Bbr::new(&Start {
        now: Instant::now(),
        datagram_size: 1200,
        initial_rtt: ms(100),
        seed: 0,
    });
    assert_eq!(bbr.state, State::Startup);
    assert_eq!(bbr.phase(), Phase::SlowStart);
    assert_eq!(bbr.window(), 12_000);
    assert_eq!(bbr.pacing_rate(), Some(12_000 * 10 * 277 / 100));
    assert_eq!(bbr.target_rate(), None, "nothing was measured");
}

#[test]
fn the_first_round_trip_corrects_the_assumed_one() {
    let mut world = World::new(Link::new(mbit(100), ms(10), 100), 1, 1);
    world.run(ms(12));
    let rate = with(&world, |bbr| bbr.pacing_rate);
    assert!(rate >= 12_000 * 100 * 2, "{rate}");
}

#[test]
fn startup_doubles_its_rate_each_round() {
    let mut world = World::new(Link::new(mbit(100), ms(50), 100), 1, 1);
    world.run(ms(110));
    let before = with(&world, |bbr| bbr.pacing_rate);
    world.run(ms(50) * 3 + ms(10));
    let after = with(&world, |bbr| bbr.pacing_rate);
    assert!(after >= before * 5, "{after} after {before}");
    assert_eq!(state(&world), State::Startup);
}

#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut world = World::new(Link::new(mbit(10), ms(30), 400), 1, 1);
    run_until(&mut world, State::Drain);
    with(&world, |bbr| {
        assert!(bbr.full_pipe.reached && bbr.full_pipe.now);
        assert_eq!(bbr.full_pipe.rounds, 3);
        assert_eq!(bbr.state.pacing_gain(), Gain::DRAIN_PACING);
        assert_eq!(bbr.target_rate(), Some(bbr.model.bw));
        assert_eq!(bbr.model.inflight_longterm, params::UNBOUNDED);
    });
    // 31 datagrams are the product of bandwidth and delay.
    assert!(world.now - world.start < ms(30) * 12);
}

#[test]
fn startup_does_not_end_while_the_application_is_the_limit() {
    let mut world = world();
    world.set_source(0, Source::Rate(mbit(1)));
    world.run(secs(4));
    assert_eq!(state(&world), State::Startup);
    assert!(with(&world, |bbr| bbr.model.round.count) > 50);
}

#[test]
fn startup_ends_when_a_round_loses_in_many_places() {
    let link = Link::new(mbit(50), ms(40), 1000).lossy(800);
    let mut world = World::new(link, 1, 1);
    run_until(&mut world, State::Drain);
    with(&world, |bbr| {
        assert!(bbr.full_pipe.reached);
        assert_eq!(bbr.undo.state, Some(State::Startup));
        assert!(bbr.model.inflight_longterm >= bbr.bdp());
        assert!(bbr.model.inflight_longterm < params::UNBOUNDED);
    });
}

#[test]
fn drain_ends_when_the_queue_is_gone() {
    let mut world = world();
    run_until(&mut world, State::Drain);
    let drained = |bbr: &mut Bbr| bbr.state != State::Drain;
    assert!(world.run_until(ms(30) * 4, drained));
    assert!(with(&world, |bbr| bbr.state.is_probe_bw()));
    world.mean_queue();
    world.run(ms(20));
    assert!(world.mean_queue() < ms(10));
}

#[test]
fn drain_ends_in_time_although_the_queue_stays() {
    let mut world = World::new(Link::new(mbit(50), ms(30), 1000), 1, 1);
    run_until(&mut world, State::Drain);
    world.link.rate = mbit(10);
    let round = with(&world, |bbr| bbr.model.round.count);
    assert!(world.run_until(secs(5), |bbr| bbr.state == State::Down));
    let rounds = with(&world, |bbr| bbr.model.round.count) - round;
    assert!((1..=params::DRAIN_ROUNDS + 1).contains(&rounds), "{rounds}");
}

#[test]
fn the_cycle_goes_down_cruises_refills_and_goes_up() {
    let mut world = World::new(Link::new(mbit(10), ms(30), 400), 1, 1);
    run_until(&mut world, State::Cruise);
    let mut seen = vec![State::Cruise];
    let end = world.now + secs(4);
    while world.now < end {
        world.run(ms(1));
        let now = state(&world);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    let cycle = [State::Cruise, State::Refill, State::Up, State::Down];
    for (index, seen) in seen.iter().enumerate() {
        assert_eq!(*seen, cycle[index % 4], "{index}");
    }
    assert!(seen.len() >= 5, "{seen:?}");
}

#[test]
fn each_state_has_its_gains() {
    let gains = |state: State| (state.pacing_gain(), state.window_gain());
    assert_eq!(
        gains(State::Startup),
        (Gain::STARTUP_PACING, Gain::DEFAULT_WINDOW)
    );
    assert_eq!(
        gains(State::Drain),
        (Gain::DRAIN_PACING, Gain::DEFAULT_WINDOW)
    );
    assert_eq!(
        gains(State::Down),
        (Gain::DOWN_PACING, Gain::DEFAULT_WINDOW)
    );
    assert_eq!(gains(State::Cruise), (Gain::ONE, Gain::DEFAULT_WINDOW));
    assert_eq!(gains(State::Refill), (Gain::ONE, Gain::DEFAULT_WINDOW));
    assert_eq!(gains(State::Up), (Gain::UP_PACING, Gain::UP_WINDOW));
    assert_eq!(gains(State::ProbeRtt), (Gain::ONE, Gain::PROBE_RTT_WINDOW));
}

#[test]
fn the_next_probe_waits_two_to_three_seconds_or_as_long_as_reno_would() {
    // So fast that 63 round trips are more than three seconds.
    let mut world = World::new(Link::new(mbit(20), ms(100), 100), 1, 3);
    run_until(&mut world, State::Cruise);
    run_until(&mut world, State::Refill);
    let now = world.now;
    with(&world, |bbr| {
        let wait = bbr.cycle.wait;
        assert!((secs(2)..secs(3)).contains(&wait), "{wait:?}");
        let waited = now - bbr.cycle.stamp;
        assert!((wait..wait + ms(5)).contains(&waited), "{waited:?}");
    });
    // So little that Reno grows from half its window to all of it before that, but not too often.
    for (rate, expected) in [(30, 37), (10, 20)] {
        let mut world = World::new(Link::new(mbit(rate), ms(12), 200), 1, 3);
        run_until(&mut world, State::Down);
        let down = with(&world, |bbr| bbr.model.round.count);
        run_until(&mut world, State::Refill);
        let rounds = with(&world, |bbr| bbr.model.round.count) - down;
        assert!((expected - 2..=expected + 2).contains(&rounds), "{rounds}");
    }
}

#[test]
fn up_ends_when_more_brings_no_more() {
    let mut world = World::new(Link::new(mbit(20), ms(50), 400), 1, 1);
    run_until(&mut world, State::Up);
    let round = with(&world, |bbr| bbr.model.round.count);
    run_until(&mut world, State::Down);
    with(&world, |bbr| {
        assert!(bbr.full_pipe.now);
        assert!(!bbr.cycle.prev_too_high);
        assert!(bbr.model.round.count - round >= 3);
    });
}

#[test]
fn a_silent_application_keeps_the_flow_going_up() {
    let mut world = World::new(Link::new(mbit(20), ms(50), 400), 1, 1);
    run_until(&mut world, State::Refill);
    world.set_source(0, Source::Rate(mbit(2)));
    run_until(&mut world, State::Up);
    let bw = with(&world, |bbr| bbr.model.max_bw.get());
    world.run(secs(2));
    assert_eq!(state(&world), State::Up);
    assert_eq!(with(&world, |bbr| bbr.model.max_bw.get()), bw);
}

#[test]
fn probe_rtt_comes_every_five_seconds_and_lasts_two_hundred_milliseconds() {
    let mut world = world();
    world.run(secs(3));
    let (mut entered, mut left) = (Vec::new(), Vec::new());
    let mut before = state(&world);
    for _ in 0..30_000 {
        world.run(ms(1));
        let now = state(&world);
        if now == State::ProbeRtt {
            let (window, most) = with(&world, |bbr| (bbr.window(), bbr.probe_rtt_window()));
            assert!(window <= most);
        }
        match (before == State::ProbeRtt, now == State::ProbeRtt) {
            (false, true) => entered.push(world.now),
            (true, false) => {
                left.push(world.now);
                assert_eq!(now, State::Cruise);
            }
            _ => {}
        }
        before = now;
    }
    assert!((5..=6).contains(&entered.len()), "{entered:?}");
    for (entered, left) in entered.iter().zip(&left) {
        let took = *left - *entered;
        assert!((ms(200)..ms(340)).contains(&took), "{took:?}");
    }
    for (left, entered) in left.iter().zip(entered.iter().skip(1)) {
        let between = *entered - *left;
        // Five seconds since it ended, or since a smaller round trip was seen soon after.
        assert!((ms(4_990)..ms(6_500)).contains(&between), "{between:?}");
    }
    let min_rtt = with(&world, |bbr| bbr.model.min_rtt).unwrap();
    assert!(min_rtt < ms(33), "{min_rtt:?}");
}

#[test]
fn a_longer_path_is_learnt_of_after_ten_seconds() {
    let mut world = world();
    world.run(secs(8));
    world.link.rtt = ms(90);
    world.run(secs(22));
    let min_rtt = with(&world, |bbr| bbr.model.min_rtt).unwrap();
    assert!((ms(90)..ms(100)).contains(&min_rtt), "{min_rtt:?}");
    let share = world.measure(0, secs(8));
    assert!(share >= 90, "{share}");
}

#[test]
fn idle_time_is_as_good_as_probe_rtt() {
    let mut world = world();
    world.run(secs(3));
    world.set_source(0, Source::Idle);
    world.run(secs(7));
    world.set_source(0, Source::Bulk);
    for _ in 0..1_000 {
        world.run(ms(1));
        assert_ne!(state(&world), State::ProbeRtt);
    }
    let rate = with(&world, |bbr| bbr.pacing_rate);
    assert!(rate >= mbit(8), "{rate}");
}

#[test]
fn probe_rtt_in_startup_leads_back_to_it() {
    let mut world = world();
    world.set_source(0, Source::Rate(mbit(1)));
    run_until(&mut world, State::ProbeRtt);
    assert!(!with(&world, |bbr| bbr.full_pipe.reached));
    run_until(&mut world, State::Startup);
    world.set_source(0, Source::Bulk);
    run_until(&mut world, State::Cruise);
}

#[test]
fn low_rates_in_probe_rtt_do_not_count_as_what_the_path_gives() {
    let mut world = world();
    run_until(&mut world, State::ProbeRtt);
    world.run(ms(100));
    with(&world, |bbr| {
        assert!(bbr.probe_rtt.limited(bbr.delivered));
    });
    run_until(&mut world, State::Cruise);
    world.run(ms(100));
    with(&world, |bbr| assert!(!bbr.probe_rtt.limited(bbr.delivered)));
}

#[test]
fn a_resumed_window_is_used_at_once_and_given_back_when_it_was_too_much() {
    let resume = |world: &World, window, threshold| {
        let resume = Resume {
            now: world.now,
            window,
            slow_start_threshold: threshold,
        };
        with(world, |bbr| bbr.on_resume(&resume));
    };
    let mut world = World::new(Link::new(mbit(100), ms(50), 100), 1, 1);
    world.run(ms(65));
    let window = with(&world, |bbr| bbr.window);
    resume(&world, 50 * window, None);
    let rate = with(&world, |bbr| bbr.pacing_rate);
    assert!(rate >= 50 * window * 18, "in a round trip: {rate}");
    resume(&world, 10 * window, None);
    assert!(with(&world, |bbr| bbr.pacing_rate) < rate / 4);
    world.run(ms(55));
    assert_eq!(state(&world), State::Startup);
    resume(&world, 10 * window, Some(10 * window));
    assert_eq!(state(&world), State::Drain);
    run_until(&mut world, State::Cruise);
}
