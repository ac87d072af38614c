//! A simulated network for the sans-IO core: virtual time, seeded, without sockets or sleeps.
//!
//! A [`World`] is one server, any number of clients and the [`Network`] between them, drawn as a
//! list of nodes:
//!
//! ```text
//! Network::new(seed).delay(ms(50)).loss(one_in(20)).reorder(one_in(10), ms(5)).mtu(1280)
//! ```
//!
//! # Guide
//!
//! 1. *Test a protocol against loss.* Implement [`App`] for your protocol: it gets the events of a
//!    connection and calls its streams, as an async program does through handles. Put it into a
//!    [`World`] with [`World::connect`], run it for minutes of virtual time, and look at
//!    [`World::client`]: `examples/lossy_link.rs`. Servers run [`Echo`] unless
//!    [`Host::on_incoming`] gives them another application.
//! 2. *Find a bug by its seed.* Try seeds until one fails. The same seed fails again, and
//!    [`World::trace`] has every datagram up to the failure: `examples/find_by_seed.rs`.
//! 3. *Attack.* Write a [`Node`], or take one from [`adversary`], and put it into the network with
//!    [`Network::toward`]. `examples/post_quantum_adversary.rs` loses, delays, repeats, damages,
//!    cuts and spoofs each of the first datagrams individually. A peer that holds the keys and
//!    breaks the rules is an [`Attack`](adversary::Attack) with a
//!    [`Character`](adversary::Character): `examples/hostile_peer.rs`. To build a single packet of
//!    your own there is [`Forge`], which seals any frames into packets of a connection.
//!
//! 4. *Run a program.* With the feature `sockets`, `sockets::Sockets` carry the endpoints of `hybriq` over the
//!    network, and a paused clock of tokio is their virtual time: `quic/tests/sim/applications.rs`.
//!
//! # Invariants
//!
//! At every step the world checks invariants: a server sends at most three times what it received
//! from an address that is not validated, no timer lies in the past, every datagram is well formed
//! and large enough. A violation, and any panic while a world exists, prints the seed and the
//! traffic. [`invariants`] are limits on what a server holds and sends, whatever its peer does;
//! programs that count every allocated byte use [`heap`].
//!
//! The seed determines everything except the TLS libraries, which have their own generators. So the
//! bytes of two runs differ, and the length of a handshake message may differ by a byte or two,
//! like that of an ECDSA signature.

pub mod adversary;
pub mod flow;
mod forge;
pub mod heap;
pub mod invariants;
pub mod link;
pub mod matrix;
mod network;
mod rng;
mod world;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use forge::{
    Forge, Header, Initial, InitialFrame, PacketKind, Raw, build_initial, build_initial_with_token,
    initial_header, join, open_initials, packets, seal_packet,
};
pub use link::Marking;
pub use network::{
    Network,
    bandwidth::{Bandwidth, Link},
    dual_queue::DualQueue,
    impair::{Blackout, Bursts, Mangle, OrderedJitter, Overtake},
    node::{
        Corrupt, Datagram, Delay, DelayNth, DropIf, DropNth, Duplicate, Hop, Jitter, Loss, Mtu,
        MtuDrop, Node, Reorder, StandIn,
    },
    recut::Recut,
    stats::{Delays, LinkReport, LinkStats},
};
pub use rng::{Chance, Rng, SeededRandom, one_in, per_mille};
#[cfg(feature = "sockets")]
pub use world::sockets;
pub use world::{
    SERVER_ADDRESS, World,
    app::{App, Ask, Echo, Idle, Progress},
    download::{Fetch, Serve},
    host::{Answer, Host},
    peer::Peer,
    trace::{Record, Stage, Trace},
};

/// Returns a duration of this many milliseconds.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
