//! TLS of both ends, restricted to what the cell says.

use hybriq::tls::{ClientAuth, Suite};
use hybriq::{Backend, ClientConfig, Group, Identity, KeyExchange, ServerConfig, Trust};

use super::super::{Role, Setup, first_share};
use crate::scenario::axes::{Cell, Certificate, Resumption};
use crate::system::failure::Failure;

/// Checks that hybriq can play that role.
pub(super) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    match (role, cell.provider) {
        (Role::Client, _) if cell.hello_retry && cell.resumption != Resumption::Full => Err(
            "hybriq's client remembers with a ticket which group the server asked for, so that \
             only full handshakes have a HelloRetryRequest; use resumption full"
                .into(),
        ),
        (Role::Client, _) if reuses_ticket(cell) => check_s2n_client(cell),
        (Role::Server, Backend::S2nTls) => check_s2n(cell),
        _ => Ok(()),
    }
}

/// Refuses what s2n-tls cannot do over QUIC.
fn check_s2n(cell: &Cell) -> Result<(), Failure> {
    s2n_policy(cell)?;
    if cell.resumption == Resumption::ZeroRtt {
        return Err(
            "s2n-tls has no 0-RTT over QUIC; use provider rustls, or resumption psk".into(),
        );
    }
    if cell.resumption == Resumption::Psk && cell.client_auth {
        return Err(
            "s2n-tls issues no tickets to clients with a certificate; use provider rustls".into(),
        );
    }
    if cell.certificate == Certificate::Ed25519 {
        return Err("s2n-tls has no Ed25519 certificates; use provider rustls".into());
    }
    Ok(())
}

/// Returns true if tickets are used repeatedly: s2n-tls issues none on a resumed connection, and
/// its client therefore reuses them.
fn reuses_ticket(cell: &Cell) -> bool {
    cell.provider == Backend::S2nTls && cell.resumption == Resumption::Psk
}

/// Refuses groups and suites that a client of s2n-tls cannot select, because it takes no lists.
fn check_s2n_client(cell: &Cell) -> Result<(), Failure> {
    let first = (Group::X25519MLKEM768, Suite::Aes128GcmSha256);
    if (cell.group, cell.suite) == first {
        return Ok(());
    }
    Err(format!(
        "hybriq resumes sessions of s2n-tls with {} and {} only; use provider rustls for others",
        first.0, first.1
    )
    .into())
}

pub(super) fn server(setup: &Setup) -> Result<ServerConfig, Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let group = cell.group;
    let identity = Identity::from_pem(pem.server_chain.as_bytes(), pem.server_key.as_bytes())?;
    let config = ServerConfig::new(identity).alpn([setup.alpn()]);
    let mut config = match cell.provider {
        Backend::Rustls => config
            .key_exchange(KeyExchange::Exactly(vec![group]))
            .suites(vec![cell.suite]),
        // s2n-tls takes no list of suites; the client offers only one.
        _ => config.tls(Backend::S2nTls).key_exchange(s2n_policy(cell)?),
    };
    if cell.client_auth {
        let trust = Trust::roots_pem(pem.root.as_bytes())?;
        config = config.client_auth(ClientAuth::Required(trust));
    }
    Ok(match cell.resumption {
        Resumption::Full => config.without_tickets(),
        Resumption::Psk => config,
        Resumption::ZeroRtt => config.accept_early_data(),
    })
}

/// Clients use rustls whenever possible: it offers exactly one group, or makes a server ask for
/// another.
pub(super) fn client(setup: &Setup) -> Result<ClientConfig, Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let config = ClientConfig::new()
        .alpn([setup.alpn()])
        .trust(Trust::roots_pem(pem.root.as_bytes())?);
    let config = if reuses_ticket(cell) {
        config.tls(Backend::S2nTls)
    } else {
        config
            .key_exchange(KeyExchange::Exactly(offer(cell)))
            .suites(vec![cell.suite])
    };
    let config = if cell.client_auth {
        config.identity(Identity::from_pem(
            pem.client_chain.as_bytes(),
            pem.client_key.as_bytes(),
        )?)
    } else {
        config
    };
    Ok(match cell.resumption {
        Resumption::Full => config.without_resumption(),
        Resumption::Psk => config,
        Resumption::ZeroRtt => config.offer_early_data(),
    })
}

/// Returns the groups that a client offers; it sends the share of the first.
fn offer(cell: &Cell) -> Vec<Group> {
    first_share(cell).into_iter().chain([cell.group]).collect()
}

/// Returns the narrowest policy of s2n-tls that has the cell's group, and can show its certificate.
fn s2n_policy(cell: &Cell) -> Result<KeyExchange, Failure> {
    let pure = Group::MLKEM1024;
    match (cell.group, cell.certificate) {
        (Group::MLKEM768, _) => {
            Err(format!("s2n-tls has no {}; use provider rustls for it", cell.group).into())
        }
        // The policy for CNSA 2.0 has this group, kind of certificate and suite, and no others.
        (Group::MLKEM1024, Certificate::MlDsa87) if cell.suite == Suite::Aes256GcmSha384 => {
            Ok(KeyExchange::Exactly(vec![pure]))
        }
        (Group::MLKEM1024, Certificate::MlDsa44 | Certificate::MlDsa65 | Certificate::MlDsa87) => {
            Err(format!(
                "the only policy of s2n-tls with {pure} and ML-DSA certificates has ml-dsa-87 and {}; \
                 use these or provider rustls",
                Suite::Aes256GcmSha384
            )
            .into())
        }
        // A policy of its own keeps the server from building two.
        (Group::MLKEM1024, _) => Ok(KeyExchange::RequirePostQuantum),
        _ => Ok(KeyExchange::PreferPostQuantum),
    }
}
