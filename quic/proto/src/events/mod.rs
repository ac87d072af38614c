//! Events of a connection, for traces and tools.
//!
//! A [`Subscriber`] passed to [`TransportConfig::subscriber`](crate::config::TransportConfig) is
//! told about packets, losses, timers and states, in the terms of qlog
//! (draft-ietf-quic-qlog-quic-events). Without a subscriber none of this is computed.
//!
//! A [`Sampler`] ([`TransportConfig::sampler`](crate::config::TransportConfig::sampler)) chooses the
//! connections to watch, and gives each its own subscriber.
//!
//! ```
//! use std::sync::Arc;
//! use hybriq::{
//!     TransportConfig,
//!     events::{Event, Meta, Subscriber},
//! };
//!
//! struct Losses;
//!
//! impl Subscriber for Losses {
//!     fn on_event(&self, meta: &Meta, event: &Event<'_>) {
//!         if let Event::PacketLost(lost) = event {
//!             eprintln!("{:?}: packet {} was lost", meta.side, lost.number);
//!         }
//!     }
//! }
//!
//! let config = TransportConfig::new().subscriber(Arc::new(Losses));
//! ```

pub mod agreement;

mod packet;

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

pub use self::packet::{FrameInfo, Frames, FramesIter, Packet};
use crate::{
    events::agreement::Handshake,
    owners::path::Address,
    stats::PathStats,
    wire::{
        error::{By, ConnectionError},
        params::Params,
    },
};
pub use crate::{
    owners::congestion::Phase,
    wire::{
        packet::{Cid, Kind as PacketKind, PacketNumber, Space, Version},
        udp::{Ecn, EcnState},
    },
};

/// A receiver of events.
///
/// The subscriber is called in the middle of processing, by the thread that drives the connection:
/// it should take note and return, and must not call the handles of that connection, whose lock is
/// held. Calls for one connection never overlap; those for several connections that share a
/// subscriber may come from several threads at once.
pub trait Subscriber: Send + Sync {
    /// Handles an event of a connection.
    fn on_event(&self, meta: &Meta, event: &Event<'_>);
}

/// Chooses the connections whose events are of interest.
///
/// The thread that drives a connection asks the sampler once. A connection without a
/// subscriber costs nothing.
pub trait Sampler: Send + Sync {
    /// Returns the subscriber to the events of a connection that begins with the peer at this
    /// address; `None` to ignore the connection.
    fn sample(&self, meta: &Meta, peer: SocketAddr) -> Option<Arc<dyn Subscriber>>;
}

/// Connection and time of an event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Meta {
    /// Time that was passed to the connection, which may stand still during a batch.
    pub time: Instant,
    /// This end of the connection.
    pub side: Side,
    /// Destination connection id of the client's first Initial, by which both ends know the
    /// connection.
    pub original_dcid: Cid,
}

/// An event on a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection was created, on this path.
    ConnectionStarted(PathAddresses),
    /// The connection moved to another state.
    ConnectionStateUpdated(Change<ConnectionState>),
    /// The connection ended, for this reason.
    ConnectionClosed(&'a ConnectionError),
    /// The transport parameters of one end are known.
    ParametersSet(Parameters<'a>),
    /// TLS is complete, with this outcome.
    HandshakeCompleted(&'a Handshake),
    /// A packet was sealed, to be sent at once.
    PacketSent(Packet<'a>),
    /// A packet was opened; its frames are about to be processed.
    PacketReceived(Packet<'a>),
    /// A datagram, or the rest of one, was not processed.
    PacketDropped(PacketDropped),
    /// A packet has to wait for its keys.
    PacketBuffered(PacketBuffered),
    /// A packet was declared lost.
    PacketLost(PacketLost),
    /// This many packets arrived that had already been declared lost.
    SpuriousLosses(u64),
    /// The measurements of the path changed.
    MetricsUpdated(PathStats),
    /// The congestion controller moved to another phase.
    CongestionStateUpdated(Change<Phase>),
    /// The state of ECN on the path changed.
    EcnStateUpdated(Change<EcnState>),
    /// The timer of loss detection changed.
    LossTimerUpdated(LossTimer),
    /// One end requested a different frequency of acknowledgements.
    AckFrequencyUpdated(AckFrequencyUpdated),
    /// The peer confirmed the version in use: `old` is that of the first flight, `new` the
    /// negotiated one.
    VersionNegotiated(Change<Version>),
    /// The keys of 1-RTT packets were updated; the number counts the updates.
    KeyUpdated(u64),
    /// The keys of an encryption level became available.
    KeysInstalled(KeyLevel),
    /// The keys of an encryption level were discarded.
    KeysDiscarded(KeyLevel),
    /// Packets to the peer now carry another destination connection id.
    PeerCidUpdated(Change<Cid>),
    /// The connection moved to another path.
    PathUpdated(Change<PathAddresses>),
}

/// Addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathAddresses {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Our IP address, if the socket reports it.
    pub local: Option<IpAddr>,
}

impl PathAddresses {
    pub(crate) const fn new(address: Address) -> Self {
        Self {
            peer: address.peer,
            local: address.local.ip,
        }
    }
}

/// Transport parameters of one end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Parameters<'a> {
    /// End that announced the parameters.
    pub by: By,
    /// The parameters.
    pub params: &'a Params,
}

impl<'a> Parameters<'a> {
    pub(crate) const fn new(by: By, params: &'a Params) -> Self {
        Self { by, params }
    }
}

/// Encryption level. Each has keys for both directions, except 0-RTT (RFC 9001 §2.1).
///
/// Exhaustive: RFC 9001 §2.1 has four levels, and qlog names each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLevel {
    /// Keys that anybody on the path can derive.
    Initial,
    /// Keys of the client's early data.
    ZeroRtt,
    /// Keys of the handshake.
    Handshake,
    /// Keys of application data.
    OneRtt,
}

/// A change of a value.
///
/// Exhaustive: a change has two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// Value before.
    pub old: T,
    /// Value now.
    pub new: T,
}

