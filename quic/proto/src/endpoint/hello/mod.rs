//! Partial ClientHellos, the packets that arrived with them, and clients that must return.

pub(super) mod assembly;
pub(super) mod early_packets;
pub(super) mod retry;
pub(super) mod table;
