//! UDP proxying in HTTP: CONNECT-UDP (RFC 9298), the first step of MASQUE.
//!
//! A [`Proxy`] is a layer for the service of a server that [allows](crate::ServerBuilder::connect_udp) it, over HTTP/3
//! and HTTP/2 (extended CONNECT) and over HTTP/1.1 (`upgrade: connect-udp`). [`ProxyClient`] opens tunnels over HTTP/3.
//! [`UdpTunnel`] is one end of a tunnel; [`forward`] joins it to a local UDP socket, so that programs with their own
//! sockets, such as an [`Endpoint`](hybriq::Endpoint) of this library, run through it.
//!
//! Payloads travel in QUIC datagrams if both ends accept them over HTTP/3, and otherwise in DATAGRAM capsules on the
//! stream of the request (RFC 9297 §3.5), which is reliable and ordered. Contexts other than that of UDP payloads are
//! dropped (RFC 9298 §4).
//!
//! # Security
//! A proxy sends packets for others: its address is what the target sees, and it reaches what the proxy's host reaches.
//! [`Proxy::new`] therefore needs a function that decides on each target, by the address to which its name was
//! resolved, so that a name cannot lead anywhere else; [`is_global`] keeps clients out of private networks, but not
//! from your own public addresses. Authentication is left to a layer around it, which answers before any name is
//! resolved.
//!
//! # QUIC inside
//! The first packets of a QUIC connection have 1200 bytes, and need an outer path of about 1250. Over Ethernet, the
//! search for larger sizes finds one at once after the handshake, but a connection begins with 1200: set
//! [`datagram_size`](hybriq::TransportConfig::datagram_size) to 1280 or more at both ends of the outer connection.
//! Larger packets are dropped, so that the search of the inner connection finds the size that fits.
//!
//! # Examples
//! A proxy to public addresses:
//! ```no_run
//! use axum::Router;
//! use hybriq::{Identity, ServerConfig, TransportConfig};
//! use hybriq_http::{Server, masque::{Decision, Proxy, is_global}};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let proxy = Proxy::new(|_, address, _| match address.port() {
//!         443 if is_global(address.ip()) => Decision::Allow,
//!         _ => Decision::Deny,
//!     });
//!     let config = ServerConfig::new(Identity::from_pem_files("cert.pem", "key.pem")?);
//!     let config = config.transport(TransportConfig::new().datagram_size(1350));
//!     let server = Server::builder().connect_udp().bind("[::]:443", config)?;
//!     server.serve(Router::new().layer(proxy)).await?;
//!     Ok(())
//! }
//! ```

mod client;
mod forward;
mod proxy;
mod relay;
mod target;
mod template;
mod tunnel;

use http::HeaderName;

pub use client::{ConnectError, ProxyClient, connect_udp};
pub use forward::forward;
pub use proxy::{Proxy, ProxyFuture, ProxyService};
pub use relay::{Decision, Limits, ProxyStats};
pub use target::{Host, Target, TargetError, is_global};
pub use template::{Template, TemplateError};
pub use tunnel::{MAX_PAYLOAD, TunnelError, TunnelStats, UdpTunnel};

/// The protocol of requests (RFC 9298 §3).
pub(crate) const PROTOCOL: &str = "connect-udp";
/// Says that a stream carries capsules (RFC 9297 §3.4).
const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");
/// Tells why a proxy refuses (RFC 9209).
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Bytes of datagrams that wait for the answer to their request, on a connection, at most.
pub(crate) const WAITING: usize = 16 << 10;
