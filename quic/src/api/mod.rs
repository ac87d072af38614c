//! The handles of an application: connections, streams, and connections in progress.

#[cfg(feature = "tokio")]
pub(crate) mod connecting;
#[cfg(feature = "tokio")]
pub(crate) mod connection;
#[cfg(feature = "tokio")]
pub(crate) mod early_connection;
#[cfg(feature = "futures")]
pub(crate) mod futures;
#[cfg(feature = "tokio")]
pub(crate) mod generic;
#[cfg(feature = "tokio")]
pub(crate) mod incoming;
#[cfg(feature = "tokio")]
pub(crate) mod post_quantum;
#[cfg(feature = "tokio")]
pub(crate) mod stream;
