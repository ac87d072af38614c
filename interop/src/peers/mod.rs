//! The implementations, one file each.

mod quinn;
mod s2n_quic;

use crate::Peer;

pub use self::{quinn::Quinn, s2n_quic::S2nQuic};

/// All of them, hybriq first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![Box::new(Quinn), Box::new(S2nQuic)]
}
