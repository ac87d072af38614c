//! Clients that want to connect.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hybriq_proto::endpoint::FirstFlight;
use hybriq_tls::{ClientHello, ConfigError};
use tokio::task::JoinHandle;

use super::connecting::Connecting;
use crate::{
    config::ServerConfig,
    errors::ConnectError,
    worker::{Command, Departure, Shared, admit::refusal},
};

/// A client that wants to connect: its complete ClientHello, before any TLS object is made or any
/// public-key work is done.
///
/// Decide with [`accept`](Self::accept), [`accept_with`](Self::accept_with),
/// [`retry`](Self::retry), [`refuse`](Self::refuse) or [`ignore`](Self::ignore). Dropping it refuses
/// the client. It is a handle of its endpoint, and keeps the endpoint open until the decision.
///
/// # Examples
/// The configuration can depend on everything that the client says:
/// ```no_run
/// use hybriq::{Endpoint, KeyExchange, ServerConfig, TransportConfig};
///
/// # async fn run(server: Endpoint, public: ServerConfig) {
/// // Made once: a configuration builds its TLS provider at its first use.
/// let vault = public
///     .clone()
///     .alpn(["vault"])
///     .key_exchange(KeyExchange::RequirePostQuantum)
///     .transport(TransportConfig::new().max_bidi_streams(4));
/// while let Some(incoming) = server.accept().await {
///     let from = incoming.peer_address();
///     let hello = incoming.client_hello();
///     if !from.ip().is_loopback() && !hello.offers_post_quantum() {
///         incoming.refuse();
///         continue;
///     }
///     let wants_vault = hello.server_name() == Some("vault.example")
///         || hello.alpn().any(|protocol| protocol == b"vault");
///     let connecting = if wants_vault {
///         incoming.accept_with(vault.clone())
///     } else {
///         incoming.accept()
///     };
///     tokio::spawn(connecting);
/// }
/// # }
/// ```
///
/// # Security
/// The ClientHello is not authenticated: anybody may have written it. The client's address may be
/// forged as well, unless [`is_validated`](Self::is_validated) returns true.
pub struct Incoming {
    shared: Arc<Shared>,
    worker: u8,
    /// `None` after the decision, which consumes the handle.
    core: Option<hybriq_proto::endpoint::Incoming>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("peer_address", &self.peer_address())
            .finish_non_exhaustive()
    }
}

impl Incoming {
    pub(crate) fn new(
        shared: Arc<Shared>,
        worker: u8,
        core: hybriq_proto::endpoint::Incoming,
    ) -> Self {
        shared.on_handle_cloned();
        Self {
            shared,
            worker,
            core: Some(core),
        }
    }

    fn core(&self) -> &hybriq_proto::endpoint::Incoming {
        self.core.as_ref().expect("deciding consumes the handle")
    }

    /// Returns the client's address. It may be forged unless [`is_validated`](Self::is_validated)
    /// returns true.
    pub fn peer_address(&self) -> SocketAddr {
        self.core().peer_address()
    }

