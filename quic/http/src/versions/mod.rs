//! What the versions of HTTP have on the wire, for clients and servers.

pub(crate) mod content;
pub(crate) mod http2;
pub(crate) mod http3;
pub(crate) mod interim;
