//! What is counted while scripts run.

pub(super) mod failing;
pub(super) mod mismatch;
pub(super) mod names;
pub(super) mod observer;
pub(super) mod phase;
pub(super) mod process;
pub(super) mod progress;
pub(super) mod recorder;
