//! What a connection takes from earlier ones and leaves to later ones.

pub(super) mod new_token;
pub(super) mod resume;
pub(super) mod server;
