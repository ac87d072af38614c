//! Servers and clients for HTTP/1.1, HTTP/2 and HTTP/3. One key exchange policy applies to all versions; it is
//! post-quantum by default.
//!
//! # A server
//! [`Server`] serves a [`tower`](https://docs.rs/tower) service, such as an axum router, over TCP and QUIC on the
//! same port number. Responses over TCP announce HTTP/3 with `Alt-Svc` (RFC 7838). Every request carries a [`Peer`]:
//! the addresses, the negotiated key exchange, and the client's certificates.
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
//!     server.serve(app).await?;
//!     Ok(())
//! }
//! ```
//!
//! # A client
//! [`Client`] sends requests over whichever version the server speaks, and reuses connections. It is itself a tower
//! service, and every response carries a [`Peer`].
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
//! [`Server::handle`] returns a [`Handle`] that works from any task. [`Handle::shutdown`] sends GOAWAY so that
//! clients send no more requests, waits until the requests in progress are answered, and closes the remaining
//! connections at its deadline. [`Handle::reload`] changes the certificate, the key exchange policy and the transport
//! settings of new connections, for all protocols at once; if the new configuration is invalid, the old one stays in
//! place.
//!
//! [`ServerBuilder::listen_fds`] and [`bind_sockets`](ServerBuilder::bind_sockets) take sockets from outside, such as
//! those of systemd. A newer process takes over with [`ServerBuilder::take_over_or_bind`] and [`Handle::hand_over`]; no
//! request is lost.
//!
//! # Requests in 0-RTT packets
//! With [`ServerConfig::accept_early_data`](hybriq::ServerConfig::accept_early_data), HTTP/3 requests may arrive in
//! 0-RTT packets, which an attacker can replay. Such requests with methods other than GET, HEAD, OPTIONS and TRACE
//! get status 425 (RFC 8470 §5.2), so that the client asks again after the handshake, unless
//! [`Limits::early_methods`] allows them. [`Peer::early`] is true for a request that may be a replay.
//!
//! A client sends early requests only with [`ClientConfig::offer_early_data`](hybriq::ClientConfig), only with these
//! methods, and only without a body. If such a request gets 425, the client sends it again once the handshake is
//! complete.
//!
//! # Interim responses
//! With [`ServerBuilder::interim_responses`], a service sends early hints (103) and other interim responses through an
//! [`Interim`] in its requests, over HTTP/1.1 and HTTP/3. A client that sends `expect: 100-continue` gets 100 when the
//! service first reads the body, and none if the service answers before; expectations that the server does not know are
//! ignored. Over HTTP/2, neither can be sent, because hyper has no way to do so; clients send the body anyway after a
//! while.
//!
//! A [`Client`] reports interim responses to its caller through an [`OnInterim`] in the request, over HTTP/1.1 and
//! HTTP/3. A request with `expect: 100-continue` holds its body back until the server asks for it, or until
//! [`ClientBuilder::continue_timeout`] has passed.
//!
//! # Several hosts
//! Clients use a connection for all hosts of its certificate. If a host has another certificate, or its own key
//! exchange policy, which the connection does not satisfy, its requests get 421 (RFC 9110 §15.5.20), and the client
//! repeats them on another connection: see [`Misdirected`].
//!
//! # Other protocols
//! [`ServerBuilder::extended_connect`] lets clients use the stream of a request for another protocol, such as
//! WebSocket, over HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220): the service gets an [`Upgrade`].
//! [`ServerBuilder::webtransport`] lets them open [`webtransport`] sessions, and [`ServerBuilder::connect_udp`] tunnels
//! for UDP: [`masque`].
//!
//! # Access log
//! [`AccessLog`] is a layer that logs each request, including the key exchange of its connection. [`EndLog`] reports
//! when responses are over: bytes, time and outcome.
//!
//! # Policies of routes
//! [`PostQuantum`] is a layer that observes, warns of or refuses requests whose connection is not post-quantum, for
//! services that allow classical clients elsewhere.
//!
//! # Limits
//! [`Limits`] limits what a client may cost a server. A client that exceeds a limit gets an error of its protocol (RFC
//! 9114 §8.1); other clients notice nothing. [`StallTime`] is a layer for routes that need another time.
//! [`ClientBuilder`] limits what servers may cost a client.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `axum` | off | an extractor for axum: `Peer` implements `FromRequestParts` |
//! | `https-records` | off | HTTPS records of the DNS (RFC 9460) with hickory-resolver: `SystemRecords`; needs Rust 1.88 |
//! | `metrics` | off | counters of the transport, through the facade of the crate `metrics` |
//! | `qlog` | off | logs of connections for tools such as qvis: `ServerBuilder::qlog` |
//! | `serde` | off | the record of a handshake for audits: `Tls` implements `serde::Serialize` |

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/client.md")]
#[doc = include_str!("../docs/server.md")]
#[doc = include_str!("../docs/webtransport.md")]
struct Pages;

#[doc = include_str!("../docs/from-reqwest.md")]
pub mod from_reqwest {}

// What only one version needs is in the file or folder of its name: `http2`, `http3`, `tcp`.
mod body;
mod client;
mod limits;
mod peer;
mod server;
mod services;
mod upgrade;
mod usage;
mod versions;
pub mod webtransport;

pub use body::{Body, BodyError};
#[cfg(feature = "https-records")]
pub use client::SystemRecords;
pub use client::{
    Client, ClientBuilder, ClientError, Forward, Http3, HttpsRecord, HttpsResolver,
    InvalidHttpsRecord, InvalidProxy, OfferedHosts, Proxy, ProxyError, QuicError, ResponseFuture,
};
pub use hybriq_h3::{Code, Scope, TooLarge, Violation, qpack::Error as QpackError};
pub use limits::{EarlyMethods, Limits};
pub use peer::{Peer, Tls};
pub use server::{
    AltSvc, BindError, Handle, Misdirected, ProxyNetworkError, ProxyProtocol, ServeError, Server,
    ServerBuilder, WorstCaseMemory,
};
pub use services::{
    AccessEntry, AccessLog, EndEntry, EndLog, EndLogged, EndLoggedBody, EndLoggedFuture, Logged,
    LoggedFuture, Outcome, PostQuantum, PostQuantumFuture, PostQuantumService, Refusal, StallTime,
    StallTimed, StallTimedFuture,
};
pub use upgrade::{Upgrade, Upgraded, masque};
pub use versions::{
    http3::StreamError,
    interim::{Interim, InterimError, OnInterim},
};
