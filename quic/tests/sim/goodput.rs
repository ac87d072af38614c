//! A download over the usual link of the QUIC interop runner: whole connections, as its case `goodput`
//! measures them.

use std::time::Duration;

use hybriq::TransportConfig;
use hybriq_sim::{
    Answer, Fetch, Network, Serve, World,
    link::{Line, Settings},
    ms,
};

use crate::support::{LIMIT, client_with, server_with};

const BYTES: usize = 10 * 1024 * 1024;
const RATE: u64 = 10_000_000;

/// Returns the goodput in bits per second, from the first datagram to the end.
fn goodput(jitter: Duration) -> f64 {
    let link = Settings {
        delay: ms(15),
        jitter,
        line: Some(Line::new(RATE, 25 * 1500)),
        ..Settings::default()
    };
    let server = server_with(TransportConfig::new());
    let mut world = World::new(Network::new(1).link(&link), server);
    world.expect_bulk(1_000_000);
    world
        .server_mut()
        .on_incoming(|_| Answer::Accept(None, Box::new(Serve::bytes(BYTES))));
    world.connect(&client_with(TransportConfig::new()), Fetch::bytes(BYTES));
    assert!(world.run_until(LIMIT, |world| world.client(0).done_at.is_some()));
    BYTES as f64 * 8.0 / world.client(0).done_at.unwrap().as_secs_f64()
}

/// Headers take 2.3 % of full datagrams, the handshake and slow start another percent.
#[test]
fn a_download_fills_the_link_of_the_interop_runner() {
    for jitter in [ms(0), ms(1)] {
        let share = goodput(jitter) / RATE as f64;
        assert!(share >= 0.955, "{share:.4} of the link, jitter {jitter:?}");
    }
}
