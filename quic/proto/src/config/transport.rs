//! The configuration of a connection, and its setters.

use std::{
    net::{SocketAddrV4, SocketAddrV6},
    sync::Arc,
    time::Duration,
};

use hybriq_tls::EarlyDataPolicy;

use super::{
    ApplicationCodes, PathMemory,
    groups::{
        AckFrequency, Acks, ClientMemory, Flight, FreeBits, Migration, Mtu, PeerMigration,
        ServerTerms, Spoken, Timeouts,
    },
};
use crate::{
    events::{Sampler, Sampling, Subscriber, Subscription},
    owners::{
        congestion::Congestion, datagrams::DatagramConfig, recovery::Pacing, streams::Limits,
    },
    remembered::server::{Server, Servers},
    wire::{
        packet::{
            Version, Versions,
            header_bits::{Grease, SpinBit},
        },
        udp::EcnState,
    },
};

const MIB: u64 = 1024 * 1024;

/// Longest delay that transport parameters can encode (RFC 9000 §18.2).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// Largest UDP payload in bytes that fits an IPv6 packet.
const LARGEST_DATAGRAM: u16 = 65_527;

/// Upper limit for timeouts: longer ones are as good as infinite, and adding them to an instant
/// would overflow.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

const fn at_most(wait: Duration, longest: Duration) -> Duration {
    if wait.as_nanos() > longest.as_nanos() {
        longest
    } else {
        wait
    }
}

const fn datagram(bytes: u16) -> u16 {
    match bytes {
        ..1200 => 1200,
        LARGEST_DATAGRAM.. => LARGEST_DATAGRAM,
        _ => bytes,
    }
}

