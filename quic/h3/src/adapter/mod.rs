//! The transport traits of the [`h3`](https://docs.rs/h3) crate over [`hybriq`], and nothing else: what the peer
//! sends is read and judged by `h3`.
//!
//! [`Connection`] turns a connection of hybriq into one on which `h3` serves or sends requests, and every crate
//! that is written against `h3::quic` works with it. The key exchange of these connections is post-quantum by
//! default, because it is that of hybriq.
//!
//! ```toml
//! [dependencies]
//! h3 = "0.0.8"
//! hybriq = "0.1"
//! hybriq-h3 = { version = "0.1", features = ["h3"] }
//! ```
//!
//! # A server
//! ```no_run
//! use bytes::Bytes;
//! use hybriq::{Endpoint, Identity, ServerConfig};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let config = ServerConfig::new(identity).alpn([hybriq_h3::ALPN]);
//!     let server = Endpoint::server("[::]:4433", config)?;
//!     while let Some(incoming) = server.accept().await {
//!         let connecting = incoming.accept();
//!         tokio::spawn(async move {
//!             let connection = hybriq_h3::adapter::Connection::new(connecting.await?);
//!             let mut connection = h3::server::Connection::new(connection).await?;
//!             while let Some(request) = connection.accept().await? {
//!                 let (_, mut stream) = request.resolve_request().await?;
//!                 stream.send_response(http::Response::new(())).await?;
//!                 stream.send_data(Bytes::from("hello")).await?;
//!                 stream.finish().await?;
//!             }
//!             Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//!         });
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Bodies
//! Received bodies are [`Bytes`](bytes::Bytes) that share the memory of the transport. Bodies that are sent may
//! have any type. `h3` hides it behind a buffer that copies, so they are copied once; data that is sent without a frame
//! around it is taken with [`Buf::copy_to_bytes`](bytes::Buf::copy_to_bytes), which does not copy `Bytes`.
//!
//! # Cancellation
//! If the future of a `send_data` is dropped while a part of its frame is unsent, nothing can follow on that
//! stream: its next use resets it with H3_REQUEST_CANCELLED and returns an error of the stream. Other streams, and the
//! connection, continue.
//!
//! # Codes
//! A stream that is dropped before its end is reset, and its other half is stopped, with
//! H3_REQUEST_CANCELLED (RFC 9114 §8.1). A connection that is dropped is closed with H3_NO_ERROR.
//!
//! # Security
//! Rules and limits are those of `h3`: it buffers a whole frame before it checks its size, and does not find all
//! malformed messages. A server for peers that it does not trust should be one of `hybriq-http`.

mod connection;
mod error;
mod stream;

use hybriq::{ConnectionError, transport::ApplicationCodes};

pub use self::{
    connection::{Connection, OpenStreams},
    stream::{BidiStream, RecvStream, SendStream},
};
use crate::error::Code;

/// The codes of HTTP/3 for handles of [`hybriq`] that are dropped, and for a normal end: for programs that use
/// its connections without this module's.
///
/// ```
/// use hybriq::TransportConfig;
///
/// let config = TransportConfig::new().application_codes(hybriq_h3::adapter::APPLICATION_CODES);
/// ```
pub const APPLICATION_CODES: ApplicationCodes = ApplicationCodes::new()
    .no_error(Code::H3_NO_ERROR.0)
    .dropped_send(Code::H3_REQUEST_CANCELLED.0)
    .dropped_recv(Code::H3_REQUEST_CANCELLED.0);

/// Returns true if an HTTP/3 connection ended normally: one end closed it with `H3_NO_ERROR` (RFC 9114 §5.2) or with
/// code 0, or closed the transport without an error.
pub fn is_clean(error: &ConnectionError) -> bool {
    APPLICATION_CODES.is_clean(error) || error.is_clean()
}
