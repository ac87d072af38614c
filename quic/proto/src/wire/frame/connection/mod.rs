//! Frames about the connection: its handshake, ids, paths, datagrams and end.

pub(super) mod cid;
pub(super) mod close;
pub(super) mod data;
pub(super) mod path;
