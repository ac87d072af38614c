//! Signatures with keys outside this process.
//!
//! The signer travels with its certificate chain. The callback finds it there and signs at once:
//! s2n-tls would wait, but every [`Session::drive`](crate::Session::drive) is synchronous.

use std::{pin::Pin, sync::Arc};

use s2n_tls::callbacks::{
    ConnectionFuture, OperationType, PrivateKeyCallback, PrivateKeyOperation,
};
use s2n_tls::config::Builder;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{HashAlgorithm, SignatureAlgorithm};
use s2n_tls::error::Error as S2nError;

use super::{reason, unsupported};
use crate::{Alert, ConfigError, Error, Identity, SignatureScheme, Signer, options::Key};

/// Returns true if identities have signers; then all of them must have one.
pub(super) fn check(identities: &[Identity]) -> Result<bool, ConfigError> {
    let has_signer = |identity: &&Identity| matches!(identity.key(), Key::Signer(_));
    let count = identities.iter().filter(has_signer).count();
    if count > 0 && count < identities.len() {
        return Err(unsupported(
            "once one identity has a signer, all must have one; give signers, or use rustls",
        ));
    }
    Ok(count > 0)
}

/// Makes the configuration call the signers of these identities, if they have any.
pub(super) fn install(builder: &mut Builder, identities: &[Identity]) -> Result<(), ConfigError> {
    if !check(identities)? {
        return Ok(());
    }
    builder
        .set_private_key_callback(Ask)
        .map(drop)
        .map_err(|error| unsupported(reason(&error)))
}

/// Callback that calls the signer of the chosen certificate.
struct Ask;

impl PrivateKeyCallback for Ask {
    fn handle_operation(
        &self,
        connection: &mut Connection,
        operation: PrivateKeyOperation,
    ) -> Result<Option<Pin<Box<dyn ConnectionFuture>>>, S2nError> {
        let signature = sign(connection, &operation).map_err(|reason| {
            let error = Error::new(Alert::INTERNAL_ERROR, reason);
            S2nError::application(Box::new(error))
        })?;
        operation.set_output(connection, &signature)?;
        Ok(None)
    }
}

fn sign(connection: &Connection, operation: &PrivateKeyOperation) -> Result<Vec<u8>, String> {
    let kind = operation.kind().map_err(|error| reason(&error))?;
    let chain = connection.selected_cert();
    let signer = chain
        .as_ref()
        .and_then(|chain| chain.application_context::<Arc<dyn Signer>>())
        .ok_or("the certificate has no signer")?;
    let scheme = scheme(kind).ok_or("s2n-tls asked for a signature of an unknown kind")?;
    if !signer.schemes().contains(&scheme) {
        return Err(format!(
            "s2n-tls chose {scheme}, which the signer does not have"
        ));
    }
    let len = operation.input_size().map_err(|error| reason(&error))?;
    let mut digest = vec![0; len];
    operation
        .input(&mut digest)
        .map_err(|error| reason(&error))?;
    signer
        .sign_digest(scheme, &digest)
        .map_err(|error| error.to_string())
}

/// Returns the scheme of an operation.
fn scheme(kind: &OperationType) -> Option<SignatureScheme> {
    match kind {
        OperationType::Sign(algorithm, hash) => scheme_of(*algorithm, *hash),
        _ => None,
    }
}

/// Returns the scheme of an algorithm with a hash. In TLS 1.3 each hash belongs to one curve.
pub(super) fn scheme_of(
    algorithm: SignatureAlgorithm,
    hash: HashAlgorithm,
) -> Option<SignatureScheme> {
    let hash = match hash {
        HashAlgorithm::SHA256 => 0,
        HashAlgorithm::SHA384 => 1,
        HashAlgorithm::SHA512 => 2,
        _ => return None,
    };
    Some(SignatureScheme(match algorithm {
        SignatureAlgorithm::ECDSA => 0x0403 + 0x0100 * hash,
        SignatureAlgorithm::RSA_PSS_RSAE => 0x0804 + hash,
        SignatureAlgorithm::RSA_PSS_PSS => 0x0809 + hash,
        _ => return None,
    }))
}
