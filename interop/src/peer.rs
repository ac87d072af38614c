//! Interface of a QUIC implementation in these tests.

use std::{net::SocketAddr, sync::Arc};

use hybriq::tls::EarlyDataPolicy;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    Activity, Answer, Bulk, Certificate, Connection, Failure, HANDSHAKE_FAILURE, Handshake, Receipt,
};

/// A QUIC implementation. A new one is a file in [`crate::peers`] that implements this trait.
pub trait Peer: Send + Sync {
    /// Returns its name in the table.
    fn name(&self) -> &'static str;

    /// Returns true if it supports that role with these groups.
    fn supports(&self, role: Role, groups: Groups) -> bool;

    /// Returns true if its server, under [`Groups::PreferPostQuantum`], sends a HelloRetryRequest
    /// for a post-quantum share that a client supports but did not send.
    fn retries_for_post_quantum(&self) -> bool {
        true
    }

    /// Returns true if its server answers a single-datagram ClientHello that it must refuse.
    fn answers_at_once(&self) -> bool {
        true
    }

    /// Returns the code that its server reports locally when no group is shared; the client gets
    /// [`HANDSHAKE_FAILURE`].
    fn own_refusal(&self) -> u64 {
        HANDSHAKE_FAILURE
    }

    /// Returns true if an end that requires post-quantum reports a refused key exchange as
    /// [`Failure::KeyExchangeRefused`].
    fn names_refusals(&self) -> bool {
        false
    }

    /// Returns the reason why it does not support `feature`; `None` if it does.
    fn lacks(&self, role: Role, feature: Feature) -> Option<&'static str> {
        let _ = (role, feature);
        None
    }

    /// Starts an echo server on a free port of the loopback interface, for bidirectional streams
    /// and datagrams. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Failure::SetUp`] where the implementation refuses the configuration.
    fn serve(&self, setup: &Setup) -> Result<Server, Failure>;

    /// Makes a client. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Failure::SetUp`] where the implementation refuses the configuration.
    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure>;

    /// Opens a connection with a client that remembers nothing.
    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move { self.client(setup)?.connect(server).await })
    }
}

/// Client that opens connections, and remembers the session tickets of earlier ones.
pub trait Client: Send + Sync {
    /// Opens a connection.
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>>;

    /// Opens a connection and sends `bulk` on its first stream, starting before the handshake is
    /// complete.
    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        let _ = (server, bulk);
        Box::pin(async { Err(Failure::Other("it sends nothing early".into())) })
    }
}

/// A connection that began with early data.
pub struct Early {
    /// The connection, with a complete handshake.
    pub connection: Box<dyn Connection>,
    /// True if the client was told that the server accepted its early data.
    pub accepted: bool,
    /// Echo of the early data.
    pub echo: Result<Receipt, Failure>,
}

impl std::fmt::Debug for Early {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Early").finish_non_exhaustive()
    }
}

/// A feature that not every implementation has or exposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Tickets that replace the server's certificate.
    Resumption,
    /// Data in 0-RTT packets.
    EarlyData,
    /// Retry by the server.
    Retry,
    /// Key updates on request.
    KeyUpdates,
    /// Report of the number of key updates.
    KeyUpdateCount,
    /// Datagrams (RFC 9221).
    Datagrams,
    /// A client whose address changes without its knowledge, and a server that follows.
    Rebinding,
    /// A client that moves to another address, and a server that follows.
    Migration,
}

/// Role in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
}

/// Settings of both ends of a test.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Certificate that the server presents and the client trusts.
    pub certificate: Certificate,
    /// Key-exchange groups of this end.
    pub groups: Groups,
    /// Receive windows.
    pub windows: Windows,
    /// Policy for early data: a client sends it, a server accepts it.
    pub early_data: EarlyDataPolicy,
    /// Condition for a server to trust a client's address.
    pub validation: Validation,
}

impl Setup {
    /// Makes a setup without early data and Retry, and with the implementation's default windows.
    pub fn new(certificate: Certificate, groups: Groups) -> Self {
        Self {
            certificate,
            groups,
            windows: Windows::Default,
            early_data: EarlyDataPolicy::Off,
            validation: Validation::ByHandshake,
        }
    }
}

/// Condition for a server to trust a client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The client shows that it got the server's first flight.
    ByHandshake,
    /// The client returns the token of a Retry.
    ByRetry,
}

/// Receive windows of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// The implementation's default.
    Default,
    /// [`NARROW_STREAM`] per stream and [`NARROW_CONNECTION`] for all together, if they can be set.
    Narrow,
}

/// Window that one stream fills at once.
pub const NARROW_STREAM: u32 = 256 * 1024;
/// Window that three streams fill before each has filled its own.
pub const NARROW_CONNECTION: u32 = 640 * 1024;

/// Key exchanges that a test can ask an implementation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// X25519MLKEM768 first, with its share, then classical groups.
    PreferPostQuantum,
    /// Post-quantum groups only.
    RequirePostQuantum,
    /// X25519 first, no post-quantum group.
    OnlyClassical,
    /// A client that lists X25519MLKEM768 after X25519 and sends only X25519's share.
    ClassicalShareFirst,
    /// Only secp384r1, for which nobody sends a share unasked.
    OnlySecp384r1,
}

/// A running echo server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    outcomes: mpsc::UnboundedReceiver<Result<Handshake, Failure>>,
    activity: Arc<Activity>,
    task: JoinHandle<()>,
}

impl Server {
    /// Makes a server that listens on `address`, reports every handshake to the sending half of
    /// `outcomes` and everything else to `activity`, and lives as long as `task`.
    pub fn new(
        address: SocketAddr,
        outcomes: mpsc::UnboundedReceiver<Result<Handshake, Failure>>,
        activity: Arc<Activity>,
        task: JoinHandle<()>,
    ) -> Self {
        Self {
            address,
            outcomes,
            activity,
            task,
        }
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its activity after the handshakes.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Waits for the next handshake to end on this server.
    ///
    /// # Errors
    /// The handshake's failure, or that the server is gone.
    pub async fn handshake(&mut self) -> Result<Handshake, Failure> {
        self.outcomes
            .recv()
            .await
            .unwrap_or_else(|| Err(Failure::Other("the server stopped".into())))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
