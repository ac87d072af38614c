//! HTTP/3 over a connection of the transport: what clients and servers share.

mod accept;
mod counts;
mod drive;
mod link;
mod priorities;
mod recv;
mod send;
mod transport;

pub(crate) use accept::{Arrived, Requests, Stream};
pub(crate) use link::{Link, Reserved, Setup, TakesStreams};
pub(crate) use recv::Recv;
pub(crate) use send::Send;
pub use transport::StreamError;
pub(crate) use transport::Transport;
