//! A suite against post-quantum handshakes: each of the first datagrams of either end is lost,
//! duplicated, delayed, damaged or sent from a spoofed address, alone. A ClientHello with an ML-KEM
//! share fills two datagrams, so that all of these happen to half a ClientHello, too.
//!
//! `cargo run -p hybriq-sim --example post_quantum_adversary`

mod setup;

use std::{net::SocketAddr, time::Duration};

use hybriq_sim::{
    Ask, DelayNth, DropNth, Network, Node, World,
    adversary::{Replay, flip_bit, spoof, truncate},
    ms,
};
use hybriq_tls::Side;

/// Number of datagrams of each end that are attacked, one after the other.
const DATAGRAMS: usize = 6;

/// An attack on the datagram at a place.
type Attack = fn(usize) -> Box<dyn Node>;

fn attacks() -> [(&'static str, Attack); 6] {
    const STRANGER: [u8; 4] = [198, 51, 100, 66];
    [
        ("lost", |place| Box::new(DropNth::new([place]))),
        ("late", |place| Box::new(DelayNth::new([place], ms(70)))),
        ("twice", |place| Box::new(Replay::new(place, ms(30)))),
        ("damaged", |place| Box::new(flip_bit(place, 4000))),
        ("cut", |place| Box::new(truncate(place, 600))),
        ("spoofed", |place| {
            Box::new(spoof(place, SocketAddr::from((STRANGER, 443))))
        }),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (client, server) = setup::both()?;
    println!("time until the first byte came back, by the place of the datagram");
    for (name, attack) in attacks() {
        for toward in [Side::Server, Side::Client] {
            let mut times = Vec::new();
            for place in 0..DATAGRAMS {
                let network = Network::new(1).delay(ms(25)).toward(toward, attack(place));
                let mut world = World::new(network, server.clone());
                world.connect(&client, Ask::one_byte());
                world.run(Duration::from_secs(60));
                let peer = world.client(0);
                let handshake = peer.handshake.as_ref();
                let done = peer.done_at.ok_or("a connection hangs")?;
                if !handshake.is_some_and(|outcome| outcome.key_exchange.is_post_quantum()) {
                    return Err("the handshake is not post-quantum".into());
                }
                times.push(format!("{:7} ms", done.as_millis()));
            }
            println!("{name:8} toward the {toward:?}{}", times.concat());
        }
    }
    Ok(())
}
