//! The implementations, one file each.

mod hybriq;
mod quinn;
mod s2n_quic;

use ::hybriq::Backend;

use crate::Peer;

pub use self::{hybriq::Hybriq, quinn::Quinn, s2n_quic::S2nQuic};

/// All of them, hybriq first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Hybriq(Backend::Rustls)),
        Box::new(Hybriq(Backend::S2nTls)),
        Box::new(Quinn),
        Box::new(S2nQuic),
    ]
}
