//! The implementations, one file each. Foreign stacks are set up by [`hybriq_netbench::stacks`], as
//! for measurements; a file here adds what the cases need.

mod hybriq;
#[cfg(feature = "quiche")]
mod quiche;
mod quinn;
mod s2n_quic;
mod settings;

use ::hybriq::Backend;

use crate::Peer;

#[cfg(feature = "quiche")]
pub use self::quiche::Quiche;
pub use self::{
    hybriq::{Hybriq, flush_logs},
    quinn::Quinn,
    s2n_quic::S2nQuic,
};

/// Returns all implementations, hybriq first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Hybriq(Backend::Rustls)),
        Box::new(Hybriq(Backend::S2nTls)),
        Box::new(Quinn),
        Box::new(S2nQuic),
        #[cfg(feature = "quiche")]
        Box::new(Quiche),
    ]
}
