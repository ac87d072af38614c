//! [Hot restart](crate::restart) of an endpoint.

use std::{
    io,
    net::{TcpListener, ToSocketAddrs},
    path::Path,
    time::Duration,
};

use super::{Endpoint, EndpointBuilder};
use crate::errors::{EndpointError, RestartError};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::restart::{predecessor, successor};

/// Number of attempts to ask for the endpoint while its process is going away, and the time between
/// them.
const TRIES: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(100);

impl Endpoint {
    /// Waits for a successor, a newer process of the same service, and hands the endpoint over to it.
    /// The successor calls [`EndpointBuilder::take_over`] with the same path.
    ///
    /// The successor receives from then on, on the same sockets: new clients are its own. Connections
    /// stay with this process until they end, and so do clients whose handshake has begun: keep
    /// calling [`accept`](Self::accept) until it returns `None`, and [`drain`](Self::drain) then. The
    /// successor forwards their datagrams. See the chapter on [restarts](crate::guide::restart).
    ///
    /// A process that cannot succeed this one, for example because it has other keys, is refused
    /// and told the reason, and this process waits for the next. If the successor ends before this
    /// process does, this process receives the datagrams of its connections again; call this
    /// function again to wait for another successor.
    ///
    /// Linux and Android only.
    ///
    /// # Errors
    /// The path cannot be used, the endpoint cannot be handed over, or the successor ended before
    /// it was ready. Each [`RestartError`] says what to do. The endpoint continues as before.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait; the endpoint is either with this process or with the
    /// successor.
    ///
    /// # Security
    /// Whoever can connect to the path can take over the endpoint. Only the user of this process can read and write it,
    /// and processes of other users are refused.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn run(server: hybriq::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// let waiting = server.clone();
    /// tokio::spawn(async move { waiting.hand_over("/run/echo/restart").await });
    /// while let Some(incoming) = server.accept().await {
    ///     // Serve the client.
    /// }
    /// // There is a successor, or the endpoint was closed: finish with the connections.
    /// server.drain(Duration::from_secs(3600), 0, b"").await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn hand_over(&self, path: impl AsRef<Path>) -> Result<(), RestartError> {
        self.hand_over_with(path, Vec::new).await
    }

    /// [Hands the endpoint over](Self::hand_over) together with TCP listeners, at most 255, for
    /// servers that also use TCP. `listeners` is called when a process asks to be the successor, and
    /// returns handles for it ([`TcpListener::try_clone`]); the successor gets them from
    /// [`EndpointBuilder::take_over_with`]. Clients that wait to be accepted wait for either process.
    ///
    /// # Errors
    /// As for [`hand_over`](Self::hand_over).
    ///
    /// # Cancel safety
    /// As for [`hand_over`](Self::hand_over).
    pub async fn hand_over_with(
        &self,
        path: impl AsRef<Path>,
        listeners: impl Fn() -> Vec<TcpListener>,
    ) -> Result<(), RestartError> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let settings = &self.settings;
            let own = predecessor::Own {
                workers: settings.workers as u8,
                ids: &settings.ids,
                token_keys: &settings.token_keys,
                inheritance: &settings.inheritance,
            };
            let (path, listeners) = (path.as_ref(), &listeners);
            Box::pin(predecessor::hand_over(&self.shared, own, path, listeners)).await
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = (path, listeners);
            Err(RestartError::Unsupported)
        }
    }

    /// Returns true once a successor has taken the endpoint over, even if it has ended since.
    pub fn has_successor(&self) -> bool {
        self.shared.has_successor()
    }

    /// Returns the generation of this process among those that took over this endpoint one after
    /// another. The first is 0; numbers of ended processes are reused.
    pub fn generation(&self) -> u8 {
        self.settings.inheritance.generation
    }
}

