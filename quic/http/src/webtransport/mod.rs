//! WebTransport over HTTP/3, for servers and clients.
//!
//! A server with [`ServerBuilder::webtransport`](crate::ServerBuilder::webtransport) adds a [`WebTransport`] to the
//! requests that ask for a session. [`connect`] opens a session as a client. `hybriq_h3::webtransport` lists the
//! supported versions and the limits.
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
//!         while let Ok((mut send, mut recv)) = session.accept_bi().await {
//!             let _ = tokio::io::copy(&mut recv, &mut send).await;
//!             let _ = send.finish();
//!         }
//!     })
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let server = Server::builder().webtransport(Limits::default());
//!     let server = server.bind("[::]:4433", ServerConfig::new(identity))?;
//!     server.serve(Router::new().route("/echo", any(echo))).await;
//!     Ok(())
//! }
//! ```

mod client;

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use h3::quic::StreamId;
use http::StatusCode;

use crate::upgrade::Upgrade;

pub use client::{ConnectError, connect};
pub use hybriq_h3::webtransport::{
    Limits, RecvStream, SendStream, Session, SessionError, Sessions, StreamError,
};

/// Field of requests that speak draft-02.
pub(crate) const DRAFT02: &str = "sec-webtransport-http3-draft02";
/// Field of responses that names the draft.
pub(crate) const DRAFT: &str = "sec-webtransport-http3-draft";

/// Returns true if this protocol of an extended CONNECT is WebTransport: the token of drafts up to 14, or that of
/// later drafts.
pub(crate) fn is_webtransport(protocol: &str) -> bool {
    protocol == "webtransport" || protocol == "webtransport-h3"
}

/// A request extension for requests that ask for a session. Clones refer to the same request.
///
/// # Security
/// Browsers let any page ask any server for a session. Before you accept, check that the request's `origin` field
/// names an origin that you trust.
#[derive(Clone)]
pub struct WebTransport {
    upgrade: Upgrade,
    start: Arc<Mutex<Option<Start>>>,
}

type Drain = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Parts of a session.
pub(crate) struct Start {
    pub(crate) sessions: Sessions,
    pub(crate) connection: hybriq::Connection,
    pub(crate) request: StreamId,
    /// Ready when the server shuts down.
    pub(crate) drain: Drain,
}

impl WebTransport {
    pub(crate) fn new(upgrade: Upgrade, start: Start) -> Self {
        Self {
            upgrade,
            start: Arc::new(Mutex::new(Some(start))),
        }
    }

    /// Accepts the session: runs a task with it once the response was sent. Answer the request with the status that
    /// this returns.
    ///
    /// The session is closed when its last handle is dropped. When the server shuts down, it asks the client to end
    /// the session soon (DRAIN_WEBTRANSPORT_SESSION), and cuts it off at the deadline.
    pub fn accept<F>(self, run: impl FnOnce(Session) -> F + Send + 'static) -> StatusCode
    where
        F: Future<Output = ()> + Send,
    {
        tokio::spawn(async move {
            match self.session().await {
                Ok(session) => run(session).await,
                Err(error) => tracing::debug!(%error, "a session did not start"),
            }
        });
        StatusCode::OK
    }

    /// Waits until the response was sent, which must have the status 200, and returns the session. Call this in
    /// another task than the one that answers the request.
    ///
    /// # Errors
    /// The request was refused or cancelled, or its session was already taken.
    ///
    /// # Cancel safety
    /// Dropping the future loses the session.
    pub async fn session(self) -> io::Result<Session> {
        let start = self
            .start
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let taken = || io::Error::other("the session of the request was already taken");
        let start = start.ok_or_else(taken)?;
        let stream = self.upgrade.upgraded().await?;
        let session = Session::start(&start.sessions, start.connection, start.request, stream);
        session.drain_when(start.drain);
        Ok(session)
    }
}

impl fmt::Debug for WebTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebTransport").finish_non_exhaustive()
    }
}
