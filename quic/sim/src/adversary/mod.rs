//! Adversaries: nodes of a network that cause one fault, and a peer that holds the keys and breaks
//! every rule it likes.
//!
//! # On the path
//! [`Swap`], [`Alter`], [`Replay`], [`Inject`] and the functions next to them are nodes. Use them
//! with [`Network::toward`](super::Network::toward): places are counted from 0 over the datagrams
//! that pass the node.
//!
//! # At the other end
//! An [`Attack`] is one authenticated client against one server, in virtual time, or one server
//! against its client ([`Attack::on_client`]). The attacker uses honest code only for its
//! handshake. Then it forges every datagram: it draws frames of all types, acknowledges what it
//! likes, updates its keys, sends from addresses it likes and answers challenges if it likes. Its
//! [`Character`] determines what it likes, and [`Extremes`] are its transport parameters. After
//! every step the victim is checked against the [`invariants`](super::invariants).
//!
//! ```
//! use hybriq_sim::adversary::{Attack, Character};
//! # use std::sync::Arc;
//! # use hybriq_proto::{TransportConfig, endpoint::Setup};
//! # use hybriq_tls::{Backend, ClientOptions, Identity, PrivateKeyDer, ServerOptions, Trust};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
//! # let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
//! # let root = made.cert.der().clone();
//! # let trust = Trust::roots_pem(made.cert.pem().as_bytes())?;
//! # let client = Backend::Rustls.client(&ClientOptions::new().trust(trust).alpn(["x"]))?;
//! # let identity = Identity::from_der(vec![root], key);
//! # let provider = Backend::Rustls.server(&ServerOptions::new(identity).alpn(["x"]))?;
//! # let server = Setup { provider, transport: Arc::new(TransportConfig::new()) };
//! for seed in 0..3 {
//!     let mut attack = Attack::new(seed, Character::of_seed(seed), &client, server.clone())?;
//!     // An error has the seed, the step, and the invariant that does not hold.
//!     attack.run(50)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`search`] runs an attack and, if an invariant does not hold, repeats it with fewer and fewer
//! datagrams arriving: the result names the few that are needed.
//!
//! A test that counts its allocator's bytes passes that number on with [`Attack::measure`]. Then
//! the bytes that the server holds are checked, too.

mod attack;
mod character;
mod nodes;
mod peer;
mod search;
mod victim;

pub use attack::{Arrived, Attack};
pub use character::{Addresses, Character, Extremes, Move};
pub use nodes::{Alter, Inject, Replay, Swap, flip_bit, spoof, truncate};
pub use search::{Found, search};
