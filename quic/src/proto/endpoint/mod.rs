//! One worker's share of an endpoint, without I/O: routes datagrams to connections by their ids,
//! gathers partial ClientHellos, answers what needs no connection.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use hybriq_tls::{ClientHello, ConfigError, Provider};

use super::{connection::Connection, random::Random};
use crate::config::TransportConfig;

/// Names a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// The ECN codepoint of an IP packet (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where it came from.
    pub remote: SocketAddr,
    /// Which of our addresses it came to, if the socket tells.
    pub local_ip: Option<IpAddr>,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses; `None` lets the system choose.
    pub local_ip: Option<IpAddr>,
    /// The ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub size: usize,
    /// When several datagrams follow one another: bytes of each but the last, which may be
    /// shorter (a GSO train).
    pub segment_size: Option<usize>,
}

/// What connections of one kind share: a TLS provider and the transport's configuration.
#[derive(Clone)]
pub struct Setup {
    /// Makes the TLS sessions.
    pub provider: Arc<dyn Provider>,
    /// Everything else.
    pub transport: Arc<TransportConfig>,
}

/// What became of a datagram.
#[derive(Debug)]
pub enum Routed {
    /// It belongs to this connection: give it to [`Connection::on_datagram`].
    Connection(Slot),
    /// It completed a ClientHello: somebody wants to connect.
    Incoming(Incoming),
    /// It belongs to the worker with this index.
    Foreign(u8),
    /// Nothing is left to do; there may be something to transmit.
    Consumed,
    /// It was useless, and was counted.
    Dropped,
}

/// A complete ClientHello of somebody who wants to connect. Nothing was spent on it yet.
///
/// Pass it to [`Endpoint::accept`], [`Endpoint::refuse`] or [`Endpoint::ignore`].
#[derive(Debug)]
pub struct Incoming {}

impl Incoming {
    /// What the ClientHello says.
    pub fn client_hello(&self) -> &ClientHello {
        todo!()
    }

    /// Where it came from. Not validated yet.
    pub fn remote_address(&self) -> SocketAddr {
        todo!()
    }

    /// Which of our addresses it came to, if the socket tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        todo!()
    }
}

/// Counters of one worker. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that belonged to no connection and were useless.
    pub datagrams_dropped: u64,
    /// Partial ClientHellos held now.
    pub partial_hellos: u64,
    /// Connections now.
    pub connections: u64,
    /// ClientHellos refused before any public-key work because they offered no post-quantum group.
    pub key_exchange_refused: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
}

/// One worker's share of an endpoint.
pub struct Endpoint {}

impl Endpoint {
    /// Starts empty. `worker` is written into the connection ids we issue. Without `server` every
    /// ClientHello is dropped.
    pub fn new(worker: u8, random: Box<dyn Random>, server: Option<Setup>) -> Self {
        todo!()
    }

    /// Routes one datagram.
    pub fn on_datagram(&mut self, now: Instant, arrival: &Arrival, datagram: &mut [u8]) -> Routed {
        todo!()
    }

    /// Starts a connection.
    pub fn connect(
        &mut self,
        now: Instant,
        setup: &Setup,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<(Slot, Connection), ConfigError> {
        todo!()
    }

    /// Accepts, with a setup of its own or else the endpoint's.
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        setup: Option<&Setup>,
    ) -> Result<(Slot, Connection), ConfigError> {
        todo!()
    }

    /// Refuses with CONNECTION_REFUSED; the answer comes out of [`Endpoint::poll_transmit`].
    pub fn refuse(&mut self, now: Instant, incoming: Incoming) {
        todo!()
    }

    /// Forgets it without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        todo!()
    }

    /// Does what a connection asks of its endpoint: issue and retire connection ids, forget a
    /// drained connection. To be called whenever the connection was touched. When it returns
    /// `false` the connection is drained, its slot is free and it may be dropped.
    pub fn service(&mut self, slot: Slot, connection: &mut Connection) -> bool {
        todo!()
    }

    /// A datagram that belongs to no connection, if one is due.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        todo!()
    }

    /// When [`Endpoint::on_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// Handles what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> EndpointStats {
        todo!()
    }
}
