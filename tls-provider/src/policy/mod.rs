//! What a configuration allows: certificates, signatures and profiles.

pub(crate) mod certificate;
#[cfg(feature = "serde")]
pub(crate) mod configured;
pub(crate) mod profile;
pub(crate) mod signer;
