//! Opening of sockets and their options.

pub(super) mod bind;
pub(super) mod buffers;
pub(super) mod control;
#[cfg(unix)]
pub(super) mod inherited;
pub(super) mod steer;
