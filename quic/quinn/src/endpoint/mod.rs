//! Endpoints.

mod common;
mod incoming;

use std::{
    fmt,
    future::Future,
    io,
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use self::common::{Common, Count};
pub use self::incoming::{Incoming, IncomingFuture, RetryError};
use crate::{
    ClientConfig, ConnectError, Connecting, EndpointConfig, Runtime, ServerConfig, TokioRuntime,
    VarInt,
};
use hybriq::fleet::RandomCids;

/// A UDP socket that accepts connections, starts connections, or both. Clones are handles of the same endpoint.
#[derive(Clone)]
pub struct Endpoint {
    inner: hybriq::Endpoint,
    client: Option<(ClientConfig, Option<hybriq::ClientConfig>)>,
    common: Arc<Common>,
}

/// Handshakes of an endpoint so far.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Clients accepted.
    pub accepted_handshakes: u64,
    /// Connections started.
    pub outgoing_handshakes: u64,
    /// Clients refused.
    pub refused_handshakes: u64,
    /// Clients ignored.
    pub ignored_handshakes: u64,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Where an endpoint gets its socket from.
enum Source {
    Address(SocketAddr),
    Socket(UdpSocket),
}

impl Endpoint {
    /// Creates an endpoint that starts connections from an address. `[::]:0` reaches IPv6 and IPv4.
    ///
    /// # Errors
    /// The address cannot be used, or there is no tokio runtime.
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        Self::start(
            &EndpointConfig::default(),
            None,
            Source::Address(addr),
            &TokioRuntime,
        )
    }

    /// Creates an endpoint that accepts connections on an address.
    ///
    /// # Errors
    /// The address or the configuration cannot be used, or there is no tokio runtime.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        Self::start(
            &EndpointConfig::default(),
            Some(config),
            Source::Address(addr),
            &TokioRuntime,
        )
    }

    /// Creates an endpoint on a socket that is open and bound. It becomes non-blocking.
    ///
    /// # Errors
    /// The socket or the configuration cannot be used, or there is no tokio runtime.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of quinn")]
    pub fn new(
        config: EndpointConfig,
        server_config: Option<ServerConfig>,
        socket: UdpSocket,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        Self::start(&config, server_config, Source::Socket(socket), &*runtime)
    }

    fn start(
        config: &EndpointConfig,
        server: Option<ServerConfig>,
        source: Source,
        runtime: &dyn Runtime,
    ) -> io::Result<Self> {
        let runtime = runtime.handle()?;
        let _entered = runtime.enter();
        let mut builder = hybriq::Endpoint::builder();
        builder = match config.cid_len() {
            0 if server.is_none() => builder.zero_length_cids(),
            len => builder.cid_generator(RandomCids::of_len(len)),
        };
        if let Some(key) = config.hybriq_reset_key() {
            builder = builder.reset_key(key);
        }
        if let Some(server) = server {
            builder = builder.server(server.build(&config.shared));
            if let Some(most) = server.max_incoming {
                builder = builder.accept_backlog(most);
            }
        }
        let endpoint = match source {
            Source::Address(address) => builder.bind(address)?,
            Source::Socket(socket) => builder.bind_sockets([socket])?,
        };
        Ok(Self {
            inner: endpoint,
            client: None,
            common: Arc::new(Common {
                shared: config.shared.clone(),
                runtime: runtime.clone(),
                counts: Default::default(),
            }),
        })
    }

    /// Waits for the next client that wants to connect; `None` once the endpoint is closed.
    pub fn accept(&self) -> Accept<'_> {
        Accept(Box::pin(async {
            let incoming = self.inner.accept().await?;
            Some(Incoming::new(incoming, self.common.clone()))
        }))
    }

    /// Sets the configuration of [`connect`](Self::connect).
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        let built = config.build(&self.common.shared);
        self.client = Some((config, built));
    }

    /// Connects to a server, whose certificate must be issued for `server_name`.
    ///
    /// # Errors
    /// There is no configuration, the address or the name cannot be a server's, or the endpoint is closed.
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let (config, built) = self
            .client
            .as_ref()
            .ok_or(ConnectError::NoDefaultClientConfig)?;
        self.connect_built(config, built.clone(), addr, server_name)
    }

    /// Connects to a server with another configuration.
    ///
    /// # Errors
    /// The configuration, the address or the name cannot be used, or the endpoint is closed.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of quinn")]
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let built = config.build(&self.common.shared);
        self.connect_built(&config, built, addr, server_name)
    }

    fn connect_built(
        &self,
        config: &ClientConfig,
        built: Option<hybriq::ClientConfig>,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let built = built.ok_or(ConnectError::UnsupportedVersion)?;
        let early = config.has_early_ticket(server_name);
        let mut connecting = if early {
            self.inner.connect_early_with(built, addr, server_name)
        } else {
            self.inner.connect_with(built, addr, server_name)
        };
        if let Some(error) = connecting.take_failure() {
            return Err(error.into());
        }
        self.common.add(Count::Outgoing);
        let runtime = self.common.runtime.clone();
        Ok(Connecting::new(connecting, addr, None, early, runtime))
    }

    /// Moves the endpoint, and its connections, to another socket that is open and bound.
    ///
    /// # Errors
    /// The socket cannot be used, or the endpoint is closed.
    pub fn rebind(&self, socket: UdpSocket) -> io::Result<()> {
        self.inner.rebind_sockets([socket])?;
        Ok(())
    }

    /// Replaces the configuration of connections that are accepted from now on. `None` accepts no more, which cannot be
    /// undone.
    ///
    /// A configuration that cannot be used leaves the old one in place, and so does any on an endpoint that was created
    /// without one; an error is traced.
    pub fn set_server_config(&self, server_config: Option<ServerConfig>) {
        let Some(config) = server_config else {
            self.inner.stop_accepting();
            return;
        };
        let config = config.build(&self.common.shared);
        if let Err(error) = self.inner.set_server_config(config) {
            tracing::error!("the server configuration stays as it was: {error}");
        }
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    /// Always succeeds.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.inner.local_address())
    }

    /// Returns the number of connections, closing ones included.
    pub fn open_connections(&self) -> usize {
        usize::try_from(self.inner.stats().connections).unwrap_or(usize::MAX)
    }

    /// Closes all connections at once with the application's code, and accepts no more.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.inner.close(error_code.into(), reason);
    }

    /// Waits until no connection is left, closing ones included.
    pub async fn wait_idle(&self) {
        self.inner.idle().await;
    }

    /// Returns the handshakes so far.
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            accepted_handshakes: self.common.get(Count::Accepted),
            outgoing_handshakes: self.common.get(Count::Outgoing),
            refused_handshakes: self.common.get(Count::Refused),
            ignored_handshakes: self.common.get(Count::Ignored),
        }
    }

    /// Returns the endpoint of hybriq, for what quinn does not have.
    pub fn hybriq(&self) -> &hybriq::Endpoint {
        &self.inner
    }
}

/// Future of [`Endpoint::accept`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct Accept<'a>(Pin<Box<dyn Future<Output = Option<Incoming>> + Send + Sync + 'a>>);

impl fmt::Debug for Accept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accept")
    }
}

impl Future for Accept<'_> {
    type Output = Option<Incoming>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}
