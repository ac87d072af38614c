//! What a connection takes from earlier ones and leaves to later ones.

pub(super) mod new_token;
pub(super) mod origins;
pub(super) mod resume;
