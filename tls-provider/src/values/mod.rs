//! Plain data that passes between TLS and QUIC.

pub(crate) mod alert;
pub(crate) mod compression;
pub(crate) mod exporter;
pub(crate) mod group;
pub(crate) mod level;
pub(crate) mod negotiated;
pub(crate) mod resumption;
pub(crate) mod secret;
