//! WebTransport over HTTP/3, for servers and clients.
//!
//! A server with [`ServerBuilder::webtransport`](crate::ServerBuilder::webtransport) adds a [`WebTransport`] to the
//! requests that ask for a session. [`connect`] opens a session as a client. Streams and datagrams have the methods of
//! [`hybriq`], and [`Session`] implements [`hybriq::generic::Connection`], so that one function serves connections and
//! sessions; it implements `web_transport_trait::Session` as well, for protocols that are written against that.
//!
//! # Dialects
//! Both ends announce all of these (draft-ietf-webtrans-http3); the highest that both announce is spoken. Streams,
//! datagrams, and the capsules that drain and close a session are the same in all.
//!
//! | drafts | announced by | spoken by | `:protocol` | flow control of sessions |
//! |---|---|---|---|---|
//! | 02 | SETTINGS_ENABLE_WEBTRANSPORT | Firefox, aioquic | `webtransport` | no |
//! | 07 to 12 | SETTINGS_WEBTRANSPORT_MAX_SESSIONS | Chromium | `webtransport` | no |
//! | 13, 14 | SETTINGS_WT_MAX_SESSIONS | Safari | `webtransport` | with initial limits, or more than one session |
//! | 15 | SETTINGS_WT_ENABLED | this crate | `webtransport-h3` | with initial limits |
//!
//! Draft 15 also needs a peer that supports RESET_STREAM_AT (draft-ietf-webtrans-http3 §3.1): otherwise, a server
//! refuses requests for sessions, and a client opens none.
//!
//! A server starts no session before it has the client's settings, and treats a client that announces none as one of
//! draft 02.
//!
//! # Flow control
//! [`Limits`] says how many streams and bytes of a session the peer may have at once. A session whose peer exceeds
//! them is cut off with WT_FLOW_CONTROL_ERROR ([`SessionError::Violation`]); its connection continues. Opening a stream
//! and writing wait until the peer's limits allow it. Without flow control, only the limits of the connection apply.
//!
//! # Protocols of applications
//! A client offers [`Protocols`], and a service [chooses](WebTransport::choose) one of them: [`Session::protocol`]. A
//! client may [require](Protocols::required) that.
//!
//! # Streams that are abandoned
//! A stream is reset by RESET_STREAM_AT if the peer supports it, after the header that names its session, so that the
//! peer always learns to which session it belonged.
//!
//! # Datagrams
//! [`Session::set_outgoing_max_age`] drops datagrams that have waited too long to be sent, as
//! [`Session::send_datagram_for`] does for one.
//!
//! # Limits
//! [`Limits`] limits what is kept for a peer: sessions, streams and datagrams that overtake the request of their
//! session, and datagrams that are not read. Streams count as those of their connection
//! ([`max_uni_streams`](hybriq::TransportConfig::max_uni_streams),
//! [`max_bidi_streams`](hybriq::TransportConfig::max_bidi_streams)) until the application has taken them
//! and knows their end: this limits those that wait in the queues of sessions, and at most 1 KiB of each was read.
//!
//! # Examples
//! A server that echoes what arrives on bidirectional streams:
//! ```no_run
//! use axum::{Extension, Router, routing::any};
//! use http::StatusCode;
//! use hybriq::{Identity, ServerConfig};
//! use hybriq_http::{Server, webtransport::{Limits, WebTransport}};
//!
//! async fn echo(Extension(request): Extension<WebTransport>) -> StatusCode {
//!     request.accept(async |session| {
//!         while let Ok(Some((mut send, mut recv))) = session.accept_bidi().await {
//!             let _ = tokio::io::copy(&mut recv, &mut send).await;
//!             send.finish();
//!         }
//!     })
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let server = Server::builder().webtransport(Limits::default());
//!     let server = server.bind("[::]:4433", ServerConfig::new(identity))?;
//!     server.serve(Router::new().route("/echo", any(echo))).await?;
//!     Ok(())
//! }
//! ```

