//! Frames about the connection: its handshake, ids, paths, datagrams and end.

pub(super) mod cid;
pub(super) mod close;
pub(super) mod crypto;
pub(super) mod datagram;
pub(super) mod path;
pub(super) mod token;
