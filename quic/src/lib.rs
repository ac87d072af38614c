//! An async QUIC transport (RFC 9000, 9001, 9002) whose TLS 1.3 handshake is post-quantum by default.
//!
//! An [`Endpoint`] owns one or more UDP sockets. It accepts clients, each as an [`Incoming`], and
//! connects to servers. A [`Connection`] carries streams and datagrams; [`SendStream`] and
//! [`RecvStream`] are the ends of a stream. X25519MLKEM768 needs no configuration: a client offers it
//! first, and a server prefers it.
//!
//! ```toml
//! [dependencies]
//! hybriq = "0.1"
//! tokio = { version = "1", features = ["macros", "rt", "io-util"] }
//! ```
//!
//! ```text
//!          datagram in                                                   datagram out
//! socket ─► endpoint ─► connection::receive ─► packet ─► frame    frame ─► packet ─► connection::transmit ─► socket
//!          (route by    (order, limits)       (unprotect)(decode) (encode)(protect)  (what may be sent now)
//!           CID)                                  │                  ▲
//!                                                 ▼                  │
//!                            receive::dispatch: one match    transmit::owners: one ordered list
//!                                                 │                  ▲
//!                                                 ▼                  │
//!                        owners: handshake · acks · recovery · path · cids · streams · datagrams · congestion
//!                                                 │                  ▲
//!                                                 ▼ events           │ commands
//!                               worker (owns its sockets and all connections of its shard)
//!                                                 │                  ▲
//!                                                 ▼                  │
//!                              app handles: Endpoint · Connection · SendStream · RecvStream
//! ```
//!
//! The endpoint handles datagrams that belong to no connection: it assembles ClientHellos and hands
//! them out as [`Incoming`], or answers with a Retry, a Version Negotiation packet or a stateless
//! reset.
//!
//! Everything above the worker does no I/O: time and randomness are arguments. A worker is one task
//! on the caller's tokio runtime; there is no task and no channel per connection. Handles and the
//! worker share a connection behind one short lock.
//!
//! # A server
//! ```no_run
//! use hybriq::{Connection, Endpoint, Identity, ServerConfig};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
//!     let server = Endpoint::server("[::]:4433", ServerConfig::new(identity).alpn(["echo"]))?;
//!     while let Some(incoming) = server.accept().await {
//!         let connecting = incoming.accept();
//!         tokio::spawn(async move {
//!             if let Err(error) = serve(connecting.await?).await {
//!                 eprintln!("{error}");
//!             }
//!             Ok::<_, hybriq::ConnectError>(())
//!         });
//!     }
//!     Ok(())
//! }
//!
//! async fn serve(connection: Connection) -> std::io::Result<()> {
//!     // `None`: the client closed cleanly.
//!     while let Some((mut send, mut recv)) = connection.accept_bidi().await? {
//!         tokio::io::copy(&mut recv, &mut send).await?;
//!         send.finish();
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # A client
//! ```no_run
//! use hybriq::{ClientConfig, Endpoint};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Endpoint::client(ClientConfig::new().alpn(["echo"]))?;
//!     let connection = client.connect("192.0.2.1:4433".parse()?, "example.com").await?;
//!     println!("{}", connection.handshake().key_exchange); // X25519MLKEM768
//!
//!     let (mut send, mut recv) = connection.open_bidi().await?;
//!     send.write_all(b"hello").await?;
//!     send.finish();
//!     assert_eq!(recv.read_to_end(1024).await?, b"hello");
//!
//!     connection.close(0, b"done");
//!     client.idle().await; // waits until the server knows
//!     Ok(())
//! }
//! ```
//!
//! # Key exchange
//! [`KeyExchange`] is a policy per endpoint, per connection ([`Endpoint::connect_with`],
//! [`Incoming::accept_with`]) and per server name ([`ServerConfig::key_exchange_for`]):
//!
//! | policy | a peer without ML-KEM |
//! |---|---|
//! | `PreferPostQuantum`, the default | connects; see the result in [`Connection::handshake`] |
//! | `RequirePostQuantum` | is refused, with [`ConnectionError::KeyExchangeRefused`] |
//! | `OnlyClassical` | connects, and no peer gets ML-KEM |
//! | `Exactly(groups)` | depends on the list |
//!
//! # TLS libraries
//! Two are built in: [`Backend::Rustls`], the default, takes exact lists of groups and has 0-RTT;
//! [`Backend::S2nTls`] is available on unix with the feature `s2n-tls`.
//!
#![cfg_attr(feature = "s2n-tls", doc = "```no_run")]
#![cfg_attr(not(feature = "s2n-tls"), doc = "```ignore")]
//! use hybriq::{Backend, ClientConfig, KeyExchange};
//!
//! let config = ClientConfig::new()
//!     .tls(Backend::S2nTls)
//!     .key_exchange(KeyExchange::RequirePostQuantum);
//! ```
//!
//! A custom provider implements [`Provider`](tls::provider::Provider); pass it to [`ServerConfig::provider`] or
//! [`ClientConfig::provider`].
//!
//! # Priorities and windows
//! Streams share a connection fairly, unless [`SendStream::set_priority`] says otherwise. [`Priority`](transport::Priority)
//! uses the terms of RFC 9218, for any protocol.
//!
//! Receive windows grow with what the path holds, from 1 MiB for a stream and 1.5 MiB for a
//! connection up to [`TransportConfig`]'s
//! [`stream_receive_window`](TransportConfig::stream_receive_window) and
//! [`receive_window`](TransportConfig::receive_window). A writer waits once
//! [`send_buffer`](TransportConfig::send_buffer) bytes wait to be sent;
//! [`max_send_buffer`](TransportConfig::max_send_buffer) limits the data in flight as well. A path
//! that holds more than 12 MB, its rate times its round trip, needs larger bounds:
//!
//! ```
//! use hybriq::TransportConfig;
//!
//! // 1 Gbit/s over 300 ms, on one stream.
//! let config = TransportConfig::new()
//!     .stream_receive_window(64 << 20)
//!     .receive_window(96 << 20)
//!     .max_send_buffer(64 << 20);
//! ```
//!
//! # Datagrams
//! [`Connection::send_datagram`] sends a message that is not sent again when it is lost (RFC 9221),
//! for games, telephony and tunnels. Peers may send datagrams unless
//! [`DatagramConfig::receive_buffer`](transport::DatagramConfig::receive_buffer) is 0. While streams and datagrams both have data to send, each
//! gets half of the bytes.
//!
//! ```no_run
//! # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! if let Some(most) = connection.max_datagram_size() {
//!     println!("a datagram may have {most} bytes");
//!     connection.send_datagram("the newest position".into())?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # 0-RTT data
//! A client that connected to a server before may send data at once, in 0-RTT packets. An attacker can
//! replay that data, so both ends have to enable it: [`ClientConfig::offer_early_data`],
//! [`ServerConfig::accept_early_data`], and [`Connecting::early`], which returns an
//! [`EarlyConnection`] for streams and datagrams.
//!
//! # Overview
//! The [`guide`] has chapters for first steps, migration from other libraries, tuning, deployment,
//! metrics, security and post-quantum.
//!
//! | to | there is |
//! |---|---|
//! | choose clients before any public-key work | [`Incoming::client_hello`], [`Incoming::accept_with`], [`Incoming::refuse`] |
//! | have clients prove their address | [`EndpointBuilder::address_validation`], [`Incoming::retry`], [`TokenKeys`](fleet::TokenKeys) for a fleet |
//! | remember servers longer than the process | [`ServerMemory`](memory::ServerMemory), [`ClientConfig::server_memory`]; elsewhere: [`ServerStore`](memory::ServerStore) |
//! | share keys with other processes and machines | [`EndpointBuilder::fleet_keys`], [`FleetKeys`](fleet::FleetKeys) |
//! | resume sessions, send in 0-RTT packets | [`ServerConfig::tickets`], [`EarlyConnection`], [`RecvStream::is_early`] |
//! | speak version 2, or only version 1 | [`TransportConfig::versions`], [`Connection::version`] |
//! | move to another address | [`Connection::migrate`], [`Endpoint::rebind`], [`TransportConfig::without_migration`]; changes by a NAT are followed |
//! | have clients move to a server's own address | [`TransportConfig::preferred_address`] with [`EndpointBuilder::also_bind`] |
//! | stand behind a load balancer | [`QuicLb`](fleet::QuicLb), or a custom [`CidGenerator`](fleet::CidGenerator), with [`EndpointBuilder::cid_generator`] |
//! | change connection ids, or do without | [`Connection::rotate_cids`], [`EndpointBuilder::zero_length_cids`] |
//! | end connections of an earlier process | [`EndpointBuilder::reset_key`], [`EndpointBuilder::without_stateless_reset`] |
//! | update keys | [`Connection::update_keys`]; it happens automatically long before a limit |
//! | limit or find the datagram size of a path | [`TransportConfig::max_datagram_size`], [`TransportConfig::without_mtu_discovery`], [`PathStats::datagram_size`](stats::PathStats::datagram_size) |
//! | send messages that may get lost, or expire | [`Connection::send_datagram`], [`Connection::send_datagram_for`], [`Connection::send_datagram_with`], [`DatagramConfig`](transport::DatagramConfig) |
//! | know what arrived | [`SendStream::acknowledged`], [`SendStream::delivered`], [`SendStream::delivery`], [`Connection::send_datagram_tracked`] |
//! | give up what is late | [`SendStream::expire_at`], [`DatagramOptions::expires`](transport::DatagramOptions::expires) |
//! | choose the bitrate of media | [`PathStats::target_rate`](stats::PathStats::target_rate), [`PathStats::delivery_rate`](stats::PathStats::delivery_rate) |
//! | run over a connection or a session of WebTransport | [`generic`] |
//! | abandon a stream after its beginning | [`SendStream::reset_at`] |
//! | read data behind a gap | [`RecvStream::read_unordered`] |
//! | use a bidirectional stream as one value that reads and writes | [`BidiStream`] |
//! | know that the peer stopped a stream while it is written | [`SendStream::stopped`] |
//! | say which stream is urgent | [`SendStream::set_priority`] |
//! | allow more streams or bytes later | [`Connection::set_max_bidi_streams`], [`Connection::set_receive_window`] |
//! | keep a connection alive, or give it up sooner | [`TransportConfig::keep_alive`], [`TransportConfig::idle_timeout`] |
//! | control congestion | [`TransportConfig::congestion`], [`Congestion`](transport::Congestion), [`TransportConfig::careful_resume`] |
//! | use the codes of an application protocol | [`TransportConfig::application_codes`] |
//! | have fewer acknowledgements | [`TransportConfig::ack_frequency`] |
//! | let operators measure, keep middleboxes honest | [`TransportConfig::spin_bit`], [`TransportConfig::without_grease`] |
//! | derive keys for the application | [`Connection::export_keying_material`] |
//! | write futures by hand | [`Connection::poll_accept_bidi`] and the other `poll_` methods |
//! | notice a server that used to be post-quantum and no longer is | [`ClientConfig::continuity`], [`ServerMemory`](memory::ServerMemory), [`ServerConfig::post_quantum_commitment`] |
//! | use sockets of your own, or run programs in virtual time | [`EndpointBuilder::bind_custom`] |
//! | do without HelloRetryRequests | automatic; [`ClientConfig::group_hint`], [`SupportedGroups`](tls::SupportedGroups) from the DNS |
//! | keep keys elsewhere, verify certificates yourself | [`Signer`](tls::Signer), [`Verifier`](tls::Verifier), [`Trust::revocation_lists`] |
//! | set options of rustls itself | [`ServerConfig::tls_options`], with the feature `unstable-rustls` |
//! | check a configuration | [`ServerConfig::check`], [`ClientConfig::check`] |
//! | observe | [`Connection::id`], [`Connection::stats`], [`Connection::path_stats`], [`Endpoint::stats`], [`Connection::span`], [`guide::metrics`], [`events`] |
//!
//! # Dropping things
//! - A [`SendStream`] dropped unfinished resets its stream: truncation never looks like success.
//! - A [`RecvStream`] dropped before its end tells the peer to stop.
//! - The last handle of a connection, streams included, closes it with code 0, as soon as all
//!   streams that were finished have arrived. [`ApplicationCodes`](transport::ApplicationCodes) sets codes other than 0.
//! - The last handle of an endpoint stops accepting; its connections live on.
//! - Dropping an [`Incoming`] without a decision refuses the client; dropping a [`Connecting`] abandons the handshake.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `tokio` | on | the async endpoint; without it there is only the configuration |
//! | `rustls` | on | the rustls provider |
//! | `unstable-rustls` | off | types of rustls 0.23 in signatures, and the crate itself as `tls::rustls::library`; they may change in any release |
//! | `platform-verifier` | off | certificates are judged by the operating system, with rustls: `Trust::platform` |
//! | `s2n-tls` | off | the s2n-tls provider, unix only; it builds a second C library |
//! | `qlog` | off | logs of connections for tools such as qvis: the module `qlog` |
//! | `brotli`, `zlib` | off | compression of certificates (RFC 8879), with rustls |
//! | `fips` | off | AWS-LC's FIPS module instead of AWS-LC; its build needs CMake and Go |
//! | `serde` | off | a handshake as a record for audits: `Handshake` implements `Serialize` |
//! | `futures` | off | `Stream` for clients, streams and datagrams, and `Sink` for datagrams: the module `futures` |
//! | `metrics` | off | [metrics](guide::metrics) through the facade of the crate `metrics`, for Prometheus and others |
#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests take a base for their virtual time from the clock"
    )
)]

