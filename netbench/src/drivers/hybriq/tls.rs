//! TLS of both ends, such that a connection can only negotiate what its cell says.

use std::str::FromStr;

use hybriq::tls::{ClientAuth, Suite};
use hybriq::{Backend, ClientConfig, Group, Identity, KeyExchange, ServerConfig, Trust};

use super::super::{ALPN, Role, Setup, first_share};
use crate::Failure;
use crate::axes::{Cell, Certificate, Resumption};

/// Returns true if hybriq can play that role.
pub(super) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    group(&cell.group)?;
    suite(&cell.suite)?;
    match (role, backend(cell)?) {
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

/// Returns what s2n-tls cannot do over QUIC.
fn check_s2n(cell: &Cell) -> Result<(), Failure> {
    let policy = s2n_policy(group(&cell.group)?)?;
    let ml_dsa = [
        Certificate::MlDsa44,
        Certificate::MlDsa65,
        Certificate::MlDsa87,
    ];
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
    if policy == KeyExchange::RequirePostQuantum && ml_dsa.contains(&cell.certificate) {
        return Err(format!(
            "no policy of s2n-tls has both {} and ML-DSA certificates; use provider rustls",
            cell.group
        )
        .into());
    }
    Ok(())
}

/// s2n-tls issues no ticket on a resumed connection, so that one is used again and again; only the
/// client of s2n-tls does so.
fn reuses_ticket(cell: &Cell) -> bool {
    cell.provider == Backend::S2nTls.name() && cell.resumption == Resumption::Psk
}

/// It takes no list of groups or suites either.
fn check_s2n_client(cell: &Cell) -> Result<(), Failure> {
    let first = ("X25519MLKEM768", "TLS_AES_128_GCM_SHA256");
    if (cell.group.as_str(), cell.suite.as_str()) == first {
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
    let group = group(&cell.group)?;
    let identity = Identity::from_pem(pem.server_chain.as_bytes(), pem.server_key.as_bytes())?;
    let config = ServerConfig::new(identity).alpn([ALPN]);
    let mut config = match backend(cell)? {
        Backend::Rustls => config
            .key_exchange(KeyExchange::Exactly(vec![group]))
            .suites(vec![suite(&cell.suite)?]),
        // It takes no list of suites; the client offers but one.
        Backend::S2nTls => config.tls(Backend::S2nTls).key_exchange(s2n_policy(group)?),
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

/// Clients use rustls wherever they can: it offers exactly one group, or makes a server ask for
/// another.
pub(super) fn client(setup: &Setup) -> Result<ClientConfig, Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let config = ClientConfig::new()
        .alpn([ALPN])
        .trust(Trust::roots_pem(pem.root.as_bytes())?);
    let config = if reuses_ticket(cell) {
        config.tls(Backend::S2nTls)
    } else {
        config
            .key_exchange(KeyExchange::Exactly(offer(cell)?))
            .suites(vec![suite(&cell.suite)?])
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

/// The groups a client offers; it sends the share of the first.
fn offer(cell: &Cell) -> Result<Vec<Group>, Failure> {
    let wanted = group(&cell.group)?;
    Ok(match first_share(cell) {
        Some(other) => vec![group(other)?, wanted],
        None => vec![wanted],
    })
}

/// The group of that name, one of the eight.
fn group(name: &str) -> Result<Group, Failure> {
    Group::from_name(name)
        .filter(|group| Group::ALL.contains(group))
        .ok_or_else(|| {
            let valid = Group::ALL.map(|group| group.to_string()).join(", ");
            format!("unknown group '{name}'; valid: {valid}").into()
        })
}

/// The cipher suite of that IANA name.
fn suite(name: &str) -> Result<Suite, Failure> {
    let all = [
        Suite::Aes128GcmSha256,
        Suite::Aes256GcmSha384,
        Suite::ChaCha20Poly1305Sha256,
    ];
    all.into_iter()
        .find(|suite| suite.to_string() == name)
        .ok_or_else(|| {
            let valid = all.map(|suite| suite.to_string()).join(", ");
            format!("unknown cipher suite '{name}'; valid: {valid}").into()
        })
}

fn backend(cell: &Cell) -> Result<Backend, Failure> {
    Backend::from_str(&cell.provider).map_err(|_| {
        let valid = Backend::ALL.map(Backend::name).join(", ");
        format!("unknown TLS provider '{}'; valid: {valid}", cell.provider).into()
    })
}

/// The narrowest policy of s2n-tls that has the group.
fn s2n_policy(group: Group) -> Result<KeyExchange, Failure> {
    [
        KeyExchange::PreferPostQuantum,
        KeyExchange::RequirePostQuantum,
    ]
    .into_iter()
    // The policy of that name has no MLKEM768, whatever the list says.
    .find(|policy| group != Group::MLKEM768 && policy.groups().contains(&group))
    .ok_or_else(|| format!("s2n-tls has no {group}; use provider rustls for it").into())
}
