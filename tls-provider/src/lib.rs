//! The TLS 1.3 seam of hybriq.
//!
//! A [`Provider`] makes one [`Session`] per handshake. [`Session::drive`] is the only call that
//! changes state: handshake bytes of each encryption level go in, handshake bytes and **traffic
//! secrets** come out. Packet keys, header protection, key update and everything else of RFC 9001
//! belong to the transport, so that both providers share one implementation of it and a session can
//! run on any thread.
//!
//! There are two providers, each behind a feature of its name: rustls, the default, and s2n-tls.
//! Both offer X25519MLKEM768 first unless a [`KeyExchange`] policy says otherwise. What one of them
//! cannot do, it refuses when it is built, with a [`ConfigError`] that names the remedy:
//!
//! | | rustls | s2n-tls |
//! |---|---|---|
//! | group lists | any | those of its named policies |
//! | resumption | yes | yes |
//! | 0-RTT ([`EarlyDataPolicy`]) | yes | no |
//! | keys outside the process ([`Signer`]) | yes | those that sign digests |
//! | own checks after the built-in one ([`Trust::also`]) | yes | yes |
//! | own checks alone ([`Trust::verifier`]) | yes | no |
//! | revocation lists ([`Trust::revocation_lists`]) | yes | no |
//! | sessions beyond the process ([`SessionStore`]) | no | yes |
//! | certificate compression ([`CertificateCompression`]) | yes | no |
//! | keying material ([`Exporter`]) | yes | yes |
//!
//! Every ticket carries its [`Lineage`], so that nothing that began with a classical exchange is
//! resumed where a post-quantum one is required.
//!
//! The minimum supported Rust version is 1.85; s2n-tls itself asks for 1.91.

#![cfg_attr(
    not(any(feature = "rustls", all(unix, feature = "s2n-tls"))),
    allow(
        dead_code,
        unused_imports,
        reason = "options and helpers wait for a provider"
    )
)]

mod accepting;
mod admission;
mod alert;
mod backend;
mod certificate;
mod check;
#[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
mod compliance;
mod compression;
#[cfg(feature = "serde")]
mod configured;
mod error;
mod exporter;
mod flight;
mod group;
mod hello;
mod level;
mod message;
mod mismatch;
mod negotiated;
mod options;
mod profile;
mod resumption;
mod secret;
mod session;
mod session_store;
mod signer;
mod supported_groups;
mod ticket;
mod tickets;
mod verifier;

#[cfg(feature = "rustls")]
pub mod rustls;
#[cfg(all(unix, feature = "s2n-tls"))]
pub mod s2n;

pub use alert::Alert;
pub use backend::Backend;
pub use certificate::{CertificateAlgorithms, KeyAlgorithm, SignatureAlgorithm};
pub use compression::{CertificateCompression, CertificateMessage};
pub use error::{ConfigError, ConfigErrors, Error};
pub use exporter::{ExportError, Exporter};
pub use flight::ServerFlight;
pub use group::{Group, GroupKind, KeyExchange};
pub use hello::{ClientHello, HelloError};
pub use level::{Level, PerLevel, Side};
pub use mismatch::GroupMismatch;
pub use negotiated::{Negotiated, SignatureScheme};
pub use options::{ChainChoice, ClientAuth, ClientOptions, Identity, KeyLog, ServerOptions, Trust};
pub use profile::{Profile, UnknownProfile};
pub use resumption::{EarlyDataPolicy, EarlyDataStatus, Lineage};
pub use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
pub use secret::{Secret, Suite};
pub use session::{Flight, Provider, Session, Start, Status};
pub use session_store::{MemorySessions, SessionStore};
pub use signer::{SignError, Signer};
pub use supported_groups::{InvalidSupportedGroups, SupportedGroups};
pub use ticket::{issued_ticket, skip_tickets};
pub use tickets::Tickets;
pub use verifier::{PeerChain, Verifier};

/// Returns true if the cryptography of this build is a FIPS module of AWS-LC, whose self tests have
/// passed. Only a build with the feature `fips` has one.
///
/// [`Provider::is_fips`] and [`Negotiated::fips`] also ask the TLS library, and look at the algorithms.
pub fn is_fips() -> bool {
    aws_lc_rs::try_fips_mode().is_ok()
}