#[cfg(feature = "tokio")]
mod api;
mod config;
#[cfg(feature = "tokio")]
mod endpoint;
mod errors;
#[cfg(all(feature = "tokio", feature = "rustls"))]
pub mod guide;
#[cfg(feature = "tokio")]
mod restart;
#[cfg(feature = "tokio")]
mod sync;
#[cfg(all(test, feature = "tokio"))]
mod tests;
#[cfg(feature = "tokio")]
mod udp;
#[cfg(feature = "tokio")]
mod worker;

/// Errors that few programs match on, and their parts.
pub mod error {
    #[cfg(feature = "tokio")]
    pub use crate::api::post_quantum::NotPostQuantum;
    pub use crate::errors::{
        EarlyError, ExportError, ResetAtError, RestartError, SendDatagramError,
    };
    pub use hybriq_proto::wire::error::{
        By, Code, MigrateError, SystemError, TransportError, Violation, printable::Printable,
    };
    pub use hybriq_tls::{Alert, ConfigError, ConfigErrors, Error as TlsError};
}
/// Several addresses of one server, tried in turn (RFC 8305): the parts of
/// [`Endpoint::connect_host`](crate::Endpoint::connect_host).
#[cfg(feature = "tokio")]
pub mod happy_eyeballs {
    pub use crate::endpoint::addresses::{
        ATTEMPT_DELAY, MAX_ADDRESSES, first, first_found, in_turns,
    };
}
/// Events that the core reports to a subscriber, event by event.
pub mod events {
    pub use hybriq_proto::{
        events::*,
        wire::params::{Params, PreferredAddress, VersionInformation},
    };
}
/// Servers that are more than one process: connection ids, keys that they share, sockets of a service
/// manager, and threads.
pub mod fleet {
    #[cfg(feature = "tokio")]
    pub use crate::config::Placement;
    pub use crate::config::{FleetKeys, FleetKeysError, TokenKeys};
    #[cfg(all(feature = "tokio", unix))]
    pub use crate::endpoint::{ListenFds, ListenFdsError, ListenUdp};
    pub use hybriq_proto::{
        config::AddressValidation,
        owners::cids::{CidGenerator, InvalidQuicLb, QuicLb, RandomCids, ResetKey, Steering},
    };
    pub use hybriq_tls::Tickets;
}
/// Clients, streams and datagrams by the traits `Stream` and `Sink` of the crates `futures-core` and `futures-sink`.
#[cfg(feature = "futures")]
pub mod futures {
    pub use crate::{
        api::futures::{BidiStreams, Datagrams, UniStreams},
        endpoint::clients::Clients,
    };
}
/// Traits for code that runs over a connection and over a session of a protocol above it, such as WebTransport in the
/// crate `hybriq-http`.
///
/// # Examples
/// ```no_run
/// use hybriq::generic::{Connection, RecvStream as _, SendStream as _};
///
/// async fn ask<C: Connection>(connection: &C) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
///     let (mut send, mut recv) = connection.open_bidi().await?;
///     send.write_all(b"question").await?;
///     send.finish();
///     Ok(recv.read_to_end(1024).await?)
/// }
/// ```
#[cfg(feature = "tokio")]
pub mod generic {
    pub use crate::api::generic::{Connection, RecvStream, SendStream};
}
/// What a client remembers of servers from one connection to the next.
pub mod memory {
    pub use crate::config::{CarefulResume, ServerMemory};
    pub use hybriq_proto::{
        config::PathMemory,
        remembered::{
            known_path::{KnownPath, PathKey},
            origin::{Continuity, Downgrade, OriginRecord},
            saved_path::{InvalidSavedPath, SavedPath},
            server::{InvalidServerMemory, ServerKey, ServerRecord, ServerStore},
        },
    };
    pub use hybriq_tls::{SessionKey, SessionMemory, SessionStore};
}
/// Logs of connections for tools such as qvis.
#[cfg(feature = "qlog")]
pub mod qlog {
    pub use hybriq_qlog::{Candidate, Qlog, QlogBuilder, QlogStats, Schema};
}
/// Sockets of the application, for [`EndpointBuilder::bind_custom`]: tunnels, network stacks in user space, and simulated
/// networks.
#[cfg(feature = "tokio")]
pub mod socket {
    pub use crate::udp::{DatagramSocket, Outgoing, Received};
    pub use hybriq_proto::wire::udp::Ecn;
}
/// Stages of a [`Connection`]: before and after its handshake is complete.
#[cfg(feature = "tokio")]
pub mod stage {
    pub use crate::api::{
        connection::{Established, Stage},
        early_connection::Early,
    };
}
/// Counters, measurements, and what a connection or an endpoint holds.
pub mod stats {
    #[cfg(feature = "tokio")]
    pub use crate::worker::{HandshakeCount, HandshakeKind, HandshakeOutcome, RefusalReason};
    pub use hybriq_proto::{
        endpoint::{AddressProof, FirstFlight, FlightLimit, WorstCaseMemory},
        stats::{
            ConnectionStats, DatagramDrops, DatagramStats, DropReason, EndpointStats, Kind, Label,
            MemoryHeld, Metric, PacketDrops, PathStats,
            census::{Census, Holding, MAY_GROW},
        },
        wire::udp::EcnState,
    };
}
/// TLS: certificates and their verification, groups, signatures, and what a handshake agreed on.
pub mod tls {
    pub use hybriq_proto::events::agreement::{EarlyData, KeyExchangeInfo};
    #[cfg(feature = "rustls")]
    pub use hybriq_tls::rustls;
    pub use hybriq_tls::{
        CertificateAlgorithms, CertificateCompression, CertificateDer, CertificateMessage,
        CertificateRevocationListDer, ChainChoice, ClientAuth, ClientHello, ClientOptions,
        EarlyDataPolicy, ExportError, GroupKind, GroupMismatch, HelloError, InvalidSupportedGroups,
        KeyAlgorithm, KeyLog, KeyShare, Lineage, PeerChain, PrivateKeyDer, ServerOptions,
        ShareSizes, Side, SignError, SignatureAlgorithm, SignatureScheme, Signer, Suite,
        SupportedGroups, UnknownProfile, Verifier, is_fips,
    };
    /// The interface to a TLS library: what a [`Provider`](provider::Provider) of an application implements.
    pub mod provider {
        pub use hybriq_tls::{
            ClientStart, EarlyDataStatus, Flight, Level, Negotiated, PerLevel, Provider, Secret,
            ServerFlight, ServerStart, Session, Start, Status,
        };
    }
}
/// Settings and terms of the transport: streams, datagrams, packets, congestion control.
pub mod transport {
    pub use crate::config::random::SystemRandom;
    pub use hybriq_proto::{
        Random,
        config::{AckFrequency, ApplicationCodes, DatagramConfig, WhenFull},
        owners::{
            congestion::{self, Congestion},
            datagrams::{DatagramOptions, Fate as DatagramFate},
            streams::{Blocked, Chunk, Delivery, Priority, Tallied, Tally},
        },
        wire::{
            ResetToken,
            frame::{EcnCounts, FrameType},
            packet::{Cid as ConnectionId, PacketNumber, Version, Versions},
        },
    };
}

#[cfg(feature = "tokio")]
pub use api::connecting::Connecting;
#[cfg(feature = "tokio")]
pub use api::connection::Connection;
#[cfg(feature = "tokio")]
pub use api::early_connection::EarlyConnection;
#[cfg(feature = "tokio")]
pub use api::incoming::Incoming;
#[cfg(feature = "tokio")]
pub use api::post_quantum::PostQuantum;
#[cfg(feature = "tokio")]
pub use api::stream::{BidiStream, RecvStream, SendStream};
#[cfg(feature = "tokio")]
pub use config::Workers;
pub use config::{ClientConfig, ServerConfig};
#[cfg(feature = "tokio")]
pub use endpoint::{Endpoint, EndpointBuilder};
pub use errors::{ConnectError, EndpointError, ReadError, ReadExactError, WriteError};
pub use hybriq_proto::{
    Direction, Handshake, StreamId, TransportConfig, wire::error::ConnectionError,
};
pub use hybriq_tls::{Backend, Group, Identity, KeyExchange, Profile, Trust};
