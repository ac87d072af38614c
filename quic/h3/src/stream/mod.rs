//! The peer's streams: messages on bidirectional ones, and the connection's own business on unidirectional ones.

mod message;
mod uni;

#[cfg(test)]
mod tests;

pub use message::{Received, Receiver, Start};
pub use uni::{Uni, UniReceiver};