    /// Returns the local IP address that the ClientHello was sent to, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.core().local_ip()
    }

    /// Returns true if the client proved that it receives at its address, with a token from a Retry
    /// or from an earlier connection (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.core().is_validated()
    }

    /// Returns true if the client would follow a [`retry`](Self::retry). It ignores a Retry if it
    /// has already followed one, or if it has received a packet of this server, such as the acknowledgement of a
    /// partial ClientHello.
    pub fn may_retry(&self) -> bool {
        self.core().may_retry()
    }

    /// Returns the ClientHello: server name, application protocols, groups and key shares, cipher
    /// suites, signature schemes, session ticket, 0-RTT, transport parameters.
    pub fn client_hello(&self) -> &ClientHello {
        self.core().client_hello()
    }

    /// Forecasts what a handshake with this client costs under a configuration, in datagrams and
    /// round trips, for each certificate that suits the client, first choice first. Empty if the
    /// TLS library cannot forecast it.
    ///
    /// It costs no public-key work, so a server can use it to choose a configuration. A client that
    /// resumes a session gets a smaller answer.
    ///
    /// # Errors
    /// The error names the option of the configuration that cannot be used.
    pub fn first_flights(&self, config: &ServerConfig) -> Result<Vec<FirstFlight>, ConfigError> {
        Ok(self.core().first_flights(&config.setup()?))
    }

    /// Accepts the client with the endpoint's configuration.
    ///
    /// The handshake starts at once, not when the future is first polled. Dropping the future gives
    /// up the handshake.
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    pub fn accept(self) -> Connecting {
        self.start(None)
    }

    /// Accepts the client with the given configuration, which replaces the endpoint's entirely:
    /// TLS, key exchange, certificates, limits, timers, congestion control, events.
    ///
    /// The server answers in one of its [versions](crate::TransportConfig::versions). The endpoint's
    /// own configuration decides which versions a client may begin in.
    ///
    /// The first use of a configuration builds its TLS provider. Keep the configuration, or a clone
    /// of it, for more connections. It accepts session tickets of another configuration only if the
    /// two share their [`ServerConfig::tickets`].
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn accept_with(self, config: ServerConfig) -> Connecting {
        match config.setup() {
            Ok(setup) => self.start(Some(setup)),
            Err(error) => Connecting::failed(ConnectError::Tls(error)),
        }
    }

    fn start(mut self, setup: Option<hybriq_proto::endpoint::Setup>) -> Connecting {
        match self.core.take() {
            Some(core) => Connecting::start(Departure::Now, |promise| {
                self.shared
                    .accept_incoming(self.worker, core, setup, promise);
            }),
            None => Connecting::failed(ConnectError::EndpointClosed),
        }
    }

    /// Starts a task on the worker that received the client, as
    /// [`Connection::spawn`](crate::Connection::spawn) does later. On a [thread of the
    /// worker](crate::fleet::Placement) the client is then accepted and served on one core, and no
    /// other thread is woken for its handshake.
    ///
    /// The task must not block: it holds up all connections of the worker.
    ///
    /// # Panics
    /// The worker runs on the runtime of the caller, and the caller has none.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{ConnectError, Incoming};
    ///
    /// # async fn run(server: hybriq::Endpoint) {
    /// while let Some(incoming) = server.accept().await {
    ///     incoming.spawn(serve);
    /// }
    /// # }
    ///
    /// async fn serve(incoming: Incoming) -> Result<(), ConnectError> {
    ///     let connection = incoming.accept().await?;
    ///     while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
    ///         connection.spawn(async move {
    ///             if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
    ///                 send.finish();
    ///             }
    ///         });
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn spawn<F>(self, serve: impl FnOnce(Self) -> F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (shared, worker) = (self.shared.clone(), self.worker);
        shared.spawn(worker, serve(self))
    }

    /// Sends a Retry packet, so that the client proves that it receives at its address (RFC 9000
    /// §8.1.2). The client comes back as another `Incoming` that [`is_validated`](Self::is_validated).
    /// The server keeps no state in the meantime.
    ///
    /// [`EndpointBuilder::address_validation`](crate::EndpointBuilder::address_validation) does this
    /// automatically.
    ///
    /// # Errors
    /// Returns `self` if the client would ignore the Retry (see [`may_retry`](Self::may_retry)),
    /// so that another decision can be made.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(server: hybriq::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// while let Some(incoming) = server.accept().await {
    ///     if incoming.may_retry() && !incoming.is_validated() {
    ///         let _ = incoming.retry();
    ///         continue;
    ///     }
    ///     let connection = incoming.accept().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry(mut self) -> Result<(), Box<Self>> {
        if !self.may_retry() {
            return Err(Box::new(self));
        }
        if let Some(core) = self.core.take() {
            self.shared.decide(self.worker, Command::Retry(core));
        }
        Ok(())
    }

    /// Refuses the client with CONNECTION_REFUSED.
    pub fn refuse(self) {
        drop(self);
    }

    /// Drops the ClientHello without an answer. The client sends it again for a while and then times out, without
    /// learning that there is a server.
    pub fn ignore(mut self) {
        if let Some(core) = self.core.take() {
            self.shared.decide(self.worker, Command::Ignore(core));
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            let reason = if self.shared.is_closed() {
                refusal::STOPPED
            } else {
                refusal::BY_APPLICATION
            };
            self.shared
                .decide(self.worker, Command::Refuse(core, reason));
        }
        self.shared.on_one_decided();
        self.shared.on_handle_dropped();
    }
}
