//! Opening of sockets and their options.

pub(super) mod bind;
pub(super) mod buffers;
pub(super) mod control;
pub(super) mod steer;
