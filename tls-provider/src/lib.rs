//! The TLS 1.3 interface of hybriq.
//!
//! A [`Provider`] makes one [`Session`] per handshake. [`Session::drive`] is the only call that
//! changes state: handshake bytes of each encryption level go in, handshake bytes and **traffic
//! secrets** come out. Packet keys, header protection, key update and the rest of RFC 9001 belong
//! to the transport, so that both providers share one implementation and a session can run on any
//! thread.
//!
//! There are two providers, each behind a feature of its name: rustls, the default, and s2n-tls.
//! Both offer X25519MLKEM768 first unless a [`KeyExchange`] policy says otherwise. A provider that
//! cannot do something refuses it when it is built, with a [`ConfigError`] that names the remedy:
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
//! Every ticket carries its [`Lineage`], so that a session that began with a classical key exchange
//! is never resumed where a post-quantum one is required.
//!
//! The minimum supported Rust version is 1.85; s2n-tls itself requires 1.91.

#![cfg_attr(
    not(any(feature = "rustls", all(unix, feature = "s2n-tls"))),
    allow(
        dead_code,
        unused_imports,
        reason = "options and helpers wait for a provider"
    )
)]

mod admission;
mod error;
mod messages;
mod options;
mod policy;
mod providers;
mod session;
mod tickets;
mod values;

pub use error::{ConfigError, ConfigErrors, Error};
pub use messages::flight::ServerFlight;
pub use messages::hello::{ClientHello, HelloError, KeyShare};
pub use messages::ticket::{issued_ticket, skip_tickets};
pub use options::verifier::{PeerChain, Verifier};
pub use options::{ChainChoice, ClientAuth, ClientOptions, Identity, KeyLog, ServerOptions, Trust};
#[doc(hidden)]
pub use options::{Intermediates, NamedPolicy, protocol_list};
pub use policy::certificate::{CertificateAlgorithms, KeyAlgorithm, SignatureAlgorithm};
pub use policy::profile::{Profile, UnknownProfile};
pub use policy::signer::{SignError, Signer};
pub use providers::backend::Backend;
#[cfg(feature = "rustls")]
pub use providers::rustls;
#[cfg(all(unix, feature = "s2n-tls"))]
pub use providers::s2n;
pub use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
pub use session::{ClientStart, Flight, Provider, ServerStart, Session, Start, Status};
pub use tickets::Tickets;
pub use tickets::store::{MemorySessions, SessionKey, SessionMemory, SessionStore};
pub use values::alert::Alert;
pub use values::compression::{CertificateCompression, CertificateMessage};
pub use values::exporter::{ExportError, Exporter};
pub use values::group::supported::{InvalidSupportedGroups, SupportedGroups};
pub use values::group::{Group, GroupKind, GroupMismatch, KeyExchange, ShareSizes};
pub use values::level::{Level, PerLevel, Side};
pub use values::negotiated::{Negotiated, SignatureScheme};
pub use values::resumption::{EarlyDataPolicy, EarlyDataStatus, Lineage};
pub use values::secret::{Secret, Suite};

/// Returns true if the cryptography of this build is a FIPS module of AWS-LC whose self tests have
/// passed. Only a build with the feature `fips` has one.
///
/// [`Provider::is_fips`] and [`Negotiated::fips`] also ask the TLS library, and look at the algorithms.
pub fn is_fips() -> bool {
    aws_lc_rs::try_fips_mode().is_ok()
}
