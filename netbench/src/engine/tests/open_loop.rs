//! Arrivals, stalls and percentiles.

use std::rc::Rc;
use std::time::Duration;

use super::fake::{Fake, Network};
use super::{is_about, on_virtual_time, play, scenario, setup};
use crate::axes::Cell;

/// 100 connections a second for 100 s; from 20 s to 30 s nothing arrives. Whoever should have
/// begun in these 10 s waits for 5 s on average, and is not left out.
#[test]
fn a_stalled_server_shows_in_the_latency_of_all_that_should_have_begun() {
    on_virtual_time(async {
        let mut network = Network::new();
        network.stall = Some((Duration::from_secs(20), Duration::from_secs(30)));
        let driver = Fake(Rc::new(network));
        let ops = r#"[{"connect": {"connections": 10000, "rate": 100, "concurrency": 10,
            "timeout": "60s", "ops": []}}]"#;
        let played = play(&driver, setup(Cell::default()), scenario("{}", ops)).await;
        assert_eq!(played.outcomes(), [("ok", 10_000)]);
        let handshake = &played.kind().handshake;
        // 1,000 of 10,000 waited, evenly from 10 s down to nothing; then the backlog is caught up
        // at 10 connections a millisecond.
        assert!(
            is_about(handshake.us_at(0.5), 1000.0),
            "{}",
            handshake.us_at(0.5)
        );
        assert!(
            is_about(handshake.us_at(0.899), 1000.0),
            "{}",
            handshake.us_at(0.899)
        );
        for (quantile, seconds) in [(0.95, 5.0), (0.99, 9.0), (0.999, 9.9)] {
            let measured = handshake.us_at(quantile) / 1e6;
            assert!((measured - seconds).abs() < 0.15, "{quantile}: {measured}");
        }
    });
}
