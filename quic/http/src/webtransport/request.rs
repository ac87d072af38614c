//! Requests for sessions, at a server.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use http::StatusCode;
use hybriq::StreamId;

use super::{session::Session, sessions::Sessions};
use crate::upgrade::Upgrade;

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
