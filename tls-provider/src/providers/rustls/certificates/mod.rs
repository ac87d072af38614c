//! Certificates: chosen, sent and verified.

pub(super) mod hosts;
pub(super) mod identities;
pub(super) mod verify;
