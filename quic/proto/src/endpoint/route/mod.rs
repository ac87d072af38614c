//! From the ids of a datagram to its connection, worker and process.

pub(super) mod claims;
pub(super) mod generations;
pub(super) mod ids;
pub(super) mod parts;
pub(super) mod routing;

/// Identifier of a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);
