//! The configuration of a connection, and its setters.

use std::{
    net::{SocketAddrV4, SocketAddrV6},
    sync::Arc,
    time::Duration,
};

use hybriq_tls::EarlyDataPolicy;

use super::{
    PathMemory, TokenStore, VersionMemory,
    groups::{
        AckFrequency, Acks, Flight, FreeBits, Migration, Mtu, PeerMigration, Spoken, Timeouts,
    },
    memory::ClientMemory,
};
use crate::{
    congestion::Congestion,
    datagrams::DatagramConfig,
    ecn::EcnState,
    events::{Subscriber, Subscription},
    header_bits::{Grease, SpinBit},
    packet::{Version, Versions},
    recovery::Pacing,
    streams::Limits,
};

const MIB: u64 = 1024 * 1024;

/// Streams of one kind that a peer can be allowed (RFC 9000 §4.6).
const MOST_STREAMS: u64 = 1 << 60;

/// Longest delay that transport parameters can express (RFC 9000 §18.2).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// The payload that fills an IPv6 packet.
const LARGEST_DATAGRAM: u16 = 65_527;

/// Longer waits are as good as for ever, and added to a point in time they overflow.
const LONGEST_WAIT: Duration = Duration::from_hours(100 * 365 * 24);

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

const fn streams(count: u64) -> u64 {
    if count > MOST_STREAMS {
        MOST_STREAMS
    } else {
        count
    }
}

