//! TLS for s2n-quic.

use hybriq::{Backend, Group};
use s2n_quic::provider::tls::s2n_tls::Server;

use super::super::{Role, Setup, rustls_config};
use crate::scenario::axes::{Cell, Certificate, Resumption};
use crate::stacks;
use crate::system::failure::Failure;

/// Checks that s2n-quic can play that role.
pub(super) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    if cell.resumption != Resumption::Full {
        return Err("s2n-quic resumes no sessions; use resumption full".into());
    }
    match (role, cell.provider) {
        (Role::Server, Backend::S2nTls) => check_s2n(cell),
        (role, _) => rustls_config::check(role, cell),
    }
}

fn check_s2n(cell: &Cell) -> Result<(), Failure> {
    let (_, has_ml_dsa) = policy(cell.group)?;
    let is_ml_dsa = matches!(
        cell.certificate,
        Certificate::MlDsa44 | Certificate::MlDsa65 | Certificate::MlDsa87
    );
    if cell.certificate == Certificate::Ed25519 {
        return Err("s2n-tls has no Ed25519 certificates; use provider rustls".into());
    }
    if is_ml_dsa && !has_ml_dsa {
        return Err(format!(
            "no policy of s2n-tls has both {} and ML-DSA certificates; use provider rustls",
            cell.group
        )
        .into());
    }
    Ok(())
}

/// Returns the policy of s2n-tls that has the group, and true if it has ML-DSA. s2n-tls takes no
/// lists of groups or suites; clients offer only one of each.
fn policy(group: Group) -> Result<(&'static str, bool), Failure> {
    match group {
        Group::X25519MLKEM768
        | Group::SECP256R1MLKEM768
        | Group::SECP384R1MLKEM1024
        | Group::X25519
        | Group::SECP256R1
        | Group::SECP384R1 => Ok(("default_pq", true)),
        // Despite its name an ordinary policy, and the only one with this group and every suite.
        Group::MLKEM1024 => Ok(("test_pq_only", false)),
        _ => Err(format!("s2n-tls has no {group}; use provider rustls for it").into()),
    }
}

pub(super) fn s2n_server(setup: &Setup) -> Result<Server, Failure> {
    let (policy, _) = policy(setup.cell.group)?;
    stacks::s2n_quic::server_tls(&setup.tls(Role::Server), policy)
}
