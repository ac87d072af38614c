//! Configuration of rustls for a cell, with a watch on a client's handshakes.

use std::sync::Arc;

use hybriq::Backend;
use rustls::client::Resumption as Sessions;
use rustls::{AlertDescription, ClientConfig, ServerConfig};

use super::rustls_watch::Watch;
use super::{Role, Setup, failures};
use crate::scenario::axes::{Cell, Resumption};
use crate::stacks;
use crate::system::failure::Failure;
use crate::system::outcome::{Failed, Kind};

/// Refuses what rustls cannot do in any stack.
pub(crate) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    stacks::rustls::group(cell.group)?;
    let uses_up_tickets = role == Role::Client
        && cell.provider == Backend::S2nTls
        && cell.resumption != Resumption::Full;
    if uses_up_tickets {
        return Err(
            "s2n-tls issues no ticket on a resumed connection, and clients with rustls use each \
             ticket once; use provider rustls"
                .into(),
        );
    }
    Ok(())
}

/// Returns a server's configuration. `early_data` is the number of bytes of 0-RTT data that are
/// accepted.
pub(crate) fn server(setup: &Setup, early_data: u32) -> Result<ServerConfig, Failure> {
    stacks::rustls::server(&setup.tls(Role::Server), early_data)
}

/// Returns a client's configuration, and the watch that observes its handshakes.
pub(crate) fn client(setup: &Setup) -> Result<(ClientConfig, Arc<Watch>), Failure> {
    let (mut config, verifier) = stacks::rustls::client(&setup.tls(Role::Client))?;
    let watch = Arc::new(Watch::new(verifier, &setup.cell));
    config
        .dangerous()
        .set_certificate_verifier(Arc::clone(&watch) as _);
    config.resumption = Sessions::store(Arc::clone(&watch) as _);
    Ok((config, watch))
}

/// Returns the failure of a handshake or of a session over TCP: the alert that was sent or
/// received.
pub(crate) fn failed(error: &rustls::Error) -> Failed {
    let alert = match error {
        rustls::Error::AlertReceived(alert) => *alert,
        rustls::Error::InvalidCertificate(reason) => reason.clone().into(),
        rustls::Error::NoApplicationProtocol => AlertDescription::NoApplicationProtocol,
        rustls::Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        rustls::Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        rustls::Error::NoCertificatesPresented => AlertDescription::CertificateRequired,
        rustls::Error::InvalidMessage(reason) => (*reason).into(),
        error => return Failed::new(Kind::Other, error),
    };
    failures::alert(alert.into(), error)
}
