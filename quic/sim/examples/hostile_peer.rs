//! Attacks a server with peers that hold the keys: those that once did harm, and some drawn from
//! seeds. After every step the server is compared with its bounds.
//!
//! `cargo run -p hybriq-sim --example hostile_peer`

mod setup;

use hybriq_sim::adversary::{Addresses, Attack, Character, Extremes, Move, search};

/// Steps of each attack.
const STEPS: u64 = 300;

/// A peer of our own: it resets streams from two ports, and announces no windows.
fn resets() -> Character {
    Character {
        addresses: Addresses::TwoPorts,
        extremes: Extremes {
            windows: Some(0),
            ..Extremes::default()
        },
        ..Character::new("resets", [Move::Data, Move::Reset, Move::Stop])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (client, server) = setup::both()?;
    let drawn = (0..10).map(|seed| (seed, Character::of_seed(seed)));
    let known = Character::known().into_iter().chain([resets()]);
    let known = known.map(|character| (0, character));
    for (seed, character) in known.chain(drawn) {
        let name = character.name;
        // An error names the invariant, the seed and the step, and lists the datagrams that it takes.
        let attack = search(STEPS, || {
            let character = character.clone();
            Attack::new(seed, character, &client.provider, server.clone())
                .expect("TLS is configured")
        })?;
        let end = if attack.is_over() { "ended" } else { "lives" };
        println!(
            "a peer that {name} (seed {seed}): {} steps in {:?}, the connection {end}",
            attack.steps(),
            attack.elapsed()
        );
    }
    Ok(())
}
