//! The system's reports about datagrams that did not leave or did not arrive.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod queue;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "absent.rs"]
mod queue;
mod refusal;

pub(crate) use queue::Report;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use queue::{keep, next};
pub(crate) use refusal::cause_of;
