//! Streams of sessions.

mod recv;
mod send;

pub use recv::RecvStream;
pub use send::SendStream;
