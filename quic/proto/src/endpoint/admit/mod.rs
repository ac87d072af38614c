//! Admission of clients: proof of address, load, and spent tokens.

pub(super) mod admission;
pub(super) mod load;
pub(super) mod replay;
