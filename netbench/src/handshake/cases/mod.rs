//! Handshakes whose outcome is published: negotiations, and certificates on both ends.

pub(crate) mod hierarchy;
pub(crate) mod negotiation;
