//! What a connection takes over from earlier connections and leaves to later ones.

pub(super) mod new_token;
pub(super) mod resume;
pub(super) mod server;
