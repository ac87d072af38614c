//! Admission of clients: places, load, and what refused clients are told.

pub(super) mod gate;
pub(super) mod handshakes;
pub(crate) mod refusal;
