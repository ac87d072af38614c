//! The sans-IO core of [hybriq](https://docs.rs/hybriq): QUIC (RFC 9000, 9001, 9002) as a state
//! machine, with a TLS 1.3 handshake that is post-quantum by default.
//!
//! Datagrams, time and randomness go in; datagrams and events come out. The core has no runtime, no
//! socket, no clock, no lock and no system randomness. The crate `hybriq` drives it with tokio, and
//! most programs want that crate. Use this one to drive QUIC with something else: another runtime, a
//! simulation, a test.
//!
//! # The parts
//! - An [`Endpoint`] routes datagrams to connections, assembles ClientHellos, starts and accepts
//!   connections, and answers packets that need no connection. It is one worker's share: several
//!   endpoints may serve one address.
//! - A [`Connection`] is one connection. It composes an owner for each part of the protocol.
//! - A [`Setup`] is what connections of one kind share: a TLS provider and a [`TransportConfig`].
//!
//! # The loop of a driver
//! 1. Pass each datagram to [`Endpoint::on_datagram`]. If it returns [`Routed::Connection`], pass
//!    the packets to [`Connection::on_packets`]; if it returns [`Routed::Incoming`], decide with
//!    [`Endpoint::accept`], [`refuse`](Endpoint::refuse), [`retry`](Endpoint::retry) or
//!    [`ignore`](Endpoint::ignore).
//! 2. Call [`Connection::on_timeout`] and [`Endpoint::on_timeout`] at the time of their
//!    `next_timeout`.
//! 3. Read the events with [`Connection::poll_event`], and act on them: open, write and read
//!    streams.
//! 4. Call [`Endpoint::service`] for every connection that was touched. A connection is over once
//!    it returns `false`.
//! 5. Send what [`Connection::poll_transmit`] and [`Endpoint::poll_transmit`] return, until they
//!    return nothing.
//!
//! # Examples
//! A client and a server in memory. The client asks for `x`, and the server echoes it:
//! ```
//! use std::{net::SocketAddr, sync::Arc, time::Instant};
//!
//! use hybriq_proto::{
//!     Arrival, Connection, Direction, Endpoint, Event, Local, Random, Routed, Setup, Slot,
//!     TransportConfig,
//! };
//! use hybriq_tls::{Backend, ClientOptions, Identity, ServerOptions, Trust};
//!
//! struct SystemRandom;
//!
//! impl Random for SystemRandom {
//!     fn fill(&mut self, bytes: &mut [u8]) {
//!         aws_lc_rs::rand::fill(bytes).expect("the system has randomness");
//!     }
//! }
//!
//! struct Peer {
//!     address: SocketAddr,
//!     endpoint: Endpoint,
//!     connection: Option<(Slot, Connection)>,
//! }
//!
//! impl Peer {
//!     fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
//!         let arrival = Arrival { peer: from, local: Local::default(), ecn: None };
//!         match self.endpoint.on_datagram(now, &arrival, datagram) {
//!             Routed::Incoming(incoming) => {
//!                 let accepted = self.endpoint.accept(now, *incoming, None);
//!                 self.connection = Some(accepted.expect("a client we can talk to"));
//!             }
//!             Routed::Connection(_, packets) => {
//!                 let (_, connection) = self.connection.as_mut().expect("the only one");
//!                 connection.on_packets(now, &arrival, packets);
//!             }
//!             _ => {}
//!         }
//!     }
//!
//!     /// Returns the datagrams to send.
//!     fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
//!         let (mut out, mut sent) = (vec![0; 65_536], Vec::new());
//!         if let Some((slot, connection)) = &mut self.connection {
//!             self.endpoint.service(*slot, connection);
//!             while let Some(transmit) = connection.poll_transmit(now, &mut out, 1) {
//!                 sent.push(out[..transmit.size].to_vec());
//!             }
//!         }
//!         while let Some(transmit) = self.endpoint.poll_transmit(now, &mut out) {
//!             sent.push(out[..transmit.size].to_vec());
//!         }
//!         sent
//!     }
//!
//!     fn connection(&mut self) -> Option<&mut Connection> {
//!         self.connection.as_mut().map(|(_, connection)| connection)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let made = rcgen::generate_simple_self_signed(["server.test".to_owned()])?;
//! let certificate = made.cert.der().clone();
//! let key = made.signing_key.serialize_der().try_into()?;
//! let identity = Identity::from_der(vec![certificate.clone()], key);
//!
//! let transport = Arc::new(TransportConfig::new());
//! let server_setup = Setup {
//!     provider: Backend::Rustls.server(&ServerOptions::new(identity).alpn(["echo"]))?,
//!     transport: transport.clone(),
//! };
//! let trust = Trust::roots_der(vec![certificate]);
//! let client_setup = Setup {
//!     provider: Backend::Rustls.client(&ClientOptions::new().alpn(["echo"]).trust(trust))?,
//!     transport,
//! };
//!
//! let (now, random) = (Instant::now(), || Box::new(SystemRandom));
//! let mut server = Peer {
//!     address: "192.0.2.1:4433".parse()?,
//!     endpoint: Endpoint::new(0, random(), Some(server_setup)),
//!     connection: None,
//! };
//! let mut client = Peer {
//!     address: "192.0.2.2:50000".parse()?,
//!     endpoint: Endpoint::new(0, random(), None),
//!     connection: None,
//! };
//! let started = client.endpoint.connect(now, &client_setup, server.address, "server.test")?;
//! client.connection = Some(started);
//!
//! let (mut stream, mut answer) = (None, Vec::new());
//! while answer.is_empty() {
//!     for mut datagram in client.transmit(now) {
//!         server.receive(now, client.address, &mut datagram);
//!     }
//!     for mut datagram in server.transmit(now) {
//!         client.receive(now, server.address, &mut datagram);
//!     }
//!     let connection = client.connection().expect("it was started");
//!     while let Some(event) = connection.poll_event() {
//!         if let Event::HandshakeComplete = event {
//!             let agreed = connection.handshake().expect("the handshake is over");
//!             assert!(agreed.key_exchange.is_post_quantum());
//!             let id = connection.streams().open(Direction::Bidi).expect("one is allowed");
//!             connection.streams().write(id, b"x")?;
//!             stream = Some(id);
//!         }
//!     }
//!     if let Some(id) = stream {
//!         if let Ok(Some(chunk)) = connection.streams().read_chunk(id, 16) {
//!             answer.extend_from_slice(&chunk);
//!         }
//!     }
//!     if let Some(connection) = server.connection() {
//!         if let Some(id) = connection.streams().accept(Direction::Bidi) {
//!             if let Ok(Some(chunk)) = connection.streams().read_chunk(id, 16) {
//!                 connection.streams().write(id, &chunk)?;
//!             }
//!         }
//!     }
//! }
//! assert_eq!(answer, b"x");
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//! Imports point one way: `wire ← owners ← connection ← endpoint`. The [`owners`] (streams, recovery,
//! connection ids, …) never import each other nor [`connection`]; they get what they need as
//! arguments. What connections share and what needs a lock
//! is a trait that the driver implements: [`remembered::server::ServerStore`],
//! [`config::PathMemory`], [`remembered::token::Keys`].

#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests take a base for their virtual time from the clock, and share what they saw"
    )
)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod buffer;
pub mod config;
pub mod connection;
pub mod endpoint;
pub mod events;
pub mod owners;
pub mod random;
pub mod remembered;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod wire;

pub use config::TransportConfig;
pub use connection::{Connection, Event, Setup};
pub use endpoint::{Endpoint, Incoming, Routed, Slot};
pub use events::agreement::Handshake;
pub use hybriq_tls::Side;
pub use owners::streams::{Direction, StreamId};
pub use random::Random;
pub use wire::error::{Code, ConnectionError, TransportError, Violation};
pub use wire::packet::PacketNumber;
pub use wire::udp::{Arrival, Local, SocketId, Transmit};

// Unit tests are built with separate types that hybriq-sim does not know: they include the parts of
// it that they need.
#[cfg(test)]
extern crate self as hybriq_proto;
#[cfg(test)]
#[expect(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the simulator offers and uses more of it"
)]
mod forge;
#[cfg(test)]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the simulator offers and uses more of it"
)]
mod rng;
