//! TLS messages that are read or written here (RFC 8446 §4).

pub(crate) mod flight;
pub(crate) mod framing;
pub(crate) mod hello;
pub(crate) mod ticket;
