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
    proto,
    worker::{Command, Shared},
};

/// A client that wants to connect: a complete ClientHello, on which nothing was spent yet. No TLS
/// object exists and no public-key work was done.
///
/// Decide with [`accept`](Self::accept), [`accept_with`](Self::accept_with),
/// [`refuse`](Self::refuse) or [`ignore`](Self::ignore). Dropping it refuses. It is a handle of its
/// endpoint, which lives on until it is decided.
///
/// # Security
/// The ClientHello is not authenticated, and the client's address is not validated: anybody may
/// have written it.
pub struct Incoming {
    shared: Arc<Shared>,
    worker: u8,
    /// `None` once it is decided.
    core: Option<proto::endpoint::Incoming>,
    facts: Facts,
}

/// What can be read of it; a copy, so that reading cannot fail.
struct Facts {
    hello: ClientHello,
    remote: SocketAddr,
    local_ip: Option<IpAddr>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("remote_address", &self.facts.remote)
            .finish_non_exhaustive()
    }
}

impl Incoming {
    pub(crate) fn new(shared: Arc<Shared>, worker: u8, core: proto::endpoint::Incoming) -> Self {
        shared.on_handle_cloned();
        let facts = Facts {
            hello: core.client_hello().clone(),
            remote: core.remote_address(),
            local_ip: core.local_ip(),
        };
        Self {
            shared,
            worker,
            core: Some(core),
            facts,
        }
    }

    /// Where it came from. Not validated yet.
    pub fn remote_address(&self) -> SocketAddr {
        self.facts.remote
    }

    /// Which of our addresses it came to, if the system tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.facts.local_ip
    }

    /// What the client asks for: server name, ALPN, groups, shares.
    pub fn client_hello(&self) -> &ClientHello {
        &self.facts.hello
    }

    /// Accepts with the endpoint's configuration.
    ///
    /// The handshake starts at once, not when the future is first polled. Dropping the future
    /// gives it up.
    pub fn accept(self) -> Connecting {
        self.start(None)
    }

    /// Accepts with a configuration of its own, for one chosen by the server name.
    ///
    /// The TLS provider is built at the first use of a configuration; keep it, or clones of it,
    /// for more connections. The transport parameters are those of this configuration as well.
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn accept_with(self, config: ServerConfig) -> Connecting {
        match config.setup() {
            Ok(setup) => self.start(Some(setup)),
            Err(error) => Connecting::failed(ConnectError::Tls(error)),
        }
    }

    fn start(mut self, setup: Option<proto::endpoint::Setup>) -> Connecting {
        match self.core.take() {
            Some(core) => Connecting::start(|promise| {
                self.shared
                    .accept_incoming(self.worker, core, setup, promise);
            }),
            None => Connecting::failed(ConnectError::EndpointClosed),
        }
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
