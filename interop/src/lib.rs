//! Tests of hybriq against other QUIC implementations, over real sockets.
//!
//! Every implementation is a [`Peer`]: it can serve an echo and open connections, and tells what it
//! knows about a handshake. A [`cases`] function takes two of them and checks one promise; the
//! tests name the pairs, and [`loopback`] runs them all and prints the table.
//!
//! A peer's report about its own handshake is not trusted: a [`Witness`] between the two reads
//! their Initial packets with separate code, and reports the groups and the HelloRetryRequest on
//! the wire.
//!
//! The module [`runner`] is the endpoint of the QUIC interop runner: the same binary, told by
//! environment variables what to do.
//!
//! The folder `automaton` is run by hand: it learns how hybriq and others answer peers that break
//! rules, and explains each difference. See `interop/automaton/README.md`.

mod activity;
pub mod cases;
mod certificate;
mod connection;
mod echo;
pub mod loopback;
mod peer;
pub mod peers;
pub mod runner;
pub mod testbed;
mod witness;

pub use activity::Activity;
pub use cases::{Case, Pair, Problem};
pub use certificate::{Certificate, SERVER_NAME};
pub use connection::{Answer, Connection, Failure, HANDSHAKE_FAILURE, Handshake, Reader, Writer};
pub use echo::{Bulk, Receipt, echo_stream};
pub use peer::{
    Client, Early, Feature, Groups, NARROW_CONNECTION, NARROW_STREAM, Peer, Role, Server, Setup,
    Validation, Windows,
};
pub use witness::{ClientHello, ServerHello, Sighting, Witness};

/// The application protocol of every connection here.
pub const ALPN: &str = "hybriq-interop";
