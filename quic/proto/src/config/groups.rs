//! The values of a [`TransportConfig`](super::TransportConfig), grouped by owner.

use std::{
    net::{SocketAddrV4, SocketAddrV6},
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use super::PathMemory;
use crate::{
    owners::{
        congestion::{self, Congestion},
        recovery::{self, Pacing},
    },
    wire::{
        packet::{
            Version, Versions,
            header_bits::{Grease, SpinBit},
        },
        udp::EcnState,
    },
};

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) handshake_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
}

/// Requests to a peer to acknowledge more or less often, if it supports them
/// (draft-ietf-quic-ack-frequency). Requests of the peer are always followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckFrequency {
    /// Requests a few acknowledgements per round trip, and fewer the more data is in flight, which
    /// saves both ends work.
    #[default]
    Adaptive,
    /// Requests nothing: most peers acknowledge every second packet (RFC 9000 §13.2.2).
    PeerDefault,
}

/// Acknowledgements: those that we send, and those that we ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acks {
    pub(crate) max_ack_delay: Duration,
    pub(crate) ack_frequency: AckFrequency,
}

/// Amount of data in flight on a path, and its pacing.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) initial_rtt: Duration,
    pub(crate) congestion: Congestion,
    pub(crate) careful_resume: Option<Arc<dyn PathMemory>>,
    pub(crate) ecn: EcnState,
    pub(crate) pacing: Pacing,
}

impl Flight {
    /// Returns the initial state of a path. The controller draws random numbers from the seed.
    pub(crate) fn start(
        &self,
        now: Instant,
        side: Side,
        datagram_size: u16,
        seed: u64,
    ) -> recovery::Config {
        recovery::Config {
            side,
            initial_rtt: self.initial_rtt,
            datagram_size,
            controller: self.congestion.start(&congestion::Start {
                now,
                datagram_size,
                initial_rtt: self.initial_rtt,
                seed,
            }),
            skip_seed: None,
            ecn: self.ecn,
            pacing: self.pacing,
        }
    }
}

/// Sizes of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mtu {
    pub(crate) datagram_size: u16,
    /// Largest size to search for; `None` disables the search.
    pub(crate) max_datagram_size: Option<u16>,
}

/// Whether a peer may move to another address (RFC 9000 §18.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerMigration {
    Allowed,
    Disabled,
}

/// Addresses beyond the one that a connection begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) of_peer: PeerMigration,
    pub(crate) preferred_v4: Option<SocketAddrV4>,
    pub(crate) preferred_v6: Option<SocketAddrV6>,
}

/// Bits of packet headers that no field uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeBits {
    pub(crate) spin_bit: SpinBit,
    pub(crate) grease: Grease,
}

/// Versions of QUIC to support.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoken {
    pub(crate) versions: Versions,
    /// Version of a client's first flight.
    pub(crate) first_version: Option<Version>,
}
