//! Behaviour of flows behind a bottleneck.

use super::*;

#[test]
fn a_clean_link_is_filled() {
    for (rate, rtt) in [(10, 30), (20, 100), (100, 10)] {
        let mut world = World::new(Link::new(mbit(rate), ms(rtt), 100), 1, 1);
        world.run(secs(5));
        let share = world.measure(0, secs(10));
        assert!(share >= 93, "{share} of {rate} Mbit/s, {rtt} ms");
    }
}

#[test]
fn one_percent_of_random_loss_costs_little() {
    for (rate, rtt) in [(10, 30), (20, 30), (10, 100), (50, 20)] {
        let link = Link::new(mbit(rate), ms(rtt), 100).lossy(100);
        let mut world = World::new(link, 1, 1);
        world.run(secs(5));
        let share = world.measure(0, secs(20));
        assert!(share >= 84, "{share} of {rate} Mbit/s, {rtt} ms");
    }
}

#[test]
fn a_deep_buffer_stays_almost_empty() {
    for (rate, rtt) in [(10, 30), (20, 100)] {
        let mut world = World::new(Link::new(mbit(rate), ms(rtt), 1000), 1, 1);
        world.run(secs(20));
        assert!(world.max_queue < ms(rtt) * 3 / 2, "{:?}", world.max_queue);
        let mean = world.mean_queue();
        assert!(mean < ms(rtt) / 3, "{mean:?}");
    }
}

#[test]
fn a_shallow_buffer_loses_little() {
    for (rate, rtt) in [(20, 100), (50, 30)] {
        let mut world = World::new(Link::new(mbit(rate), ms(rtt), 10), 1, 1);
        world.run(secs(5));
        let flow = &world.flows[0];
        let (sent, dropped) = (flow.sent, flow.dropped);
        let share = world.measure(0, secs(15));
        assert!(share >= 85, "{share} of {rate} Mbit/s, {rtt} ms");
        let flow = &world.flows[0];
        let (sent, dropped) = (flow.sent - sent, flow.dropped - dropped);
        assert!(dropped * 100 <= sent * 2, "{dropped} of {sent}");
    }
}

#[test]
fn a_second_flow_gets_its_share() {
    for seed in [1, 2, 3] {
        let mut world = World::new(Link::new(mbit(20), ms(20), 100), 1, seed);
        world.run(secs(5));
        world.add_flow();
        world.run(secs(5));
        let before = [0, 1].map(|flow: usize| world.flows[flow].delivered);
        world.run(secs(60));
        let shares = [0, 1].map(|flow: usize| world.flows[flow].delivered - before[flow]);
        let total = shares.iter().sum::<u64>();
        assert!(total * 100 >= world.link.bdp() * 50 * 60 * 95, "{total}");
        let least = shares.iter().min().unwrap() * 100 / total;
        assert!(least >= 40, "{least} with seed {seed}");
    }
}

#[test]
fn a_link_that_becomes_faster_is_filled_again() {
    let mut world = world();
    world.run(secs(10));
    world.link = Link::new(mbit(100), ms(30), 100);
    world.run(secs(6));
    let share = world.measure(0, secs(5));
    assert!(share >= 90, "{share}");
}

#[test]
fn a_link_that_becomes_slower_is_not_overrun() {
    let mut world = World::new(Link::new(mbit(50), ms(30), 100), 1, 1);
    world.run(secs(10));
    world.link = Link::new(mbit(5), ms(30), 100);
    // Two cycles later the old bandwidth is forgotten.
    world.run(secs(8));
    let (sent, dropped) = (world.flows[0].sent, world.flows[0].dropped);
    let share = world.measure(0, secs(10));
    assert!(share >= 85, "{share}");
    let (sent, dropped) = (world.flows[0].sent - sent, world.flows[0].dropped - dropped);
    assert!(dropped * 100 <= sent * 3, "{dropped} of {sent}");
    let bw = world.flows[0].bbr.with(|bbr| bbr.model.max_bw.get());
    assert!(bw < mbit(5) * 13 / 10, "{bw}");
}

#[test]
fn a_blackout_is_forgotten_soon() {
    let mut world = world();
    world.run(secs(8));
    world.link.loss = 10_000;
    world.run(secs(2));
    world.link.loss = 0;
    // The next probe timeout is at most a second away; then there is a round trip.
    world.run(secs(2));
    let share = world.measure(0, secs(5));
    assert!(share >= 90, "{share}");
}

#[test]
fn what_an_application_does_not_send_says_nothing_of_the_path() {
    let mut world = world();
    world.run(secs(10));
    let bw = |world: &World| world.flows[0].bbr.with(|bbr| bbr.model.max_bw.get());
    let before = bw(&world);
    world.set_source(0, Source::Rate(mbit(1)));
    world.run(secs(30));
    assert!(bw(&world) * 100 >= before * 95, "{} {before}", bw(&world));
    world.set_source(0, Source::Bulk);
    world.run(ms(100));
    let share = world.measure(0, secs(1));
    assert!(share >= 85, "{share}");
}

#[test]
fn the_bandwidth_is_known_to_two_percent_after_startup() {
    let mut world = World::new(Link::new(mbit(50), ms(40), 200), 1, 1);
    run_until(&mut world, State::Drain);
    let bw = world.flows[0].bbr.with(|bbr| bbr.model.max_bw.get());
    assert!(bw.abs_diff(mbit(50)) * 50 <= mbit(50), "{bw}");
}

#[test]
fn a_path_smaller_than_a_datagram_is_used() {
    let mut link = Link::new(8_000, ms(20), 100);
    link.buffer = 20_000;
    let mut world = World::new(link, 1, 1);
    world.run(secs(30));
    let share = world.measure(0, secs(60));
    assert!(share >= 85, "{share}");
    let window = world.flows[0].bbr.window();
    assert!((4 * 1200..=13 * 1200).contains(&window), "{window}");
}

#[test]
fn what_one_seed_gives_it_gives_again() {
    let run = || {
        let mut world = World::new(Link::new(mbit(10), ms(30), 50).lossy(50), 2, 7);
        world.run(secs(5));
        world
            .flows
            .iter()
            .map(|flow| flow.delivered)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
