//! Key-exchange groups of rustls, and one that it lacks.

use ::rustls::crypto::aws_lc_rs::kx_group;
use ::rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use ::rustls::ffdhe_groups::FfdheGroup;
use ::rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use zeroize::Zeroize;

use crate::providers::rustls::NAME;
use crate::{ConfigError, Group, KeyExchange};

#[cfg(test)]
mod tests;

/// Returns the groups of a policy in its order.
pub(in crate::providers::rustls) fn of_policy(
    policy: &KeyExchange,
) -> Result<Vec<Group>, ConfigError> {
    if let Some(problem) = policy.problem() {
        return Err(refuse(policy, &problem));
    }
    let groups = policy.groups();
    match groups.iter().find(|it| implementation(**it).is_none()) {
        Some(group) => Err(refuse(policy, &format!("{group} is not implemented"))),
        None => Ok(groups),
    }
}

fn refuse(policy: &KeyExchange, reason: &str) -> ConfigError {
    ConfigError::KeyExchange {
        provider: NAME,
        wanted: format!("{policy:?}"),
        hint: format!("{reason}; it can do any list of {:?}", Group::ALL),
    }
}

pub(in crate::providers::rustls) fn implementation(
    group: Group,
) -> Option<&'static dyn SupportedKxGroup> {
    Some(match group {
        Group::X25519MLKEM768 => kx_group::X25519MLKEM768,
        Group::SECP256R1MLKEM768 => kx_group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024 => &SecP384r1MlKem1024,
        Group::MLKEM768 => kx_group::MLKEM768,
        Group::MLKEM1024 => kx_group::MLKEM1024,
        Group::X25519 => kx_group::X25519,
        Group::SECP256R1 => kx_group::SECP256R1,
        Group::SECP384R1 => kx_group::SECP384R1,
        _ => return None,
    })
}

/// P-384 with ML-KEM-1024, which rustls 0.23 lacks (RFC 10024).
///
/// The elliptic curve comes first in shares and in the secret.
#[derive(Debug)]
struct SecP384r1MlKem1024;

const CODE_POINT: NamedGroup = NamedGroup::Unknown(Group::SECP384R1MLKEM1024.0);
/// An uncompressed P-384 point.
const POINT_LEN: usize = 97;
const CURVE: &dyn SupportedKxGroup = kx_group::SECP384R1;
const KEM: &dyn SupportedKxGroup = kx_group::MLKEM1024;

impl SupportedKxGroup for SecP384r1MlKem1024 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let curve = CURVE.start()?;
        let kem = KEM.start()?;
        let share = [curve.pub_key(), kem.pub_key()].concat();
        Ok(Box::new(Active { curve, kem, share }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (point, kem_key) = split(peer)?;
        let curve = CURVE.start_and_complete(point)?;
        let kem = KEM.start_and_complete(kem_key)?;
        Ok(CompletedKeyExchange {
            group: CODE_POINT,
            pub_key: [curve.pub_key, kem.pub_key].concat(),
            secret: join(&curve.secret, &kem.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        CODE_POINT
    }

    /// The part that comes first in the secret determines this (SP 800-56C rev. 2 §2).
    fn fips(&self) -> bool {
        CURVE.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct Active {
    curve: Box<dyn ActiveKeyExchange>,
    kem: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Active {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (point, ciphertext) = split(peer)?;
        let curve = self.curve.complete(point)?;
        let kem = self.kem.complete(ciphertext)?;
        Ok(join(&curve, &kem))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.curve.group(), self.curve.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.curve.complete(peer)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        CODE_POINT
    }
}

fn split(share: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    share
        .split_at_checked(POINT_LEN)
        .ok_or(Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare))
}

fn join(curve: &SharedSecret, kem: &SharedSecret) -> SharedSecret {
    let mut both = [curve.secret_bytes(), kem.secret_bytes()].concat();
    let secret = SharedSecret::from(both.as_slice());
    both.zeroize();
    secret
}
