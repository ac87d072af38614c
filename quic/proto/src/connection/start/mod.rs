//! Input of a new connection: the shared setup, a client's attempt, a server's ClientHello.

pub(super) mod forecast;
pub(super) mod versions;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq_tls::{ClientHello, Provider};

use crate::{
    config::{PeerMigration, TransportConfig},
    owners::{
        acks::{Received, frequency::AckFrequency},
        cids,
        path::Address,
    },
    remembered::server::ServerRecord,
    wire::{
        ResetToken, limits,
        packet::{Cid, DirectionKeys, Version, header_bits::Grease},
        params::{ACK_DELAY_EXPONENT, Params, PreferredAddress, VersionInformation},
    },
};

/// TLS provider and transport configuration that connections share.
///
/// Exhaustive: other shared settings belong in the transport configuration.
#[derive(Clone)]
pub struct Setup {
    /// Provider of TLS sessions.
    pub provider: Arc<dyn Provider>,
    /// Configuration of the transport.
    pub transport: Arc<TransportConfig>,
}

impl Setup {
    /// Returns the version of a session of an earlier process.
    fn session_version(&self, server_name: &str) -> Option<Version> {
        let context = self.provider.session_context(server_name)?;
        let version = Version::of_resumption_context(&context)?;
        self.transport.speaks(version).then_some(version)
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("provider", &self.provider.name())
            .field("transport", &self.transport)
            .finish()
    }
}

/// Version and token with which a client begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    version: Version,
    /// Token for the first Initials, valid in this version only (RFC 9369 §5).
    token: Bytes,
    /// True if a Version Negotiation packet led to this attempt.
    reacts: bool,
}

impl Attempt {
    /// Returns the first attempt of a client. Unless configured, its version is that of the last
    /// connection, of the server's session tickets or of a token from it, because the server intends to
    /// keep speaking that version (RFC 9369 §6).
    pub fn first(now: Instant, setup: &Setup, server_name: &str) -> Self {
        let transport = &setup.transport;
        let server = transport.server(server_name);
        let look = |record: &ServerRecord| (record.version(), record.tokens() > 0);
        let (known, has_tokens) = server.as_ref().map(|it| it.read(look)).unwrap_or_default();
        let given = match transport.spoken.first_version {
            Some(_) => Some(transport.first_flight_version()),
            None => known
                .filter(|version| transport.speaks(*version))
                .or_else(|| setup.session_version(server_name)),
        };
        let take = |record: &mut ServerRecord| {
            let mut versions = transport
                .spoken
                .versions
                .iter()
                .filter(|version| given.is_none_or(|given| given == *version));
            versions.find_map(|version| Some((version, record.take_token(version)?)))
        };
        let of_token = server
            .filter(|_| has_tokens)
            .and_then(|server| server.change(now, take));
        let usual = || given.unwrap_or_else(|| transport.first_flight_version());
        let (version, token) = of_token.unwrap_or_else(|| (usual(), Bytes::new()));
        Self {
            version,
            token,
            reacts: false,
        }
    }

    /// Returns the attempt that follows a Version Negotiation packet, in the version it led to.
    pub(super) fn again(now: Instant, setup: &Setup, server_name: &str, version: Version) -> Self {
        let server = setup.transport.server(server_name);
        let token = server.and_then(|it| it.change(now, |record| record.take_token(version)));
        Self {
            version,
            token: token.unwrap_or_default(),
            reacts: true,
        }
    }

    /// Returns true if a Version Negotiation packet led to this attempt.
    pub const fn reacts(&self) -> bool {
        self.reacts
    }

    /// Returns the version of the first flight.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the token for Initial packets; empty if there is none.
    pub(super) fn token(&self) -> Bytes {
        self.token.clone()
    }
}

