//! A congestion controller of the application's own.

use std::sync::Arc;

use hybriq::transport::{
    Congestion,
    congestion::{Acked, Controller, Lost, Marked, Phase},
};
use hybriq_sim::{Ask, Progress, World};

use crate::support::{LIMIT, RTT, check, client_with, plain, server_with, transport, world};

const KIB: usize = 1024;

/// A window that nothing changes.
#[derive(Debug)]
struct Fixed {
    window: u64,
    rate: Option<u64>,
    burst: u64,
}

impl Controller for Fixed {
    fn on_acked(&mut self, _: &Acked) {}
    fn on_lost(&mut self, _: &Lost<'_>) {}
    fn on_marked(&mut self, _: &Marked) {}
    fn on_datagram_size(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.rate
    }

    fn burst(&self) -> u64 {
        self.burst
    }

    fn phase(&self) -> Phase {
        Phase::Avoidance
    }

    fn name(&self) -> &'static str {
        "Fixed"
    }
}

/// Sends this many bytes, and sends them back as they arrive.
fn transfer(bytes: usize, (window, rate, burst): (u64, Option<u64>, u64)) -> World {
    let congestion = Congestion::Custom(Arc::new(move |_| {
        Box::new(Fixed {
            window,
            rate,
            burst,
        })
    }));
    let config = transport().congestion(congestion);
    let (client, server) = (client_with(config.clone()), server_with(config));
    let mut world = world(plain(1), &client, &server, Ask::streams(1, bytes));
    let done = world.run_until(LIMIT, |world| world.client(0).progress() == Progress::Done);
    assert!(done, "window {window}, rate {rate:?}, burst {burst}");
    world
}

#[test]
fn its_window_is_the_connections() {
    let mut world = transfer(240 * KIB, (24_000, None, 10));
    let path = world.client_connection(0).path_stats();
    assert_eq!((path.controller, path.congestion_window), ("Fixed", 24_000));
    let took = world.client(0).done_at.unwrap();
    let round_trips = 240 * KIB as u32 / 24_000;
    assert!(took > RTT * round_trips, "{took:?}");
    assert!(took < RTT * (round_trips + 5), "{took:?}");
    world.run(LIMIT);
    check(&world);
}

#[test]
fn its_rate_is_the_connections() {
    let world = transfer(240 * KIB, (1 << 20, Some(100_000), 10));
    let took = world.client(0).done_at.unwrap().as_secs_f64();
    let expected = 240.0 * KIB as f64 / 100_000.0;
    assert!((expected..expected + 0.5).contains(&took), "{took}");
}

#[test]
fn nothing_that_it_says_stalls_a_connection() {
    for said in [
        (0, None, 0),
        (1, Some(0), 0),
        (u64::MAX, None, u64::MAX),
        (u64::MAX, Some(u64::MAX), u64::MAX),
    ] {
        transfer(16 * KIB, said);
    }
}
