//! Tests a protocol against loss: how long 20 requests of 10 kB take on a link of 20 Mbit/s that
//! loses more and more datagrams. Time is virtual, so the program needs a moment for minutes of it.
//!
//! `cargo run -p hybriq-sim --example lossy_link`

mod setup;

use std::time::Duration;

use hybriq_sim::{Ask, Network, Progress, World, ms, per_mille};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (client, server) = setup::both()?;
    println!("lost    done after  datagrams");
    for percent in [0, 1, 2, 5, 10, 20, 40] {
        let network = Network::new(1)
            .delay(ms(25))
            .bandwidth(20_000_000, 64 * 1024)
            .loss(per_mille(10 * percent));
        let mut world = World::new(network, server.clone());
        // Any type that implements `App` can stand here.
        world.connect(&client, Ask::streams(20, 10_000));
        world.run(Duration::from_secs(300));

        let peer = world.client(0);
        let outcome = match (peer.done_at, peer.close_reason()) {
            (Some(at), _) => format!("{:.3} s", at.as_secs_f64()),
            (None, Some(reason)) => reason.to_string(),
            (None, None) => "never".to_owned(),
        };
        let datagrams = world.trace().datagrams();
        println!("{percent:3} %  {outcome:>10}  {datagrams:9}");
        assert_ne!(peer.progress(), Progress::Failed("other bytes came back"));
    }
    Ok(())
}
