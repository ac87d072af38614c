//! Metrics of a worker and its connections, for the facade of the crate `metrics`.
//!
//! The worker counts in its own memory. It reports changes at most once a second, so that no packet
//! pays for it. Without the feature `metrics` none of this is compiled.

pub(super) mod trace;

#[cfg(not(feature = "metrics"))]
mod absent;
#[cfg(feature = "metrics")]
mod census;
#[cfg(feature = "metrics")]
mod connections;
#[cfg(feature = "metrics")]
mod describe;
#[cfg(feature = "metrics")]
mod present;
#[cfg(feature = "metrics")]
mod report;

#[cfg(not(feature = "metrics"))]
pub(super) use absent::{Life, Meter};
#[cfg(feature = "metrics")]
pub(super) use connections::Life;
#[cfg(feature = "metrics")]
pub(super) use present::Meter;
