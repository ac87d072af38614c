//! Finds a bug by its seed. The application below believes that a message arrives in one piece, as
//! it does on most days. Seeds are tried until one shows that it does not; the same seed shows it
//! again every time, with the traffic that led to it.
//!
//! `cargo run -p hybriq-sim --example find_by_seed`

mod setup;

use std::time::{Duration, Instant};

use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Setup,
    owners::streams::{Direction, StreamEvent},
};
use hybriq_sim::{App, Network, Progress, World, ms, one_in};

/// Length of the message, which fits into two datagrams.
const MESSAGE: usize = 2000;

/// Sends a message, and expects its echo.
struct Naive(Progress);

impl App for Naive {
    fn on_event(&mut self, _: Instant, event: &Event, connection: &mut Connection) {
        let streams = connection.streams();
        match event {
            Event::HandshakeComplete => {
                if let Some(id) = streams.open(Direction::Bidi) {
                    let _ = streams.write(id, &[7; MESSAGE]);
                    let _ = streams.finish(id);
                    // Nothing can be there yet; an event follows once there is.
                    let _ = streams.read(id, &mut [0; 1]);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) if self.0 == Progress::Busy => {
                // The bug: what is readable now need not be all.
                let read = streams.read(*id, &mut [0; MESSAGE]);
                self.0 = match read {
                    Ok(MESSAGE) => Progress::Done,
                    _ => Progress::Failed("half a message"),
                };
            }
            _ => {}
        }
    }

    fn progress(&self) -> Progress {
        self.0
    }
}

fn run(seed: u64, (client, server): &(Setup, Setup)) -> World {
    let network = Network::new(seed)
        .delay(ms(20))
        .loss(one_in(50))
        .reorder(one_in(50), ms(5));
    let mut world = World::new(network, server.clone());
    world.connect(client, Naive(Progress::Busy));
    world.run_until(Duration::from_secs(60), |world| {
        world.client(0).progress() != Progress::Busy
    });
    world
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let setups = setup::both()?;
    let is_wrong = |world: &World| matches!(world.client(0).progress(), Progress::Failed(_));
    let found = (0..10_000).find(|seed| is_wrong(&run(*seed, &setups)));
    let seed = found.ok_or("no seed shows the bug")?;
    let world = run(seed, &setups);
    println!("seed {seed}: {:?}", world.client(0).progress());
    for record in world.trace().records() {
        let at = record.at.as_secs_f64() * 1e3;
        let kinds: Vec<_> = record.packets.iter().map(|packet| packet.kind).collect();
        println!(
            "{at:7.1} ms  {:?} toward the {:?}: {} bytes, {kinds:?}",
            record.stage, record.toward, record.size
        );
    }
    Ok(())
}
