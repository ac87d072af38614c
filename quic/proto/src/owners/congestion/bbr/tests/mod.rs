mod link;
mod losses;
mod property;
mod scenarios;
mod states;

use super::*;
use link::{Link, Source, World, mbit, ms, secs};

/// 10 Mbit/s over 30 ms, with a buffer of the same size again.
fn world() -> World {
    World::new(Link::new(mbit(10), ms(30), 100), 1, 1)
}

fn run_until(world: &mut World, state: State) {
    let reached = world.run_until(secs(20), |bbr| bbr.state == state);
    assert!(reached, "{state:?} is never reached");
}

fn state(world: &World) -> State {
    world.flows[0].bbr.with(|bbr| bbr.state)
}