impl EndpointBuilder {
    /// Takes over the endpoint of an earlier process, which waits for a successor with
    /// [`Endpoint::hand_over`] at this path.
    ///
    /// The sockets are those of the earlier process: [`also_bind`](Self::also_bind),
    /// [`socket_buffers`](Self::socket_buffers) and [`without_steering`](Self::without_steering) do
    /// not apply. Both processes must have the same [`fleet_keys`](Self::fleet_keys) or keys of
    /// tokens and resets, the same connection id generator, and the same number of
    /// [`workers`](Self::workers). Everything else may differ.
    ///
    /// Linux and Android only.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind); and [`EndpointError::Restart`] if no process waits at the path,
    /// or the endpoint cannot be taken over. The earlier process then continues as before.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is taken over, and the earlier process continues as
    /// before.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, fleet::FleetKeys};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let keys = FleetKeys::from_file("/run/secrets/fleet")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]).tickets(keys.tickets()))
    ///     .fleet_keys(&keys)
    ///     .take_over("/run/echo/restart")
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn take_over(self, path: impl AsRef<Path>) -> Result<Endpoint, EndpointError> {
        let (endpoint, _) = Box::pin(self.taken(path.as_ref())).await?;
        Ok(endpoint)
    }

    async fn taken(self, path: &Path) -> Result<(Endpoint, Vec<TcpListener>), EndpointError> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let (count, ports) = self.check()?;
            if !ports.has_ids {
                return Err(RestartError::ZeroLengthCids.into());
            }
            let setups = self.setups()?;
            let own = successor::Own {
                workers: count as u8,
                ids: &self.ids,
                token_keys: self.token_keys.as_ref(),
                options: ports.options,
            };
            let taken = Box::pin(successor::take_over(own, path)).await?;
            let endpoint = self.start(taken.sockets, setups, ports, taken.inheritance)?;
            taken.waiting.tell().await;
            Ok((endpoint, taken.listeners))
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = path;
            Err(RestartError::Unsupported.into())
        }
    }

    /// [Takes over](Self::take_over) the endpoint of the process that waits at the path, or
    /// [binds](Self::bind) the address if there is no such process. For servers that are started in
    /// the same way the first time and at each restart.
    ///
    /// # Errors
    /// As for both functions.
    ///
    /// # Cancel safety
    /// As for [`take_over`](Self::take_over).
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub async fn take_over_or_bind(
        self,
        path: impl AsRef<Path>,
        address: impl ToSocketAddrs,
    ) -> Result<Endpoint, EndpointError> {
        match Box::pin(self.clone().take_over_with(path)).await? {
            Some((endpoint, _)) => Ok(endpoint),
            None => self.bind(address),
        }
    }

    /// [Takes over](Self::take_over) the endpoint of the process that waits at the path, with the TCP
    /// listeners of [`Endpoint::hand_over_with`]. Returns `None` if there is no such process, or if
    /// this system has no hot restart. The listeners are in non-blocking mode if they were in the earlier process.
    ///
    /// # Errors
    /// As for [`take_over`](Self::take_over), except that a missing process is not an error.
    ///
    /// # Cancel safety
    /// As for [`take_over`](Self::take_over).
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub async fn take_over_with(
        self,
        path: impl AsRef<Path>,
    ) -> Result<Option<(Endpoint, Vec<TcpListener>)>, EndpointError> {
        let path = path.as_ref();
        for _ in 0..TRIES {
            match Box::pin(self.clone().taken(path)).await {
                Err(EndpointError::Restart(
                    RestartError::NoPredecessor(_) | RestartError::Unsupported,
                )) => return Ok(None),
                // Another process was faster, or the earlier one has just ended.
                Err(EndpointError::Restart(RestartError::Lost(error)))
                    if error.kind() != io::ErrorKind::TimedOut =>
                {
                    tracing::debug!(%error, "the endpoint is asked for again");
                    tokio::time::sleep(INTERVAL).await;
                }
                result => return result.map(Some),
            }
        }
        Box::pin(self.taken(path)).await.map(Some)
    }
}
