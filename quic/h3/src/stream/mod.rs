//! The peer's streams: messages on bidirectional ones, and the connection's own business on unidirectional ones.

mod message;
mod received;
mod uni;

#[cfg(test)]
mod tests;

pub use message::Receiver;
pub use received::{Received, Start};
pub use uni::{Uni, UniReceiver};
