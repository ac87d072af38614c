//! HTTP/3 (RFC 9114) over [`hybriq`]: the transport traits of the [`h3`] crate.
//!
//! [`Connection`] turns a connection of hybriq into one that `h3` serves or sends requests on, and
//! every crate that is written against `h3::quic` works with it. The key exchange of these
//! connections is post-quantum by default, because it is that of hybriq.
//!
//! ```toml
//! [dependencies]
//! h3 = "0.0.8"
//! hybriq = "0.1"
//! hybriq-h3 = "0.1"
//! ```
//!
//! # A server
//! ```no_run
//! use hybriq::{Endpoint, Identity, ServerConfig};
//! use hybriq_h3::Payload;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let config = ServerConfig::new(identity).alpn([hybriq_h3::ALPN]);
//!     let server = Endpoint::server("[::]:4433", config)?;
//!     while let Some(incoming) = server.accept().await {
//!         let connecting = incoming.accept();
//!         tokio::spawn(async move {
//!             let connection = hybriq_h3::Connection::new(connecting.await?);
//!             let mut connection = h3::server::Connection::new(connection).await?;
//!             while let Some(request) = connection.accept().await? {
//!                 let (_, mut stream) = request.resolve_request().await?;
//!                 stream.send_response(http::Response::new(())).await?;
//!                 stream.send_data(Payload::from("hello")).await?;
//!                 stream.finish().await?;
//!             }
//!             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//!         });
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Bodies without copies
//! Received bodies are [`Bytes`](bytes::Bytes) that share the memory of the transport. `h3` hides the
//! type of a body that is sent, so it can be taken over without a copy only if that type is
//! [`Payload`], which is made from `Bytes`. Bodies of any other type are copied once.
//!
//! # A response in one packet
//! `h3` sends the head of a response, its body and its end one after the other. [`Payload::response`] has the
//! head and the first part of the body, and the end if there is no more: they are written at once, so that a
//! short response leaves in one packet.
//!
//! # Priorities
//! `h3` knows no priorities (RFC 9218). [`priority()`] reads the `priority` field of a request, and
//! [`hybriq::Connection::set_stream_priority`] applies it to the stream of the response. A
//! PRIORITY_UPDATE frame is applied before `h3` sees, and ignores, it.
//!
//! # Rules that `h3` does not check
//! Before `h3` sees them, the adapter checks the streams of QPACK, all field sections, and the ids of pushes.
//! Malformed are pseudo-header fields that come twice, too late, in the wrong message or in trailers, fields of
//! connections, userinfo, and several hosts. Broken rules are answered with the codes of RFC 9114 §8.1 and
//! RFC 9204 §6.
//!
//! # Limits
//! `h3` collects a frame as a whole, except for DATA, before it checks its size. A frame that says it is
//! longer than [`MAX_FRAME`], or than [`Connection::max_frame`] says, ends its stream with
//! H3_EXCESSIVE_LOAD before anything of it is kept; on the control stream it ends the connection. A message
//! with more fields than a [`HeaderMap`](http::HeaderMap) takes ends its stream likewise, unless
//! [`Connection::field_section_limit`] says that `h3` refuses it.
//!
//! # Requests that fail
//! `h3` remembers each request until its fields have come, and gives no way to forget one that fails before.
//! [`Requests`] reads requests so that nothing stays of them.
//!
//! # Codes
//! A stream that is dropped before its end is reset, and its other half is stopped, with
//! H3_REQUEST_CANCELLED (RFC 9114 §8.1). A connection that is dropped is closed with H3_NO_ERROR.
//! [`is_clean`] tells a normal end of an HTTP/3 connection from an error.
//!
//! # Datagrams
//! [`Datagrams`] sends and receives HTTP Datagrams (RFC 9297). The traits of `h3-datagram` 0.0.2 are not
//! offered for sending: its encoder writes stream id 0 whatever the stream is, and drops payload.

mod adapter;
mod connection;
mod error;
mod message;
mod priority;
pub mod qpack;
mod stream;
pub mod webtransport;
mod wire;

pub use adapter::{
    BidiStream, Connection, DatagramError, Datagrams, EarlyRequests, Follows, Goaway, OpenStreams,
    Payload, PeerSettings, Protocols, RecvStream, RequestError, Requests, Resolving, ResponseHead,
    SendStream, is_clean,
};
pub use priority::priority;

/// HTTP/3 without I/O: bytes and stream ids in, messages and bytes out, for any QUIC transport.
///
/// [`Connection`](core::Connection) begins here.
pub mod core {
    pub use crate::{
        connection::{Config, Connection, Critical, Event, Inserted, TooLarge, put_data_head},
        error::{Code, Scope, Violation},
        message::{Head, Protocol, content_length},
        priority::priority,
        stream::{Received, Receiver, Start, Uni, UniReceiver},
        webtransport,
        wire::{
            datagram::{datagram_head_len, put_datagram_head, read_datagram},
            settings::Settings,
        },
    };
}

/// The application protocol of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &str = "h3";

/// Largest number of bytes of a frame other than DATA, if [`Connection::max_frame`] does not say
/// otherwise: room for 64 KiB of a field section.
pub const MAX_FRAME: u64 = 64 << 10;

/// Largest size of a field section, counted as in RFC 9114 §4.2.2, that never has more fields than a
/// [`HeaderMap`](http::HeaderMap) takes, which are 24,576: each counts for 33 bytes at least.
pub const MAX_FIELD_SECTION: u64 = 33 * 24_576;

/// H3_EXCESSIVE_LOAD: the peer's behaviour may cause excessive load (RFC 9114 §8.1).
pub const H3_EXCESSIVE_LOAD: u64 = 0x107;

/// H3_NO_ERROR: an end without an error (RFC 9114 §8.1).
pub const H3_NO_ERROR: u64 = 0x100;

/// The codes of HTTP/3 for handles of [`hybriq`] that are dropped, and for a normal end: for programs
/// that use its connections without this crate's. This crate sends these codes by itself.
///
/// ```
/// use hybriq::TransportConfig;
///
/// let config = TransportConfig::new().application_codes(hybriq_h3::APPLICATION_CODES);
/// ```
pub const APPLICATION_CODES: hybriq::transport::ApplicationCodes =
    hybriq::transport::ApplicationCodes::new()
        .no_error(H3_NO_ERROR)
        .dropped_send(H3_REQUEST_CANCELLED)
        .dropped_recv(H3_REQUEST_CANCELLED);

/// H3_REQUEST_CANCELLED: the request or its response is no longer needed (RFC 9114 §8.1).
pub const H3_REQUEST_CANCELLED: u64 = 0x10c;