mod client;
mod compat;
mod error;
mod request;
mod session;
mod sessions;
mod shared;
mod stream;

use std::time::Duration;

use hybriq_h3::{
    Settings,
    webtransport::{Terms, Unsupported, Windows},
};

pub use client::{ConnectError, connect};
pub use error::{SessionError, StreamError};
pub(crate) use request::{Choice, Start};
pub use request::{Protocols, WebTransport};
pub use session::Session;
pub(crate) use sessions::{Reservation, Sessions};
pub use stream::{RecvStream, SendStream};

/// Field of requests that speak draft-02.
pub(crate) const DRAFT02: &str = "sec-webtransport-http3-draft02";
/// Field of responses that names the draft.
pub(crate) const DRAFT: &str = "sec-webtransport-http3-draft";

/// Returns true if this protocol of an extended CONNECT is WebTransport: the token of drafts up to 14, or that of
/// later drafts.
pub(crate) fn is_webtransport(protocol: &str) -> bool {
    protocol == "webtransport" || protocol == "webtransport-h3"
}

/// Returns the terms negotiated with a peer that sent these settings.
pub(crate) fn terms(
    connection: &hybriq::Connection,
    own: Windows,
    peer: &Settings,
) -> Result<Terms, Unsupported> {
    let terms = Terms::of(connection.side(), own, peer)?;
    if terms.needs_reset_at() && !connection.supports_reset_at() {
        return Err(Unsupported::Requirements);
    }
    Ok(terms)
}

/// Limits on what is kept for a peer. Start from [`Limits::default`].
///
/// # Examples
/// ```
/// let mut limits = hybriq_http::webtransport::Limits::default();
/// limits.sessions = 1;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest number of sessions on a connection. A request for one counts from its arrival. Default: 16.
    pub sessions: usize,
    /// Bidirectional streams of a session that the peer may have open at once, if the session has flow control.
    /// Default: 100.
    pub bidi_streams: u64,
    /// Unidirectional streams of a session that the peer may have open at once, if the session has flow control.
    /// Default: 100.
    pub uni_streams: u64,
    /// Bytes of a session, on all of its streams, that the peer may have in flight or unread, if the session has flow
    /// control. Default: 4 MiB.
    pub data: u64,
    /// Largest number of streams that wait for the request of their session, on a connection. The oldest
    /// is refused with WEBTRANSPORT_BUFFERED_STREAM_REJECTED when there are more. Default: 16.
    pub waiting_streams: usize,
    /// Largest number of bytes of these streams: what was read of them, at most 1 KiB each, and 128 bytes for
    /// each. The oldest are refused likewise when there are more. Default: 16 KiB.
    pub waiting_stream_bytes: usize,
    /// Largest number of bytes of datagrams that wait for the request of their session, on a connection. Each counts as
    /// 96 bytes in addition to its payload. The oldest are dropped when there are more, except the last. Default: 16
    /// KiB.
    pub waiting_datagrams: usize,
    /// Largest number of bytes of datagrams of a session that wait to be read. Each counts as 96 bytes in addition to
    /// its payload. The oldest are dropped when there are more, except the last. Default: 256 KiB.
    pub datagrams: usize,
    /// Time within which the header of a bidirectional stream must arrive, which says whether the stream is a request
    /// or belongs to a session; and within which the peer must accept and answer the end of a session that this end
    /// closes. Otherwise the stream is reset. Default: 10 s.
    pub header_time: Duration,
}

impl Limits {
    /// Returns what the peer may use of a session.
    pub(crate) fn windows(&self) -> Windows {
        Windows::new(self.bidi_streams, self.uni_streams, self.data)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 16,
            bidi_streams: 100,
            uni_streams: 100,
            data: 4 << 20,
            waiting_streams: 16,
            waiting_stream_bytes: 16 << 10,
            waiting_datagrams: 16 << 10,
            datagrams: 256 << 10,
            header_time: Duration::from_secs(10),
        }
    }
}
