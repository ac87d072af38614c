//! Admission of clients: capacity, load, and the reasons given to refused clients.

pub(super) mod admission;
pub(super) mod handshakes;

pub(crate) use admission::refusal;
