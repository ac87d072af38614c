//! Servers and clients of HTTP/1.1, HTTP/2 and HTTP/3, with one policy of key exchange for all of them, which
//! is post-quantum by default.
//!
//! # A server
//! [`Server`] serves a [`tower`](https://docs.rs/tower) service, such as a router of axum, over TCP and
//! over QUIC on the same port number. Answers over TCP tell clients about HTTP/3 by `Alt-Svc` (RFC
//! 7838), and every request carries a [`Peer`]: the addresses, the negotiated key exchange, and the
//! client's certificates.
//!
//! ```no_run
//! use axum::{Extension, Router, routing::get};
//! use hybriq::{Identity, ServerConfig};
//! use hybriq_http::{Peer, Server};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let hello = async |Extension(peer): Extension<Peer>| {
//!         format!("over {:?}, with {}\n", peer.version, peer.tls)
//!     };
//!     let app = Router::new().route("/", get(hello));
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let server = Server::bind("[::]:8443", ServerConfig::new(identity))?;
//!     server.serve(app).await;
//!     Ok(())
//! }
//! ```
//!
//! # A client
//! [`Client`] sends requests over whichever version a server speaks, reuses connections, and is a service of
//! tower itself. Every response carries a [`Peer`], too.
//!
//! ```no_run
//! use hybriq::ClientConfig;
//! use hybriq_http::{Client, Peer};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::new(ClientConfig::new())?;
//!     let response = client.get("https://localhost:8443/").await?;
//!     if let Some(peer) = response.extensions().get::<Peer>() {
//!         println!("{} over {:?}, with {}", response.status(), peer.version, peer.tls);
//!     }
//!     let page = response.into_body().bytes(1 << 20).await?;
//!     println!("{}", String::from_utf8_lossy(&page));
//!     Ok(())
//! }
//! ```
//!
//! # Lifecycle of a server
//! [`Server::handle`] returns a [`Handle`], which works from any task. [`Handle::shutdown`] tells clients
//! by GOAWAY to send no more requests, waits until those under way are answered, and closes what is
//! left when the time is over. [`Handle::reload`] changes the certificate, the policy and the transport
//! for new connections, on all protocols at once; a configuration with a fault leaves the old one in
//! place.
//!
//! # Requests in 0-RTT packets
//! With [`ServerConfig::accept_early_data`](hybriq::ServerConfig::accept_early_data), HTTP/3 requests may
//! come in 0-RTT packets, which an attacker can replay. Requests with other methods than GET, HEAD,
//! OPTIONS and TRACE get the answer 425 then (RFC 8470 §5.2), so that the client asks again, unless
//! [`Limits::early_methods`] says otherwise. [`Peer::early`] is true for a request that may be a replay.
//!
//! A client sends requests early only with [`ClientConfig::offer_early_data`](hybriq::ClientConfig), only those
//! methods, and only without a body. It sends a request that gets 425 again when the handshake is complete.
//!
//! # Other protocols
//! [`ServerBuilder::extended_connect`] lets clients use the stream of a request for another protocol, such
//! as WebSocket, over HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220): the service gets an [`Upgrade`].
//! [`ServerBuilder::webtransport`] lets them open sessions of [`webtransport`].
//!
//! # Access log
//! [`AccessLog`] is a layer that tells for each request how its connection exchanged keys.
//!
//! # Limits
//! [`Limits`] bounds what a client may cost a server. A client that goes beyond one gets the error of its
//! protocol (RFC 9114 §8.1), and no other client notices. [`ClientBuilder`] bounds what servers may cost a client.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod access_log;
mod body;
mod client;
mod http2;
mod limits;
mod peer;
mod server;
mod upgrade;
mod usage;
pub mod webtransport;

pub use access_log::{AccessEntry, AccessLog, Logged, LoggedFuture};
pub use body::{Body, BodyError};
pub use client::{
    Client, ClientBuilder, ClientError, ErrorCode, Http3, OfferedHosts, QuicError, ResponseFuture,
};
pub use limits::{EarlyMethods, Limits};
pub use peer::{Peer, Tls};
pub use server::{BindError, Handle, Server, ServerBuilder, WorstCaseMemory};
pub use upgrade::{Upgrade, Upgraded};
