//! A client that wants to connect.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hybriq_tls::ClientHello;

use crate::{
    config::ServerConfig,
    connecting::Connecting,
    error::ConnectError,
    worker::{Command, Shared},
};

/// A client that wants to connect: a complete ClientHello, on which nothing was spent yet. No TLS
/// object exists and no public-key work was done.
///
/// Decide with [`accept`](Self::accept), [`accept_with`](Self::accept_with),
/// [`retry`](Self::retry), [`refuse`](Self::refuse) or [`ignore`](Self::ignore). Dropping it
/// refuses. It is a handle of its endpoint, which lives on until it is decided.
///
/// # Examples
/// What a client is accepted with can depend on everything it says, before any public-key work:
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
/// The ClientHello is not authenticated, and unless [`is_validated`](Self::is_validated) neither is
/// the client's address: anybody may have written it.
pub struct Incoming {
    shared: Arc<Shared>,
    worker: u8,
    /// `None` once it is decided, which consumes the handle.
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

    /// Where it came from. Anybody may have written it unless [`is_validated`](Self::is_validated).
    pub fn peer_address(&self) -> SocketAddr {
        self.core().peer_address()
    }

    /// Which of our addresses it came to, if the system tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.core().local_ip()
    }

    /// Whether the client proved that it receives at its address, by the token of a Retry or of an
    /// earlier connection (RFC 9000 §8.1).
    pub fn is_validated(&self) -> bool {
        self.core().is_validated()
    }

    /// Whether the client would follow a [`retry`](Self::retry): only if it did not follow one
    /// already, and has heard nothing of this server, such as the acknowledgement of half a
    /// ClientHello whose other half was late.
    pub fn may_retry(&self) -> bool {
        self.core().may_retry()
    }

    /// What the client asks for: server name, application protocols, groups and shares, cipher
    /// suites, signature schemes, a session ticket, 0-RTT, transport parameters.
    pub fn client_hello(&self) -> &ClientHello {
        self.core().client_hello()
    }

    /// Accepts with the endpoint's configuration.
    ///
    /// The handshake starts at once, not when the future is first polled. Dropping the future
    /// gives it up.
    pub fn accept(self) -> Connecting {
        self.start(None)
    }

    /// Accepts with a configuration of its own, which replaces the endpoint's in everything: TLS, key
    /// exchange, certificates, limits, timers, congestion control, events.
    ///
    /// Its [versions](crate::TransportConfig::versions) count for the answer; whether a client's first
    /// packets are of a version that is spoken here at all is for the endpoint's own to say.
    ///
    /// The TLS provider is built at the first use of a configuration; keep it, or clones of it,
    /// for more connections. Session tickets are those of the configuration that issued them, unless
    /// both have their [`ServerConfig::tickets`] in common.
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn accept_with(self, config: ServerConfig) -> Connecting {
        match config.setup() {
            Ok(setup) => self.start(Some(setup)),
            Err(error) => Connecting::failed(ConnectError::Tls(error)),
        }
    }

    fn start(mut self, setup: Option<hybriq_proto::endpoint::Setup>) -> Connecting {
        match self.core.take() {
            Some(core) => Connecting::start(|promise| {
                self.shared
                    .accept_incoming(self.worker, core, setup, promise);
            }),
            None => Connecting::failed(ConnectError::EndpointClosed),
        }
    }

    /// Sends the client away to prove that it receives at its address (RFC 9000 §8.1.2). It comes
    /// back as another `Incoming`, which [`is_validated`](Self::is_validated). Nothing is held for
    /// it meanwhile.
    ///
    /// To have it done without a decision for each, see
    /// [`EndpointBuilder::address_validation`](crate::EndpointBuilder::address_validation).
    ///
    /// # Errors
    /// The client would ignore it, see [`may_retry`](Self::may_retry); decide otherwise.
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

    /// Tells the client that it is not wanted (CONNECTION_REFUSED).
    pub fn refuse(self) {
        drop(self);
    }

    /// Does nothing, so that the client tries again and then times out. An answer would tell an
    /// attacker that somebody is here.
    pub fn ignore(mut self) {
        if let Some(core) = self.core.take() {
            self.shared.decide(self.worker, Command::Ignore(core));
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            self.shared.decide(self.worker, Command::Refuse(core));
        }
        self.shared.on_handle_dropped();
    }
}
