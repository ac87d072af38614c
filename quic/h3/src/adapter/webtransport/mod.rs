//! WebTransport over HTTP/3: sessions with streams and datagrams of their own
//! (draft-ietf-webtrans-http3).
//!
//! A session begins with a request of extended CONNECT, whose stream stays open. [`Session::start`] makes
//! one from that stream, on either side; `hybriq-http` does so for requests to its servers, and for its
//! clients. [`Session`] implements [`web_transport_trait::Session`] as well, for protocols that are
//! written against it.
//!
//! # Versions
//! The settings of draft-02 (SETTINGS_ENABLE_WEBTRANSPORT) and of draft-07 and its successors
//! (WEBTRANSPORT_MAX_SESSIONS) are both sent, as Chromium does. Streams, datagrams and capsules are the
//! same in both. The limits that draft-13 and later drafts put on a session's streams and data are not
//! offered, so they do not apply; those of the connection do.
//!
//! # Streams that are abandoned
//! A stream is reset by RESET_STREAM_AT if the peer supports it, behind the header that names its
//! session, so that the peer always learns to which session it belonged.
//!
//! # Limits
//! [`Limits`] bounds what is kept of a peer: sessions, streams and datagrams that overtake the request of
//! their session, and datagrams that are not read. Streams count as those of their connection
//! ([`max_uni_streams`](hybriq::TransportConfig::max_uni_streams),
//! [`max_bidi_streams`](hybriq::TransportConfig::max_bidi_streams)) until the application has taken them
//! and knows their end: those that wait in the queues of sessions are bounded by that, and at most 1 KiB
//! of each was read.

mod capsule;
mod code;
mod compat;
mod error;
mod inbox;
mod session;
mod sessions;
mod shared;
mod stream;

use std::time::Duration;

pub use error::{SessionError, StreamError};
pub use session::Session;
pub use sessions::{Reservation, Sessions};
pub use stream::{RecvStream, SendStream};

pub(crate) use shared::Arrived;

/// SETTINGS_ENABLE_WEBTRANSPORT of draft-02.
pub const ENABLE: u64 = 0x2b60_3742;

/// SETTINGS_WEBTRANSPORT_MAX_SESSIONS of draft-07 and its successors.
pub const MAX_SESSIONS: u64 = 0xc671_706a;

/// Type of the signal that a bidirectional stream belongs to a session.
pub(crate) const BIDI: u64 = 0x41;

/// Type of unidirectional streams that belong to a session.
pub(crate) const UNI: u64 = 0x54;

/// Bounds on what is kept of a peer. Start from [`Limits::default`].
///
/// # Examples
/// ```
/// let mut limits = hybriq_h3::webtransport::Limits::default();
/// limits.sessions = 1;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest number of sessions on a connection. A request for one counts from its arrival. Default: 16.
    pub sessions: usize,
    /// Largest number of streams that wait for the request of their session, on a connection. The oldest
    /// is refused with WEBTRANSPORT_BUFFERED_STREAM_REJECTED when there are more. Default: 16.
    pub waiting_streams: usize,
    /// Largest number of bytes of datagrams that wait for the request of their session, on a connection.
    /// Each counts for 96 bytes besides its payload. The oldest are dropped when there are more, except
    /// the last. Default: 16 KiB.
    pub waiting_datagrams: usize,
    /// Largest number of bytes of datagrams of a session that wait to be read. Each counts for 96 bytes
    /// besides its payload. The oldest are dropped when there are more, except the last. Default: 256 KiB.
    pub datagrams: usize,
    /// Time in which the header of a bidirectional stream has to arrive: it tells whether the stream is a
    /// request or belongs to a session; and in which the peer has to take, and to answer, the end of a session
    /// that this end closes. The stream is reset then. Default: 10 s.
    pub header_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 16,
            waiting_streams: 16,
            waiting_datagrams: 16 << 10,
            datagrams: 256 << 10,
            header_time: Duration::from_secs(10),
        }
    }
}
