//! Cells that BoringSSL can do.

use hybriq::tls::Suite;
use hybriq::{Backend, Group};

use crate::drivers::Role;
use crate::scenario::axes::{Cell, Certificate};
use crate::stacks;
use crate::system::failure::Failure;

/// Checks that quiche can play that role.
pub(super) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    stacks::quiche::curve(cell.group)?;
    if matches!(
        cell.certificate,
        Certificate::MlDsa44 | Certificate::MlDsa65 | Certificate::MlDsa87
    ) {
        return Err("quiche's BoringSSL has no ML-DSA certificates; use a classical one".into());
    }
    if role == Role::Server && cell.provider == Backend::S2nTls {
        return Err("quiche has BoringSSL, not s2n-tls; leave out the provider".into());
    }
    if role == Role::Client && cell.hello_retry && cell.group == Group::X25519MLKEM768 {
        return Err(
            "quiche's client sends its first classical and its first post-quantum share, so that \
             there is no HelloRetryRequest for X25519MLKEM768; use a classical group"
                .into(),
        );
    }
    check_suite(role, cell)
}

/// Checks the suite. BoringSSL takes no list; the other end allows only the wanted one, unless it is a
/// server with s2n-tls: its policies for quiche's groups begin with AES-128.
fn check_suite(role: Role, cell: &Cell) -> Result<(), Failure> {
    let only = Suite::Aes128GcmSha256;
    if role == Role::Client && cell.provider == Backend::S2nTls && cell.suite != only {
        return Err(format!(
            "quiche's client and a server with s2n-tls agree on {only}; use it, or provider rustls"
        )
        .into());
    }
    if cell.driver == cell.client && cell.suite != only {
        return Err(format!("two ends with quiche agree on {only}; use it for them").into());
    }
    Ok(())
}
