//! What a client remembers about servers.

pub(super) mod careful_resume;
pub(super) mod known_versions;
pub(super) mod origins;
pub(super) mod token_store;
