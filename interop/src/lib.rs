//! hybriq against other QUIC implementations, over real sockets.
//!
//! Every implementation is a [`Peer`]: it can serve an echo and open connections, and says what it
//! knows of a handshake. A [`cases`] function takes two of them and checks one promise; the tests
//! name the pairs, and [`matrix`] runs them all and draws the table.
//!
//! What a peer says of its own handshake is not taken on trust: a [`Witness`] sits between the two,
//! reads their Initial packets with code of its own, and tells the groups and the
//! HelloRetryRequest that were really on the wire.

mod activity;
pub mod cases;
mod certificate;
mod connection;
mod echo;
pub mod matrix;
mod peer;
pub mod peers;
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
