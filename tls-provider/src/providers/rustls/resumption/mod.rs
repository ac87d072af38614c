//! Sessions that a client remembers, and tickets that a server issues.

pub(super) mod remembered;
pub(super) mod tickets;
