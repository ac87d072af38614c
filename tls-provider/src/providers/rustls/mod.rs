//! The rustls 0.23 provider.
//!
//! rustls reports every traffic secret through its public key log. That hook feeds the transport;
//! the user's key log is called after it. The cipher suites carry a QUIC algorithm that builds no
//! keys, because nobody would use them.
//!
//! rustls 0.23 follows the client's order of groups. A server here reads the ClientHello first and
//! starts rustls with the single group that the policy asks for, so that rustls sends the
//! HelloRetryRequest that the policy needs.
//!
//! With the feature `unstable-rustls`, the crypto operations can be wrapped (`Client::with_crypto`,
//! `Server::with_crypto`) and the configurations of rustls changed (`ClientOptions::change_rustls`,
//! `ServerOptions::change_rustls`). The types of rustls that this needs are in `library`, the crate
//! itself. They may change in any release.

mod certificates;
pub(crate) mod check;
mod crypto;
mod locals;
mod quic;
mod resumption;
mod tcp;

/// The crate `rustls` itself, in the version that this provider uses.
///
/// Its traits and types are needed for [`ServerOptions::change_rustls`] and
/// [`ClientOptions::change_rustls`]. Needs the feature `unstable-rustls`.
///
/// [`ClientOptions::change_rustls`]: crate::ClientOptions::change_rustls
/// [`ServerOptions::change_rustls`]: crate::ServerOptions::change_rustls
#[cfg(feature = "unstable-rustls")]
pub use ::rustls as library;
#[cfg(feature = "unstable-rustls")]
pub use ::rustls::{ClientConfig, ServerConfig, crypto::CryptoProvider};
pub use certificates::hosts::Coverage;
pub use quic::client::Client;
pub use quic::server::Server;
pub use tcp::{TcpClient, TcpServer};

use crate::{ConfigError, Side};

const NAME: &str = "rustls";

fn unsupported(detail: impl Into<String>) -> ConfigError {
    ConfigError::unsupported(NAME, detail)
}

/// Describes why a certificate and its key were refused.
fn unusable(error: &::rustls::Error) -> ConfigError {
    use ::rustls::Error as Tls;
    ConfigError::Identity(match error {
        Tls::InconsistentKeys(_) => crate::error::KEY_MISMATCH.to_owned(),
        Tls::InvalidCertificate(why) => {
            format!("the certificate cannot be read ({why}); give an X.509 certificate")
        }
        Tls::General(why) => format!("{why}; give a key of ECDSA, Ed25519, RSA or ML-DSA"),
        error => format!("{error}; give another certificate and its key"),
    })
}

fn wrong_side(side: Side) -> ConfigError {
    unsupported(match side {
        Side::Client => "built from ServerOptions; a client session needs ClientOptions",
        Side::Server => "built from ClientOptions; a server session needs ServerOptions",
    })
}
