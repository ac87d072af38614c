//! The values of a [`TransportConfig`](super::TransportConfig), grouped by owner.

use std::{
    fmt,
    net::{SocketAddrV4, SocketAddrV6},
    sync::Arc,
    time::{Duration, Instant},
};

use hybriq_tls::{EarlyDataPolicy, Side};

use crate::{
    owners::{
        congestion::{self, Congestion},
        recovery::{self, Pacing},
    },
    remembered::{
        known_path::{KnownPath, PathKey},
        server::Servers,
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

/// Policy on when a server sends a Retry packet to make clients prove their address (RFC 9000
/// §8.1.2).
///
/// A Retry costs a client one round trip. An attacker with a forged address cannot continue.
///
/// A client that returns with a token from an earlier connection needs no Retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressValidation {
    /// Validates addresses while handshakes keep the server busy, or while many are unfinished. The
    /// default.
    ///
    /// Retry starts once handshakes take three quarters of a worker's time, or 2,048 handshakes are
    /// unfinished. It lasts at least five seconds, longer each time the load returns immediately,
    /// and ends when handshakes take less than a third of the time and fewer than 512 clients have
    /// unfinished ones.
    #[default]
    Adaptive,
    /// Always sends a Retry. No state is kept for a client before it has proved its address.
    Always,
    /// Never sends a Retry automatically; the application may call `Incoming::retry`.
    Never,
}

/// Use of observed paths, from which later connections start (Careful Resume, RFC 9959), and a server's
/// memory of them. A client's memory is that of its servers.
///
/// `hybriq::memory::CarefulResume` is an implementation in memory. The methods are called while connections
/// are driven: they must not block.
pub trait PathMemory: fmt::Debug + Send + Sync {
    /// Returns the largest window in bytes that a connection may jump to, whatever the path
    /// carried.
    fn max_jump(&self) -> u64;

    /// Returns the age from which the state of a path is not used.
    fn lifetime(&self) -> Duration;

    /// Removes the state of a path and returns it, so that no other connection uses it at the same
    /// time. Without a key, as clients call it, this is what the application supplied for the next
    /// connection.
    ///
    /// `is_here` returns true for a path that may be the current one; other paths are not returned.
    fn take(
        &self,
        now: Instant,
        key: Option<&PathKey>,
        is_here: &dyn Fn(&KnownPath) -> bool,
    ) -> Option<KnownPath>;

    /// Stores the state of a path to a client.
    fn put(&self, now: Instant, key: PathKey, path: KnownPath);
}

/// State of earlier connections for a client. `ClientConfig` fills it in.
#[derive(Clone, Debug)]
pub(crate) struct ClientMemory {
    /// Whether to offer 0-RTT data.
    pub(crate) early_data: EarlyDataPolicy,
    pub(crate) servers: Option<Arc<Servers>>,
}

impl ClientMemory {
    pub(super) const NONE: Self = Self {
        early_data: EarlyDataPolicy::Off,
        servers: None,
    };
}

/// What a server tells its clients in addition to TLS. `ServerConfig` makes it.
///
/// Exhaustive: a connection must heed every field.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct ServerTerms {
    /// Time for which the server commits itself to post-quantum certificates.
    pub commitment: Option<Duration>,
    /// Application settings that clients rely on when they send 0-RTT data.
    pub early_settings: Vec<u8>,
}

impl ServerTerms {
    /// No commitment, and no settings.
    pub const NONE: Self = Self {
        commitment: None,
        early_settings: Vec::new(),
    };
}