/// Configuration of a connection, TLS aside. Start from [`TransportConfig::new`].
///
/// Values beyond what QUIC can say are lowered to the largest that it can.
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
    pub(crate) key_update_after: u64,
    pub(crate) subscriber: Option<Subscription>,
    pub(crate) memory: ClientMemory,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl TransportConfig {
    /// Defaults for servers and clients on the Internet.
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
            key_update_after: u64::MAX,
            subscriber: None,
            memory: ClientMemory::NONE,
        }
    }

    /// Lets a client offer 0-RTT data; `ClientConfig` sets it.
    #[doc(hidden)]
    #[must_use]
    pub const fn early_data(mut self, early_data: EarlyDataPolicy) -> Self {
        self.memory.early_data = early_data;
        self
    }

    /// Sets the memory of the versions that servers speak; `ClientConfig`
    /// has one.
    #[doc(hidden)]
    #[must_use]
    pub fn remember_versions(mut self, memory: impl VersionMemory + 'static) -> Self {
        self.memory.versions = Some(Arc::new(memory));
        self
    }

    /// The version that a server spoke last.
    pub(crate) fn known_version(&self, server_name: &str) -> Option<Version> {
        let known = self.memory.versions.as_ref()?.get(server_name)?;
        self.spoken.versions.contains(known).then_some(known)
    }

    /// The version of the first flight to a server: the one that was asked for, else the one of its
    /// tickets.
    pub(crate) fn version_for(&self, server_name: &str) -> Version {
        match self.spoken.first_version {
            None => self
                .known_version(server_name)
                .unwrap_or_else(|| self.first_flight_version()),
            Some(_) => self.first_flight_version(),
        }
    }

    /// Bytes the peer may have under way or unread on all streams together, at most. Default
    /// 24 MiB.
    ///
    /// The window starts at [`initial_receive_window`](Self::initial_receive_window) and doubles
    /// while the application reads so fast that a window lasts for less than three round trips; it
    /// is half as large again as the largest window of a stream. An application that reads slowly
    /// does not make it grow, so this much is held only of peers that were fast before.
    ///
    /// A window of 4/3 of what a path holds, its rate times its round trip, uses it to the full:
    /// the default is enough for 1 Gbit/s over 150 ms.
    #[must_use]
    pub const fn receive_window(mut self, bytes: u64) -> Self {
        self.streams.receive_window = bytes;
        self
    }

    /// Bytes the peer may send on all streams together before anything was read. Not more than
    /// [`receive_window`](Self::receive_window); default 1.5 MiB.
    ///
    /// A peer that starts with ten packets takes six round trips to fill the default, time enough
    /// for the window to grow before it does. It is the limit of what a peer can make a connection
    /// hold whose data nobody reads.
    #[must_use]
    pub const fn initial_receive_window(mut self, bytes: u64) -> Self {
        self.streams.initial_receive_window = bytes;
        self
    }

    /// Bytes the peer may have under way or unread on one stream, at most. Default 16 MiB.
    ///
    /// The window starts at [`initial_stream_receive_window`](Self::initial_stream_receive_window)
    /// and grows as [`receive_window`](Self::receive_window) does. The default lets one stream fill
    /// 1 Gbit/s over 100 ms, or 200 Mbit/s over 500 ms.
    #[must_use]
    pub const fn stream_receive_window(mut self, bytes: u64) -> Self {
        self.streams.stream_receive_window = bytes;
        self
    }

    /// Bytes the peer may send on one stream before anything of it was read. Not more than
    /// [`stream_receive_window`](Self::stream_receive_window); default 1 MiB.
    #[must_use]
    pub const fn initial_stream_receive_window(mut self, bytes: u64) -> Self {
        self.streams.initial_stream_receive_window = bytes;
        self
    }

    /// Bytes per stream that may wait to be sent; a writer waits beyond it. At least 1, default
    /// 1 MiB.
    ///
    /// Bytes under way do not count: how many these are is for congestion control to say, and
    /// [`max_send_buffer`](Self::max_send_buffer) bounds both together.
    #[must_use]
    pub const fn send_buffer(mut self, bytes: u64) -> Self {
        self.streams.send_buffer = if bytes == 0 { 1 } else { bytes };
        self
    }

    /// Bytes held per stream until they are acknowledged, sent or not; a writer waits beyond it.
    /// Not less than [`send_buffer`](Self::send_buffer); default 16 MiB.
    ///
    /// One stream sends no faster than this in a round trip, less what waits to be sent.
    #[must_use]
    pub const fn max_send_buffer(mut self, bytes: u64) -> Self {
        self.streams.max_send_buffer = bytes;
        self
    }

    /// Bidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_bidi_streams(mut self, count: u64) -> Self {
        self.streams.max_bidi = streams(count);
        self
    }

    /// Unidirectional streams the peer may have open at once. Default 100.
    #[must_use]
    pub const fn max_uni_streams(mut self, count: u64) -> Self {
        self.streams.max_uni = streams(count);
        self
    }

    /// Bounds of the datagram queues (RFC 9221), in both directions. Default
    /// [`DatagramConfig::new`]: the peer may send them.
    #[must_use]
    pub const fn datagrams(mut self, datagrams: DatagramConfig) -> Self {
        self.datagrams = datagrams;
        self
    }

    /// Longest silence of the peer before the connection is given up; the smaller of both ends'
    /// counts (RFC 9000 §10.1). `None`, and zero as on the wire: never. Default 30 s.
    #[must_use]
    pub const fn idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeouts.idle_timeout = match timeout {
            Some(timeout) if !timeout.is_zero() => Some(at_most(timeout, LONGEST_WAIT)),
            _ => None,
        };
        self
    }

    /// Keeps the connection from going idle: when nothing came for so long, the peer is asked for a
    /// sign of life (RFC 9000 §10.1.2). Default: an idle connection ends, and what is on the way
    /// may forget it before.
    ///
    /// Not more than half the idle timeout, to which longer intervals are lowered; zero is none.
    /// NATs and firewalls forget UDP flows after 30 s or less, so 15 to 25 s keeps those open. One
    /// end that does it is enough.
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

    /// Lets observers on the path measure its round trips by the spin bit, on fifteen of sixteen
    /// paths (RFC 9000 §17.4). By default the bit is random.
    #[must_use]
    pub const fn spin_bit(mut self) -> Self {
        self.free_bits.spin_bit = SpinBit::On;
        self
    }

    /// Sets the QUIC bit in every packet and takes no packet without it (RFC 9287). By default
    /// peers that can take it get packets without it at random, so that nothing on the path learns
    /// to rely on it. For sockets that QUIC shares with other protocols.
    #[must_use]
    pub const fn without_grease(mut self) -> Self {
        self.free_bits.grease = Grease::Off;
        self
    }

    /// Longest duration of a handshake. Default 10 s.
    #[must_use]
    pub const fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.handshake_timeout = at_most(timeout, LONGEST_WAIT);
        self
    }

    /// Longest delay of an acknowledgement, which may wait for others: less than 2^14 ms. Default
    /// 25 ms. Unless it is below 1 ms, the peer may ask for another delay.
    #[must_use]
    pub const fn max_ack_delay(mut self, delay: Duration) -> Self {
        self.acks.max_ack_delay = at_most(delay, LONGEST_ACK_DELAY);
        self
    }

    /// Requests to the peer to acknowledge more or less often. Default [`AckFrequency::Adaptive`].
    #[must_use]
    pub const fn ack_frequency(mut self, requests: AckFrequency) -> Self {
        self.acks.ack_frequency = requests;
        self
    }

    /// The round trip assumed before one was measured (RFC 9002 §6.2.2). Default 333 ms.
    #[must_use]
    pub const fn initial_rtt(mut self, rtt: Duration) -> Self {
        self.flight.initial_rtt = at_most(rtt, LONGEST_WAIT);
        self
    }

    /// Bytes of the UDP payloads sent right after the handshake, 1200 to 65,527. Default 1200,
    /// which every path carries; the first flight always keeps to it.
    ///
    /// Larger ones are found by [`max_datagram_size`](Self::max_datagram_size). What the path does
    /// not carry is lost, until that is noticed and 1200 bytes are sent.
    #[must_use]
    pub const fn datagram_size(mut self, bytes: u16) -> Self {
        self.mtu.datagram_size = datagram(bytes);
        self
    }

    /// Bytes of the UDP payloads that are looked for, 1200 to 65,527, and the peer takes. Default
    /// 1452: what Ethernet carries over IPv6.
    ///
    /// Once the handshake is confirmed, the path is probed with larger datagrams than it is known
    /// to carry (DPLPMTUD: RFC 8899, RFC 9000 §14.3), the largest first. It takes nothing from the
    /// network but the acknowledgements of the peer, and loss of a probe is no sign of congestion.
    /// Where a path no longer carries a size, datagrams have 1200 bytes again for a while.
    ///
    /// 8952 suits a network with jumbo frames, 65,000 the loopback interface; what is asked for
    /// without need costs some probes that get lost. The value in use is
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

    /// Does not look for larger datagrams than [`datagram_size`](Self::datagram_size), and sends
    /// these whatever becomes of them.
    #[must_use]
    pub const fn without_mtu_discovery(mut self) -> Self {
        self.mtu.max_datagram_size = None;
        self
    }

    /// Algorithm that decides how much may be in flight, and how fast it leaves. Default
    /// [`Congestion::default`].
    #[must_use]
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.flight.congestion = congestion;
        self
    }

    /// Starts from what earlier connections saw of the same path. Default: every connection finds
    /// its capacity by itself.
    #[must_use]
    pub fn careful_resume(mut self, memory: impl PathMemory + 'static) -> Self {
        self.flight.careful_resume = Some(Arc::new(memory));
        self
    }

    /// Sets the store of a client's address validation tokens. For drivers of the core: a
    /// `ClientConfig` has a store anyway.
    #[doc(hidden)]
    #[must_use]
    pub fn token_store(mut self, store: Arc<dyn TokenStore>) -> Self {
        self.memory.tokens = Some(store);
        self
    }

    /// Marks no packet as ECN-capable (RFC 9000 §13.4). By default they are, as long as the path
    /// and the peer show that they can make use of it. What the peer marks is reported either way.
    #[must_use]
    pub const fn without_ecn(mut self) -> Self {
        self.flight.ecn = EcnState::Disabled;
        self
    }

    /// The versions of QUIC to speak, the preferred one first. Default: version 2, version 1. An
    /// empty list changes nothing.
    ///
    /// A server answers in the one it prefers of those the client offers, which takes no round trip
    /// (RFC 9368 §2.3), and turns clients away that begin in a version which is not listed. It says
    /// the same of all servers of its deployment: when a version is added, let every one of them
    /// accept it before any prefers it.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{TransportConfig, Version};
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

    /// The version of a client's first flight, one of [`versions`](Self::versions). Default:
    /// version 1 if it is one of them, because every server speaks it (RFC 9368 §2.5); but the
    /// version that a server gave a token in, which is good for no other (RFC 9369 §5).
    ///
    /// A server that does not speak it costs the client a round trip more.
    #[must_use]
    pub const fn first_version(mut self, version: Version) -> Self {
        self.spoken.first_version = Some(version);
        self
    }

    pub(crate) fn first_flight_version(&self) -> Version {
        let wishes = [
            self.spoken.first_version.unwrap_or(Version::V1),
            Version::V1,
        ];
        let mut wishes = wishes.into_iter();
        wishes
            .find(|version| self.spoken.versions.contains(*version))
            .unwrap_or(self.spoken.versions.preferred())
    }

    /// Packets sealed with the same keys before they are updated (RFC 9001 §6). Default, and most:
    /// half of what the cipher allows, 2^22 packets with AES (RFC 9001 §6.6).
    ///
    /// An update waits until the peer has followed the last one and three probe timeouts went by.
    #[must_use]
    pub const fn key_update_after(mut self, packets: u64) -> Self {
        self.key_update_after = packets;
        self
    }

    /// Tells somebody what happens on connections, as it happens: see [`events`](crate::events).
    /// Default: nobody.
    #[must_use]
    pub fn subscriber(mut self, subscriber: Arc<dyn Subscriber>) -> Self {
        self.subscriber = Some(Subscription(subscriber));
        self
    }

    /// Address that clients are asked to move to (RFC 9000 §9.6), such as an address of its own
    /// behind one that is shared by many: each client moves to the address of the family it uses,
    /// once the handshake is confirmed and if it gets an answer there. Clients have no such
    /// address. Default: none.
    ///
    /// The endpoint has to receive there too: see `EndpointBuilder::also_bind`.
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

    /// Asks the peer not to move to another address (RFC 9000 §18.2), as a server may have to that
    /// is found by its peer's address. A peer behind a NAT that gives it another port is followed
    /// all the same; it cannot know. Default: a peer may move.
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

    /// Lets everything leave at once that the window allows. For measurements: queues on the way
    /// overflow that would have carried the same data spread over the round trip.
    #[must_use]
    pub const fn without_pacing(mut self) -> Self {
        self.flight.pacing = Pacing::Off;
        self
    }
}
