//! HTTP/3 (RFC 9114) without I/O: stream ids and bytes go in; messages and bytes come out, for any QUIC
//! transport. QPACK has both tables (RFC 9204).
//!
//! [`Connection`] begins here. It holds no socket, clock, lock or task. The servers and clients of
//! `hybriq-http` are this core over `hybriq`: programs that want requests and responses use those.
//!
//! ```
//! use hybriq_h3::{Config, Connection, Received, Receiver, Settings, Side, StreamId};
//!
//! let mut client = Connection::new(Side::Client, Config::new(Settings::new()));
//! let mut server = Connection::new(Side::Server, Config::new(Settings::new()));
//!
//! let stream = StreamId(0); // the client's first bidirectional stream
//! let request = http::Request::get("https://example.com/").body(())?;
//! let mut bytes = Vec::new();
//! client.write_request(stream, &request, &mut bytes)?;
//!
//! let mut receiver = Receiver::request(stream);
//! receiver.on_data(bytes.into());
//! let Received::Head(request) = receiver.poll(&mut server)? else {
//!     panic!("the head is whole");
//! };
//! assert_eq!(request.uri().path(), "/");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//! Everything that a peer may do wrong is a [`Violation`], with its [`Code`] and with what it ends: the stream, or the
//! connection. Messages are checked as RFC 9114 §4 requires before the caller sees them.
//!
//! # Limits
//! What is kept for a peer is limited: field sections by the settings of this end, frames of the control stream by 4
//! KiB, the dynamic table and the streams that wait for it by the settings of QPACK.
//!
//! # The crate `h3`
//! With the feature `h3`, which is off by default, `adapter` has the transport traits of the
//! [`h3`](https://docs.rs/h3) crate, for programs that are written against it. It shares nothing with the core.

#[cfg(feature = "h3")]
pub mod adapter;
mod connection;
mod error;
mod inbox;
mod message;
mod priority;
pub mod qpack;
mod stream;
pub mod webtransport;
mod wire;

pub use connection::{Config, Connection, Critical, Event, Inserted, TooLarge, put_data_head};
pub use error::{Code, Scope, Violation};
pub use hybriq_proto::{Side, StreamId, owners::streams::Priority};
pub use inbox::{DATAGRAM_OVERHEAD, Inbox};
pub use message::{Head, Protocol, content_length};
pub use priority::{priority, response_priority};
pub use stream::{Received, Receiver, Start, Uni, UniReceiver};
pub use wire::{
    capsule::{DatagramCapsules, put_datagram_capsule_head},
    datagram::{datagram_head_len, put_datagram_head, read_context, read_datagram},
    settings::Settings,
};

/// The application protocol of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &str = "h3";

/// Largest size of a field section, counted as in RFC 9114 §4.2.2. Such a section never has more fields than a
/// [`HeaderMap`](http::HeaderMap) holds, 24,576, because each counts as at least 33 bytes.
pub const MAX_FIELD_SECTION: u64 = 33 * 24_576;
