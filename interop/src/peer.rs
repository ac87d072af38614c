//! What a QUIC implementation has to offer to take part.

use std::{net::SocketAddr, sync::Arc};

use hybriq::tls::EarlyDataPolicy;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    Activity, Answer, Bulk, Certificate, Connection, Failure, HANDSHAKE_FAILURE, Handshake, Receipt,
};

/// A QUIC implementation: a new one is a file in [`crate::peers`] with this trait in it.
pub trait Peer: Send + Sync {
    /// Returns its name in the table.
    fn name(&self) -> &'static str;

    /// Returns true if it can be set up that way.
    fn supports(&self, role: Role, groups: Groups) -> bool;

    /// Returns true if its server, under [`Groups::PreferPostQuantum`], asks by HelloRetryRequest
    /// for the post-quantum share a client supports but did not send.
    fn retries_for_post_quantum(&self) -> bool {
        true
    }

    /// Returns true if its server answers a ClientHello in a single datagram that it has to refuse.
    fn answers_at_once(&self) -> bool {
        true
    }

    /// The code its server gives itself when no group is shared; the client is told
    /// [`HANDSHAKE_FAILURE`].
    fn own_refusal(&self) -> u64 {
        HANDSHAKE_FAILURE
    }

    /// Returns true if an end that requires post-quantum tells a refused key exchange by an error
    /// of its own, [`Failure::KeyExchangeRefused`].
    fn names_refusals(&self) -> bool {
        false
    }

    /// Why it cannot be held to promises about `feature`; `None` where it can.
    fn lacks(&self, role: Role, feature: Feature) -> Option<&'static str> {
        let _ = (role, feature);
        None
    }

    /// Serves an echo on a free port of the loopback interface: what a client sends on a
    /// bidirectional stream comes back on it, and so do its datagrams. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Failure::SetUp`] where the implementation refuses the configuration.
    fn serve(&self, setup: &Setup) -> Result<Server, Failure>;

    /// Makes a client. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Failure::SetUp`] where the implementation refuses the configuration.
    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure>;

    /// Opens a connection of a client that remembers nothing.
    fn connect<'a>(
        &'a self,
        setup: &'a Setup,
        server: SocketAddr,
    ) -> Answer<'a, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move { self.client(setup)?.connect(server).await })
    }
}

/// Opens connections, and remembers the session tickets of earlier ones.
pub trait Client: Send + Sync {
    /// Opens a connection.
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>>;

    /// Opens a connection and sends `bulk` on its first stream, from before the handshake is
    /// complete.
    fn connect_early(&self, server: SocketAddr, bulk: Bulk) -> Answer<'_, Result<Early, Failure>> {
        let _ = (server, bulk);
        Box::pin(async { Err(Failure::Other("it sends nothing early".into())) })
    }
}

/// A connection that began with early data.
pub struct Early {
    /// It, its handshake complete.
    pub connection: Box<dyn Connection>,
    /// Whether the client was told that the server took its early data.
    pub accepted: bool,
    /// Echo of the early data.
    pub echo: Result<Receipt, Failure>,
}

/// A feature that not every implementation has, or lets be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// A client's ticket takes the place of the server's certificate.
    Resumption,
    /// Data in 0-RTT packets.
    EarlyData,
    /// A server's Retry.
    Retry,
    /// It starts key updates when it is asked to.
    KeyUpdates,
    /// It tells how many key updates there were.
    KeyUpdateCount,
    /// RFC 9221.
    Datagrams,
    /// A client whose address changes without its doing, and a server that goes with it.
    Rebinding,
    /// A client's move to another address, and a server that goes with it.
    Migration,
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It connects.
    Client,
    /// It accepts.
    Server,
}

/// Settings of both ends of a test.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Presented by the server, trusted by the client.
    pub certificate: Certificate,
    /// The key exchange this end wants.
    pub groups: Groups,
    /// Bytes that it lets come in unread.
    pub windows: Windows,
    /// Whether it sends early data, or takes it.
    pub early_data: EarlyDataPolicy,
    /// When a server believes a client's address.
    pub validation: Validation,
}

impl Setup {
    /// Without early data and Retry, and with the windows the implementation thinks right.
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

/// When a server believes a client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// When the client shows that it got the server's first flight.
    ByHandshake,
    /// Only after a Retry.
    ByRetry,
}

/// Bytes that an end lets come in unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// The implementation's default.
    Default,
    /// [`NARROW_STREAM`] per stream and [`NARROW_CONNECTION`] on all together, where they can be
    /// set.
    Narrow,
}

/// A window that one stream fills at once.
pub const NARROW_STREAM: u32 = 256 * 1024;
/// A window that three streams fill before each has filled its own.
pub const NARROW_CONNECTION: u32 = 640 * 1024;

/// The key exchanges a test can ask an implementation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// X25519MLKEM768 first with its share, classical groups behind it.
    PreferPostQuantum,
    /// Post-quantum groups only.
    RequirePostQuantum,
    /// X25519 first, no post-quantum group.
    OnlyClassical,
    /// A client that lists X25519MLKEM768 behind X25519 and sends no share but X25519's.
    ClassicalShareFirst,
    /// secp384r1 and nothing else: nobody sends a share for it unasked.
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
    /// A server that listens on `address`, reports every handshake to the sending half of
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

    /// Returns what it does after the handshakes.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Waits for the next handshake to end here.
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
