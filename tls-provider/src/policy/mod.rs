//! What a configuration allows: certificates, signatures and profiles.

pub(crate) mod certificate;
pub(crate) mod profile;
pub(crate) mod signer;
