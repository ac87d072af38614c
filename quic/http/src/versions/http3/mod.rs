//! HTTP/3 over a connection of the transport: what clients and servers share.

mod link;
mod recv;
mod send;
mod stream;
mod transport;

pub(crate) use link::Link;
pub(crate) use recv::Recv;
pub(crate) use send::Send;
pub(crate) use stream::Stream;
pub use transport::StreamError;
pub(crate) use transport::Transport;
