//! Reasons sent to clients with CONNECTION_REFUSED.

/// The endpoint drains or is closed.
pub(crate) const STOPPED: &str = "the server accepts no more connections";

/// The application refused the client, or dropped its `Incoming`.
pub(crate) const BY_APPLICATION: &str = "the application refused the connection";

/// No task waits for the handshake any longer.
pub(crate) const GIVEN_UP: &str = "the application gave the handshake up";

/// The limit of connections is reached.
pub(crate) const TOO_MANY: &str = "too many connections";

/// The limit of unfinished handshakes is reached.
pub(crate) const TOO_BUSY: &str = "too many handshakes";

/// The rate of the client's network is used up.
pub(crate) const TOO_FAST: &str = "too many connections from this network";
