//! One handshake: the two sessions in memory, their messages, and the same over the loopback interface.

pub(super) mod handshake;
pub(super) mod loopback;
pub(super) mod messages;
