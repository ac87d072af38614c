//! Admission of clients: proof of address, load, and tokens that were spent.

pub(super) mod admission;
pub(super) mod load;
pub(super) mod replay;
