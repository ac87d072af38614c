//! Hot restart: the messages between two processes, and the datagrams that one passes to the other.

pub(super) mod backlog;
pub(super) mod earlier;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod link;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod listener;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) mod records;
pub(super) mod relay;
