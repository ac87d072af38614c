//! Requests for sessions, at a server.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use http::StatusCode;
use hybriq::StreamId;
use hybriq_h3::webtransport::Terms;

use super::{
    session::{Agreed, Session},
    sessions::Sessions,
};
use crate::upgrade::Upgrade;

/// A request extension for requests that ask for a session. Clones refer to the same request.
///
/// # Security
/// Browsers let any page ask any server for a session. Before you accept, check that the request's `origin` field
/// names an origin that you trust.
#[derive(Clone)]
pub struct WebTransport {
    upgrade: Upgrade,
    protocols: Arc<[String]>,
    choice: Choice,
    start: Arc<Mutex<Option<Start>>>,
}

type Drain = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The protocol that the service has chosen.
pub(crate) type Choice = Arc<Mutex<Option<String>>>;

/// A request extension for clients: the protocols of the application that they speak, the most preferred first
/// (draft-ietf-webtrans-http3 §3.3). The server may choose one: see [`Session::protocol`].
///
/// # Examples
/// ```
/// use hybriq_http::webtransport::Protocols;
///
/// # fn main() -> Result<(), http::Error> {
/// let request = http::Request::get("https://localhost:4433/live");
/// let request = request.extension(Protocols::new(["moq-00"])).body(())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols {
    pub(super) names: Vec<String>,
    pub(super) is_required: bool,
}

impl Protocols {
    /// Creates a list. Names must be printable ASCII: a list with any other name is not sent.
    pub fn new<T: Into<String>>(protocols: impl IntoIterator<Item = T>) -> Self {
        Self {
            names: protocols.into_iter().map(T::into).collect(),
            is_required: false,
        }
    }

    /// Requires that the server chooses one: otherwise [`connect`](super::connect) ends the session with WT_ALPN_ERROR,
    /// and returns [`ConnectError::NoProtocol`](super::ConnectError::NoProtocol).
    #[must_use]
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

/// Parts of a session.
pub(crate) struct Start {
    pub(crate) sessions: Sessions,
    pub(crate) terms: Terms,
    pub(crate) connection: hybriq::Connection,
    pub(crate) request: StreamId,
    /// Ready when the server shuts down.
    pub(crate) drain: Drain,
}

impl WebTransport {
    pub(crate) fn new(upgrade: Upgrade, protocols: Vec<String>, start: Start) -> (Self, Choice) {
        let choice = Choice::default();
        let request = Self {
            upgrade,
            protocols: protocols.into(),
            choice: choice.clone(),
            start: Arc::new(Mutex::new(Some(start))),
        };
        (request, choice)
    }

    /// Returns the protocols of the application that the client speaks, the most preferred first; at most 64
    /// (draft-ietf-webtrans-http3 §3.3).
    pub fn protocols(&self) -> &[String] {
        &self.protocols
    }

    /// Chooses one of the [protocols](Self::protocols), which the response names to the client. Call it before the
    /// request is answered. Returns false if the client does not offer this one.
    pub fn choose(&self, protocol: &str) -> bool {
        let is_offered = self.protocols.iter().any(|offered| offered == protocol);
        if is_offered {
            let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
            *choice = Some(protocol.to_owned());
        }
        is_offered
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
        let protocol = self
            .choice
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let terms = start.terms;
        let (sessions, connection) = (&start.sessions, &start.connection);
        let session = Session::start(
            sessions,
            Agreed { terms, protocol },
            connection,
            start.request,
            stream,
        );
        session.drain_when(start.drain);
        Ok(session)
    }
}

impl fmt::Debug for WebTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebTransport").finish_non_exhaustive()
    }
}
