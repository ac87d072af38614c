//! Servers.

mod builder;
mod clock;
mod connections;
mod fields;
mod handle;
mod http3;
mod state;
mod tcp;

use std::{
    convert::Infallible,
    future::pending,
    net::{SocketAddr, ToSocketAddrs},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use http::{Request, Response};
use hybriq::{ServerConfig, error::SystemError};
use tokio::net::TcpListener;
use tower_service::Service;

use self::state::{Phase, Shared};
pub(crate) use crate::services::{App, BoxError};
use crate::{
    Body,
    services::{Makes, Tower},
};
pub use builder::{AltSvc, BindError, ServerBuilder, WorstCaseMemory};
pub use connections::{Misdirected, ProxyNetworkError, ProxyProtocol};
pub use handle::Handle;

/// A server for HTTP/1.1, HTTP/2 and HTTP/3 on one port number.
///
/// # Examples
/// See the [crate](crate)'s documentation.
pub struct Server {
    shared: Arc<Shared>,
    tcp: Vec<Arc<TcpListener>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("local_address", &self.local_address())
            .field("tcp", &self.tcp.len())
            .finish_non_exhaustive()
    }
}

/// Reason why a server stopped although nobody shut it down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A UDP socket failed permanently.
    #[error("HTTP/3 has ended, because its socket failed: {0}; bind another server")]
    Quic(SystemError),
}

impl Server {
    /// Creates a server that listens on an address over TCP and UDP. Port 0 picks a port that is free for both.
    ///
    /// The application protocols of the configuration are replaced by those of HTTP. [`ServerConfig::tls`] chooses the
    /// TLS library of QUIC; over TCP it is always rustls.
    ///
    /// # Errors
    /// The configuration or the address cannot be used, or there is no tokio runtime. Each
    /// [`BindError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, BindError> {
        Self::builder().bind(address, config)
    }

    /// Returns a builder for other settings.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.endpoint.local_address()
    }

    /// Returns a handle that can shut the server down and change its configuration.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }

    /// Serves requests with a service until the server is [shut down](Handle::shutdown), or until a
    /// [successor](Handle::hand_over) has taken over and the clients have left.
    ///
    /// Each connection gets a clone of the service. Requests over QUIC run next to the worker of their connection
    /// ([`hybriq::Connection::spawn`]): the future of each is polled first on the task of its connection, and gets its
    /// own task if it is not ready. If the client gives up a request, its future is dropped.
    ///
    /// A future must not block its thread until something happens in another request of the same connection, which may
    /// not have begun: it would wait forever. Await instead, or block in [`tokio::task::spawn_blocking`].
    ///
    /// # Errors
    /// The socket of HTTP/3 has failed. Requests over TCP are served nevertheless, so the error is returned after
    /// the shutdown unless the server is [without TCP](ServerBuilder::without_tcp).
    ///
    /// # Cancel safety
    /// Dropping the future stops accepting connections; existing connections continue.
    pub async fn serve<S, B>(self, service: S) -> Result<(), ServeError>
    where
        S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + 'static,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        self.run(Tower::new(service)).await
    }

    /// Serves requests as [`serve`](Self::serve) does until `signal` completes, then [shuts the server
    /// down](Handle::shutdown): the requests in progress have at most `grace` to be answered.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    ///
    /// # Cancel safety
    /// As [`serve`](Self::serve).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(server: hybriq_http::Server) -> Result<(), hybriq_http::ServeError> {
    /// use std::time::Duration;
    ///
    /// let app = axum::Router::new().route("/", axum::routing::get(async || "hello"));
    /// let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    /// server.serve_until(app, interrupted, Duration::from_secs(30)).await
    /// # }
    /// ```
    pub async fn serve_until<S, B>(
        self,
        service: S,
        signal: impl Future<Output = ()>,
        grace: Duration,
    ) -> Result<(), ServeError>
    where
        S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + 'static,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let handle = self.handle();
        let mut serving = pin!(self.serve(service));
        tokio::select! {
            served = &mut serving => return served,
            () = signal => {}
        }
        tokio::join!(serving, handle.shutdown(grace)).0
    }

    /// Serves requests with services that are made for the client's address, such as those of axum's
    /// `into_make_service_with_connect_info::<SocketAddr>()`: handlers then get `ConnectInfo<SocketAddr>` over all
    /// versions of HTTP.
    ///
    /// The service is made again for each request, because a client over QUIC may move to another address (RFC 9000
    /// §9). Middleware outside of axum finds the address in [`Peer`](crate::Peer), which every request has.
    ///
    /// # Errors
    /// As [`serve`](Self::serve). If no service can be made, the request fails as if its service had.
    ///
    /// # Cancel safety
    /// As [`serve`](Self::serve).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(server: hybriq_http::Server) -> Result<(), hybriq_http::ServeError> {
    /// use std::net::SocketAddr;
    ///
    /// use axum::{Router, extract::ConnectInfo, routing::get};
    ///
    /// let page = async |ConnectInfo(client): ConnectInfo<SocketAddr>| client.to_string();
    /// let app = Router::new().route("/", get(page));
    /// server.serve_make(app.into_make_service_with_connect_info::<SocketAddr>()).await
    /// # }
    /// ```
    pub async fn serve_make<M, S, B>(self, make: M) -> Result<(), ServeError>
    where
        M: Service<SocketAddr, Response = S, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + 'static,
        S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Send
            + 'static,
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        self.run(Makes::new(make)).await
    }

    async fn run(self, app: impl App) -> Result<(), ServeError> {
        // Dropped after the listeners.
        let listening = self.shared.listening.subscribe();
        let Self { shared, tcp } = self;
        shared.watch.begin(shared.features.keep_alive);
        let over_tcp = join_all(
            tcp.iter()
                .map(|listener| tcp::accept(&shared, listener, &app)),
        );
        let over_quic = async {
            http3::accept(&shared, &app).await;
            if shared.endpoint.has_successor() && shared.begin(Phase::Leaving) {
                shared.watch.ask_to_leave();
            }
            let failure = shared.endpoint.failure();
            if let Some(error) = &failure {
                tracing::error!(%error, "HTTP/3 has ended, because its socket failed");
            }
            failure
        };
        let (_, failure) = tokio::join!(over_tcp, over_quic);
        // A further successor needs the listeners if the first one ends early.
        let closed = async {
            shared.phase(Phase::Draining).await;
            drop((tcp, listening));
            pending::<Infallible>().await
        };
        tokio::select! {
            () = shared.ended() => {}
            never = closed => match never {},
        }
        outcome(failure)
    }
}

/// Returns what a server ends with.
fn outcome(failure: Option<SystemError>) -> Result<(), ServeError> {
    failure.map_or(Ok(()), |error| Err(ServeError::Quic(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_socket_is_told_in_one_line_with_advice() {
        assert!(outcome(None).is_ok());
        let cause = SystemError::from(&std::io::Error::from_raw_os_error(5));
        let error = outcome(Some(cause)).map_err(|error| error.to_string());
        let expected =
            format!("HTTP/3 has ended, because its socket failed: {cause}; bind another server");
        assert_eq!(error, Err(expected));
    }
}