/// Input of a client connection.
///
/// Exhaustive: an endpoint must decide on every field.
pub struct ClientStart<'a> {
    /// Current time.
    pub now: Instant,
    /// TLS provider and configuration.
    pub setup: &'a Setup,
    /// Address of the server.
    pub peer: SocketAddr,
    /// Name that the server's certificate must have.
    pub server_name: &'a str,
    /// Version and token of this attempt.
    pub attempt: Attempt,
    /// Our first connection id.
    pub local_cid: Cid,
    /// Destination connection id until the server's own is known: at least 8 random bytes.
    pub initial_dcid: Cid,
    /// Random secret of this connection.
    pub seed: u64,
}

impl std::fmt::Debug for ClientStart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientStart")
            .field("peer", &self.peer)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// Bytes of all datagrams exchanged with a client before its connection began. They count towards
/// the limit on amplification (RFC 9000 §8.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchanged {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

/// Input of a server connection: a complete ClientHello, and the state of its assembly.
///
/// Exhaustive: an endpoint must decide on every field.
pub struct ServerStart<'a> {
    /// Current time.
    pub now: Instant,
    /// TLS provider and configuration.
    pub setup: &'a Setup,
    /// ClientHello.
    pub client_hello: &'a ClientHello,
    /// CRYPTO data after the ClientHello.
    pub behind: &'a [u8],
    /// Initial packets that brought it.
    pub received: Received,
    /// Number of Initial packets sent so far, which are acknowledgements.
    pub packets_sent: u64,
    /// Bytes of the datagrams exchanged so far.
    pub exchanged: Exchanged,
    /// Address of the client, and our own if known.
    pub address: Address,
    /// Version of the client's first flight.
    pub version: Version,
    /// Keys of the client's Initials in that version, if they were derived before.
    pub client_keys: Option<Box<DirectionKeys>>,
    /// Destination connection id of the client's Initial, the client's own id, and ours.
    pub cids: [Cid; 3],
    /// Destination connection id of the client's first Initial, if a Retry replaced it.
    pub original_dcid: Option<Cid>,
    /// True if a token proved the client's address.
    pub validated: bool,
    /// Stateless reset token for our id.
    pub reset_token: Option<ResetToken>,
    /// Another id of ours with its token, for a preferred address.
    pub preferred: Option<cids::Issued>,
    /// Random secret of this connection.
    pub seed: u64,
}

impl std::fmt::Debug for ServerStart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerStart").finish_non_exhaustive()
    }
}

/// Returns our transport parameters.
pub(in crate::connection) fn local_params(
    config: &TransportConfig,
    version: Version,
    local_cid: Cid,
    original_dcid: Option<Cid>,
) -> Params {
    Params {
        version_information: Some(VersionInformation::new(version, config.spoken.versions)),
        original_dcid,
        initial_scid: Some(local_cid),
        max_idle_timeout: config.timeouts.idle_timeout.unwrap_or(Duration::ZERO),
        initial_max_data: config.streams.first_receive_window(),
        initial_max_stream_data_bidi_local: config.streams.first_stream_receive_window(),
        initial_max_stream_data_bidi_remote: config.streams.first_stream_receive_window(),
        initial_max_stream_data_uni: config.streams.first_stream_receive_window(),
        initial_max_streams_bidi: config.streams.max_bidi,
        initial_max_streams_uni: config.streams.max_uni,
        max_ack_delay: config.acks.max_ack_delay,
        min_ack_delay: AckFrequency::new(config.acks.max_ack_delay).local_min_delay(),
        reset_stream_at: true,
        max_datagram_frame_size: config.datagrams.max_frame_size(),
        ack_delay_exponent: ACK_DELAY_EXPONENT,
        disable_active_migration: config.migration.of_peer == PeerMigration::Disabled,
        active_connection_id_limit: limits::PEER_CIDS as u64,
        grease_quic_bit: config.free_bits.grease == Grease::On,
        ..Params::default()
    }
}

/// Returns the preferred address that a server announces, with a connection id for it.
pub(in crate::connection) fn announced(
    config: &TransportConfig,
    issued: Option<cids::Issued>,
) -> Option<PreferredAddress> {
    issued.map(|(cid, reset_token)| PreferredAddress {
        v4: config.migration.preferred_v4,
        v6: config.migration.preferred_v6,
        cid,
        reset_token,
    })
}
