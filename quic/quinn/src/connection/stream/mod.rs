//! The two ends of a stream.

mod recv;
mod send;
mod stopped;

pub use self::{
    recv::{Chunk, RecvStream},
    send::{SendStream, Written},
};
