//! Connections.

mod connecting;
mod inner;
mod stream;
mod waits;

use std::{
    any::Any,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use hybriq::error as theirs;

pub(crate) use self::inner::{At, Inner};
pub use self::{
    connecting::{Connecting, ZeroRttAccepted},
    stream::{Chunk, RecvStream, SendStream, Written},
    waits::{AcceptBi, AcceptUni, OpenBi, OpenUni, ReadDatagram, SendDatagram},
};
use crate::{
    ConnectionError, ConnectionStats, SendDatagramError, Side, VarInt,
    crypto::{ExportKeyingMaterialError, rustls::HandshakeData},
};

/// A connection. Clones are handles of the same one, which is closed with code 0 when all of them and all of its streams
/// are dropped.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Inner>);

/// Evaluates an expression with the hybriq connection, at whichever stage that is; `None` if it does not exist yet or
/// never will.
macro_rules! with {
    ($connection:expr, |$handle:ident| $body:expr) => {
        match $connection.inner().at() {
            $crate::connection::At::Established($handle) => Some($body),
            $crate::connection::At::Early($handle) => Some($body),
            $crate::connection::At::Nowhere(_) => None,
        }
    };
}
pub(crate) use with;

impl Connection {
    pub(crate) fn established(connection: hybriq::Connection) -> Self {
        Self(Arc::new(Inner::established(connection)))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// Opens a unidirectional stream; waits while the peer's limit does not allow another.
    pub fn open_uni(&self) -> OpenUni<'_> {
        OpenUni::new(self)
    }

    /// Opens a bidirectional stream; waits while the peer's limit does not allow another. The peer learns of the stream
    /// with its first byte.
    pub fn open_bi(&self) -> OpenBi<'_> {
        OpenBi::new(self)
    }

    /// Returns the next unidirectional stream of the peer; an error once the connection is over, however it ended.
    pub fn accept_uni(&self) -> AcceptUni<'_> {
        AcceptUni::new(self)
    }

    /// Returns the next bidirectional stream of the peer; an error once the connection is over, however it ended.
    pub fn accept_bi(&self) -> AcceptBi<'_> {
        AcceptBi::new(self)
    }

    /// Returns the next datagram of the peer; an error once the connection is over, however it ended.
    pub fn read_datagram(&self) -> ReadDatagram<'_> {
        ReadDatagram::new(self)
    }

    /// Waits until the connection is over and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        match self.0.started().await {
            Err(error) => error,
            Ok(()) => match self.0.at() {
                At::Established(connection) => connection.closed().await.into(),
                At::Early(connection) => connection.closed().await.into(),
                At::Nowhere(error) => error.unwrap_or(ConnectionError::LocallyClosed),
            },
        }
    }

    /// Returns why the connection is over; `None` while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        match self.0.at() {
            At::Established(connection) => connection.close_reason().map(Into::into),
            At::Early(connection) => connection.close_reason().map(Into::into),
            At::Nowhere(error) => error,
        }
    }

    /// Closes the connection at once with the application's code: data in flight may be lost.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.0.close(error_code.into(), reason);
    }

    /// Sends a datagram. When the queue is full, the oldest datagram is dropped.
    ///
    /// # Errors
    /// The peer accepts none, the datagram is too large, or the connection is over. Right after
    /// [`Connecting::into_0rtt`], before the endpoint has started the connection, none can be sent.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        match with!(self, |connection| connection.send_datagram(data)) {
            Some(outcome) => sent(outcome),
            None => Err(self
                .close_reason()
                .map_or(SendDatagramError::UnsupportedByPeer, Into::into)),
        }
    }

    /// Sends a datagram once there is room for it in the queue.
    pub fn send_datagram_wait(&self, data: Bytes) -> SendDatagram<'_> {
        SendDatagram::new(self, data)
    }

    /// Returns the largest datagram that can be sent now; `None` if the peer takes no datagrams.
    pub fn max_datagram_size(&self) -> Option<usize> {
        with!(self, |connection| connection.max_datagram_size()).flatten()
    }

    /// Returns which end this is.
    pub fn side(&self) -> Side {
        with!(self, |connection| connection.side().into()).unwrap_or(Side::Client)
    }

    /// Returns the peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        let address = with!(self, |connection| connection.peer_address());
        address.unwrap_or_else(|| self.0.remote())
    }

    /// Returns the local address of the connection, if it is known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        match self.0.at() {
            At::Established(connection) => Some(connection.local_address().ip()),
            At::Early(_) | At::Nowhere(_) => None,
        }
        .filter(|ip| !ip.is_unspecified())
    }

    /// Returns the smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        with!(self, |connection| connection.stats().rtt).unwrap_or_default()
    }

    /// Returns the smallest round-trip time; zero before the handshake is complete.
    pub fn min_rtt(&self) -> Duration {
        match self.0.at() {
            At::Established(connection) => connection.path_stats().min_rtt,
            At::Early(_) | At::Nowhere(_) => Duration::ZERO,
        }
    }

    /// Returns counters and measurements.
    pub fn stats(&self) -> ConnectionStats {
        match self.0.at() {
            At::Established(connection) => {
                ConnectionStats::of(&connection.stats(), Some(&connection.path_stats()))
            }
            At::Early(connection) => ConnectionStats::of(&connection.stats(), None),
            At::Nowhere(_) => ConnectionStats::default(),
        }
    }

    /// Returns what the handshake agreed on: a
    /// [`HandshakeData`], once the handshake is complete.
    pub fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let connection = self.0.complete()?;
        Some(Box::new(HandshakeData::of(connection.handshake())))
    }

    /// Returns the peer's certificates, its own first: a `Vec<CertificateDer>`. `None` if it presented none.
    pub fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let certificates = self.0.complete()?.peer_certificates();
        (!certificates.is_empty()).then(|| Box::new(certificates) as Box<dyn Any>)
    }

    /// Returns a number that is the same for all handles of this connection, and different for others that exist at the
    /// same time.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Updates the packet protection keys as soon as that is allowed.
    pub fn force_key_update(&self) {
        if let Some(connection) = self.0.complete() {
            connection.update_keys();
        }
    }

    /// Fills `output` with keying material that both ends of this connection share and nobody else knows.
    ///
    /// # Errors
    /// The handshake is not complete, the label is invalid, or too many bytes were requested.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0
            .complete()
            .and_then(|it| it.export_keying_material(label, context, output).ok())
            .ok_or(ExportKeyingMaterialError)
    }

    /// Sets how many unidirectional streams the peer may have open at once. Streams that were already allowed stay
    /// allowed.
    pub fn set_max_concurrent_uni_streams(&self, count: VarInt) {
        if let Some(connection) = self.0.complete() {
            connection.set_max_uni_streams(count.into());
        }
    }

    /// Sets how many bidirectional streams the peer may have open at once. Streams that were already allowed stay
    /// allowed.
    pub fn set_max_concurrent_bi_streams(&self, count: VarInt) {
        if let Some(connection) = self.0.complete() {
            connection.set_max_bidi_streams(count.into());
        }
    }

    /// Sets how many bytes of all streams the peer may have in flight or unread. Bytes that were already allowed stay
    /// allowed.
    pub fn set_receive_window(&self, receive_window: VarInt) {
        if let Some(connection) = self.0.complete() {
            connection.set_receive_window(receive_window.into());
        }
    }

    /// Returns the connection of hybriq once its handshake is complete, for what quinn does not have.
    pub fn hybriq(&self) -> Option<&hybriq::Connection> {
        self.0.complete()
    }
}

/// Converts the outcome of sending a datagram.
fn sent(sent: Result<(), theirs::SendDatagramError>) -> Result<(), SendDatagramError> {
    use theirs::SendDatagramError as Theirs;
    Err(match sent {
        // Datagrams of refused 0-RTT packets are lost like others.
        Ok(()) | Err(Theirs::ZeroRttRejected | Theirs::Full) => return Ok(()),
        Err(Theirs::TooLarge { .. }) => SendDatagramError::TooLarge,
        Err(Theirs::Connection(error)) => SendDatagramError::ConnectionLost(error.into()),
        Err(_) => SendDatagramError::UnsupportedByPeer,
    })
}