/// Configuration of a connection, apart from TLS. Start from [`TransportConfig::new`].
///
/// Values beyond the range of QUIC are lowered to the largest possible one.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub(crate) streams: Limits,
    pub(crate) datagrams: DatagramConfig,
    pub(crate) timeouts: Timeouts,
    pub(crate) acks: Acks,
    pub(crate) flight: Flight,
    pub(crate) mtu: Mtu,
    pub(crate) migration: Migration,
    pub(crate) free_bits: FreeBits,
    pub(crate) spoken: Spoken,
    pub(crate) application_codes: ApplicationCodes,
    pub(crate) key_update_after: u64,
    pub(crate) subscriber: Option<Subscription>,
    pub(crate) sampler: Option<Sampling>,
    pub(crate) memory: ClientMemory,
    pub(crate) server_terms: ServerTerms,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl TransportConfig {
    /// Creates the defaults for servers and clients on the Internet.
    pub const fn new() -> Self {
        Self {
            streams: Limits {
                initial_receive_window: 3 * MIB / 2,
                receive_window: 24 * MIB,
                initial_stream_receive_window: MIB,
                stream_receive_window: 16 * MIB,
                send_buffer: MIB,
                max_send_buffer: 16 * MIB,
                max_bidi: 100,
                max_uni: 100,
            },
            datagrams: DatagramConfig::new(),
            timeouts: Timeouts {
                idle_timeout: Some(Duration::from_secs(30)),
                handshake_timeout: Duration::from_secs(10),
                keep_alive: None,
            },
            acks: Acks {
                max_ack_delay: Duration::from_millis(25),
                ack_frequency: AckFrequency::Adaptive,
            },
            flight: Flight {
                initial_rtt: Duration::from_millis(333),
                congestion: Congestion::Cubic,
                careful_resume: None,
                ecn: EcnState::Testing,
                pacing: Pacing::On,
            },
            mtu: Mtu {
                datagram_size: 1200,
                max_datagram_size: Some(1452),
            },
            migration: Migration {
                of_peer: PeerMigration::Allowed,
                preferred_v4: None,
                preferred_v6: None,
            },
            free_bits: FreeBits {
                spin_bit: SpinBit::Off,
                grease: Grease::On,
            },
            spoken: Spoken {
                versions: Versions::DEFAULT,
                first_version: None,
            },
            application_codes: ApplicationCodes::new(),
            key_update_after: u64::MAX,
            subscriber: None,
            sampler: None,
            memory: ClientMemory::NONE,
            server_terms: ServerTerms::NONE,
        }
    }

    /// Lets a client offer 0-RTT data; `ClientConfig` sets it.
    #[doc(hidden)]
    #[must_use]
    pub const fn early_data(mut self, early_data: EarlyDataPolicy) -> Self {
        self.memory.early_data = early_data;
        self
    }

    /// Sets a client's memory of servers; `ClientConfig` has one.
    #[doc(hidden)]
    #[must_use]
    pub fn remember_servers(mut self, servers: Servers) -> Self {
        self.memory.servers = Some(Arc::new(servers));
        self
    }

    /// Sets what a server tells its clients in addition to TLS; `ServerConfig` has it.
    #[doc(hidden)]
    #[must_use]
    pub fn server_terms(mut self, terms: ServerTerms) -> Self {
        self.server_terms = terms;
        self
    }

    /// Returns a server in a client's memory.
    pub(crate) fn server(&self, server_name: &str) -> Option<Server> {
        let servers = self.memory.servers.as_ref()?;
        Some(Server::new(servers, server_name))
    }

    /// Returns true if this is one of the supported versions.
    pub(crate) fn speaks(&self, version: Version) -> bool {
        self.spoken.versions.contains(version)
    }

    /// Sets the longest silence of the peer before the connection is given up; the smaller of both
    /// ends' values applies (RFC 9000 §10.1). `None` disables it, and so does zero, as on the wire.
    /// Default 30 s.
    #[must_use]
    pub const fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeouts.idle_timeout = match timeout {
            Some(timeout) if !timeout.is_zero() => Some(at_most(timeout, LONGEST_WAIT)),
            _ => None,
        };
        self
    }

    /// Keeps the connection from going idle: after this time without a packet, the peer is sent a
    /// PING (RFC 9000 §10.1.2). Default: none: an idle connection ends, and NATs may forget it
    /// earlier. In any case, a client that waits for an answer on a stream that it opened sends a
    /// PING after 1, 2, 4, 8 and more seconds of silence, so that the server can reach it again
    /// after a NAT has dropped its binding. A client that waits only on streams of the server sends
    /// the first of these PINGs.
    ///
    /// Intervals longer than half the idle timeout are lowered to that; zero disables it. NATs and
    /// firewalls forget UDP flows after 30 s or less, so 15 to 25 s keeps those open. It is enough
    /// if one end does this.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use hybriq::TransportConfig;
    ///
    /// let config = TransportConfig::new().keep_alive(Duration::from_secs(20));
    /// ```
    #[must_use]
    pub const fn keep_alive(mut self, interval: Duration) -> Self {
        self.timeouts.keep_alive = if interval.is_zero() {
            None
        } else {
            Some(at_most(interval, LONGEST_WAIT))
        };
        self
    }

    /// Sets the codes that dropped handles of streams and connections send, and the code of a normal
    /// end. Default 0 for all.
    #[must_use]
    pub const fn application_codes(mut self, codes: ApplicationCodes) -> Self {
        self.application_codes = codes;
        self
    }

    /// Lets observers on the path measure round trips by the spin bit, on fifteen of sixteen paths
    /// (RFC 9000 §17.4). By default the bit is random.
    #[must_use]
    pub const fn spin_bit(mut self) -> Self {
        self.free_bits.spin_bit = SpinBit::On;
        self
    }

    /// Sets the QUIC bit in every packet and drops packets without it (RFC 9287). For sockets that
    /// QUIC shares with other protocols. By default, peers that accept it get packets without the
    /// bit at random, so that middleboxes do not come to rely on it.
    #[must_use]
    pub const fn without_grease(mut self) -> Self {
        self.free_bits.grease = Grease::Off;
        self
    }

    /// Sets the longest duration of a handshake. Default 10 s.
    #[must_use]
    pub const fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.handshake_timeout = at_most(timeout, LONGEST_WAIT);
        self
    }

    /// Sets the longest delay of an acknowledgement, less than 2^14 ms. Default 25 ms. The peer may
    /// request another delay unless this one is below 1 ms.
    #[must_use]
    pub const fn max_ack_delay(mut self, delay: Duration) -> Self {
        self.acks.max_ack_delay = at_most(delay, LONGEST_ACK_DELAY);
        self
    }

    /// Sets whether the peer is asked to acknowledge more or less often. Default
    /// [`AckFrequency::Adaptive`].
    #[must_use]
    pub const fn ack_frequency(mut self, requests: AckFrequency) -> Self {
        self.acks.ack_frequency = requests;
        self
    }

    /// Sets the round trip assumed until one is measured (RFC 9002 §6.2.2). Default 333 ms.
    #[must_use]
    pub const fn initial_rtt(mut self, rtt: Duration) -> Self {
        self.flight.initial_rtt = at_most(rtt, LONGEST_WAIT);
        self
    }

    /// Sets the UDP payload in bytes used right after the handshake, 1200 to 65,527. Default 1200,
    /// which every path carries; the first flight always uses that size.
    ///
    /// The search for [`max_datagram_size`](Self::max_datagram_size) finds larger sizes. Datagrams
    /// too large for the path are lost until that is noticed and 1200 bytes are used.
    #[must_use]
    pub const fn datagram_size(mut self, bytes: u16) -> Self {
        self.mtu.datagram_size = datagram(bytes);
        self
    }

    /// Sets the largest UDP payload in bytes that is searched for and accepted from the peer, 1200
    /// to 65,527. Default 1452: Ethernet over IPv6.
    ///
    /// Once the handshake is confirmed, the path is probed with datagrams larger than it is known
    /// to carry (DPLPMTUD: RFC 8899, RFC 9000 §14.3), the largest first. This relies only on the
    /// peer's acknowledgements, and the loss of a probe is not a sign of congestion. If a path
    /// stops carrying a size, datagrams go back to 1200 bytes for a while.
    ///
    /// 8952 suits a network with jumbo frames, 65,000 the loopback interface; a size larger than
    /// needed costs a few lost probes. The value in use is
    /// [`PathStats::datagram_size`](crate::stats::PathStats::datagram_size).
    ///
    /// ```no_run
    /// use hybriq::TransportConfig;
    ///
    /// let in_the_data_centre = TransportConfig::new().max_datagram_size(8952);
    /// ```
    #[must_use]
    pub const fn max_datagram_size(mut self, bytes: u16) -> Self {
        self.mtu.max_datagram_size = Some(datagram(bytes));
        self
    }

    /// Disables the search for datagrams larger than [`datagram_size`](Self::datagram_size), and
    /// sends that size even if the path does not carry it.
    #[must_use]
    pub const fn without_mtu_discovery(mut self) -> Self {
        self.mtu.max_datagram_size = None;
        self
    }

    /// Sets the algorithm that determines the bytes in flight and the pacing rate. Default
    /// [`Congestion::default`].
    #[must_use]
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.flight.congestion = congestion;
        self
    }

    /// Starts from the state that earlier connections saved for the same path: a server's are in this
    /// memory, a client's in its memory of servers. By default every connection measures its capacity again.
    #[must_use]
    pub fn careful_resume(mut self, memory: impl PathMemory + 'static) -> Self {
        self.flight.careful_resume = Some(Arc::new(memory));
        self
    }

    /// Disables the ECN marking of packets (RFC 9000 §13.4). By default packets are marked as long
    /// as the path and the peer support it. Marks of the peer are reported either way.
    #[must_use]
    pub const fn without_ecn(mut self) -> Self {
        self.flight.ecn = EcnState::Disabled;
        self
    }

    /// Sets the supported versions of QUIC, the preferred one first. Default: version 2, version 1.
    /// An empty list changes nothing.
    ///
    /// A server answers with its preferred version among those the client offers, without a further
    /// round trip (RFC 9368 §2.3), and rejects clients that start with a version not listed. It
    /// announces the list for all servers of its deployment: when adding a version, let every
    /// server accept it before any prefers it.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{TransportConfig, transport::Version};
    ///
    /// let only_version_1 = TransportConfig::new().versions([Version::V1]);
    /// let first_flight_in_version_2 = TransportConfig::new()
    ///     .versions([Version::V2, Version::V1])
    ///     .first_version(Version::V2);
    /// ```
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.spoken.versions = Versions::new(versions).unwrap_or(self.spoken.versions);
        self
    }

    /// Sets the version of a client's first flight, one of [`versions`](Self::versions). Default:
    /// version 1 if listed, because every server supports it (RFC 9368 §2.5), or the version in
    /// which the server issued a token, because the token is valid for no other (RFC 9369 §5).
    ///
    /// If the server does not support it, the client needs another round trip.
    #[must_use]
    pub const fn first_version(mut self, version: Version) -> Self {
        self.spoken.first_version = Some(version);
        self
    }

    pub(crate) fn first_flight_version(&self) -> Version {
        let pairs = [
            self.spoken.first_version.unwrap_or(Version::V1),
            Version::V1,
        ];
        let mut pairs = pairs.into_iter();
        pairs
            .find(|version| self.spoken.versions.contains(*version))
            .unwrap_or(self.spoken.versions.preferred())
    }

    /// Sets the number of packets sealed with the same keys before the keys are updated (RFC 9001
    /// §6). Default and maximum: half of the cipher's limit, 2^22 packets with AES (RFC 9001 §6.6).
    ///
    /// An update waits until the peer has followed the last one and three probe timeouts have
    /// passed.
    #[must_use]
    pub const fn key_update_after(mut self, packets: u64) -> Self {
        self.key_update_after = packets;
        self
    }

    /// Sets the subscriber to connection events: see [`events`](crate::events). Default: none.
    #[must_use]
    pub fn subscriber(mut self, subscriber: Arc<dyn Subscriber>) -> Self {
        self.subscriber = Some(Subscription(subscriber));
        self
    }

    /// Sets the object that chooses connections to watch, and gives each its own subscriber: see
    /// [`events`](crate::events). Default: none.
    #[must_use]
    pub fn sampler(mut self, sampler: Arc<dyn Sampler>) -> Self {
        self.sampler = Some(Sampling(sampler));
        self
    }

    /// Returns true if there is a sampler.
    #[doc(hidden)]
    pub const fn has_sampler(&self) -> bool {
        self.sampler.is_some()
    }

    /// Sets the sampler; an endpoint does so for its connections.
    #[doc(hidden)]
    pub fn set_sampler(&mut self, sampler: Arc<dyn Sampler>) {
        self.sampler = Some(Sampling(sampler));
    }

    /// Sets the address that clients are asked to move to (RFC 9000 §9.6), for example the server's
    /// own address behind a shared one: each client moves to the address of its family once the handshake
    /// is confirmed, if it gets an answer there. Ignored on clients. Default: none.
    ///
    /// The endpoint must also receive there: see `EndpointBuilder::also_bind`.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, TransportConfig};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let own = "203.0.113.7:4433".parse()?;
    /// let transport = TransportConfig::new().preferred_address(Some(own), None);
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).transport(transport))
    ///     .also_bind(own.into())
    ///     .bind("198.51.100.1:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn preferred_address(
        mut self,
        v4: Option<SocketAddrV4>,
        v6: Option<SocketAddrV6>,
    ) -> Self {
        self.migration.preferred_v4 = v4;
        self.migration.preferred_v6 = v6;
        self
    }

    pub(crate) const fn has_preferred_address(&self) -> bool {
        self.migration.preferred_v4.is_some() || self.migration.preferred_v6.is_some()
    }

    /// Asks the peer not to move to another address (RFC 9000 §18.2). Servers behind a load
    /// balancer that routes by the peer's address need this. A peer to which a NAT assigns another
    /// port is still followed, because it cannot know that it moved. By default a peer may move.
    ///
    /// # Examples
    /// ```
    /// use hybriq::TransportConfig;
    ///
    /// let config = TransportConfig::new().without_migration();
    /// ```
    #[must_use]
    pub const fn without_migration(mut self) -> Self {
        self.migration.of_peer = PeerMigration::Disabled;
        self
    }

    /// Disables pacing, so that the whole window may be sent at once. For measurements: queues on the path overflow
    /// even if they would have carried the same data spread over the round trip.
    #[must_use]
    pub const fn without_pacing(mut self) -> Self {
        self.flight.pacing = Pacing::Off;
        self
    }
}