/// State of a connection (RFC 9000 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// TLS is not complete.
    Handshaking,
    /// TLS is complete.
    Complete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    Confirmed,
    /// This end closed the connection.
    Closing,
    /// The peer closed the connection.
    Draining,
    /// The connection is gone.
    Closed,
}

/// A datagram or packet that was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketDropped {
    /// Size in bytes of the packet, or of the rest of the datagram if it could not be split.
    pub size: usize,
    /// Reason.
    pub trigger: DropTrigger,
}

impl PacketDropped {
    pub(crate) const fn new(size: usize, trigger: DropTrigger) -> Self {
        Self { size, trigger }
    }
}

/// A packet that waits for its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketBuffered {
    /// Type of the packet.
    pub kind: PacketKind,
    /// Bytes of the packet.
    pub size: usize,
}

impl PacketBuffered {
    pub(crate) const fn new(kind: PacketKind, size: usize) -> Self {
        Self { kind, size }
    }
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropTrigger {
    /// The packet is malformed, or the state of the connection does not allow it.
    Invalid,
    /// The packet has a version that we do not support, or a kind that no longer changes anything.
    Unsupported,
    /// The connection id does not belong to this connection, or the packet came from another
    /// address.
    ConnectionUnknown,
    /// The keys for the packet are missing, and no room is left to keep it.
    KeyUnavailable,
    /// The packet is not authentic.
    DecryptionFailure,
    /// The packet was received before.
    Duplicate,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketLost {
    /// Packet-number space.
    pub space: Space,
    /// Packet number.
    pub number: PacketNumber,
    /// Bytes of the packet.
    pub size: u16,
    /// Reason.
    pub trigger: LossTrigger,
}

impl PacketLost {
    pub(crate) const fn new(
        space: Space,
        number: PacketNumber,
        size: u16,
        trigger: LossTrigger,
    ) -> Self {
        Self {
            space,
            number,
            size,
            trigger,
        }
    }
}

/// Reason why a packet counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossTrigger {
    /// Too many packets sent later were acknowledged (RFC 9002 §6.1.1).
    ReorderingThreshold,
    /// A packet that was sent long enough after it was acknowledged (RFC 9002 §6.1.2).
    TimeThreshold,
    /// The packet was abandoned because the peer asked to start over.
    Abandoned,
}

/// Change of the timer of loss detection (RFC 9002 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossTimer {
    /// The timer was set.
    Set {
        /// Purpose of the timer.
        kind: TimerKind,
        /// Time until it goes off.
        after: Duration,
    },
    /// The timer went off.
    Expired(TimerKind),
    /// The timer was cancelled.
    Cancelled,
}

/// Purpose of the timer of loss detection.
///
/// Exhaustive: RFC 9002 §6 has two timers, and qlog names each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// Detects packets that are lost by then (RFC 9002 §6.1.2).
    Loss,
    /// Sends a probe (RFC 9002 §6.2).
    Probe,
}

/// A request for different acknowledgements (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFrequencyUpdated {
    /// End that requests them.
    pub by: By,
    /// Number of ack-eliciting packets that may arrive without an acknowledgement.
    pub threshold: u64,
    /// Longest time that the first of them may wait.
    pub max_delay: Duration,
    /// Number of packets out of order at which an acknowledgement is sent at once.
    pub reordering: u64,
}

impl AckFrequencyUpdated {
    pub(crate) const fn new(by: By, threshold: u64, max_delay: Duration, reordering: u64) -> Self {
        Self {
            by,
            threshold,
            max_delay,
            reordering,
        }
    }
}

/// Subscriber in a configuration.
#[derive(Clone)]
pub(crate) struct Subscription(pub(crate) Arc<dyn Subscriber>);

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}

/// Sampler in a configuration.
#[derive(Clone)]
pub(crate) struct Sampling(pub(crate) Arc<dyn Sampler>);

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sampling")
    }
}

impl Meta {
    pub(crate) const fn new(time: Instant, side: Side, original_dcid: Cid) -> Self {
        Self {
            time,
            side,
            original_dcid,
        }
    }
}
