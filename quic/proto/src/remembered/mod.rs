//! What is remembered about a peer from one connection to the next.

pub mod known_path;
pub mod origin;
pub mod saved_path;
pub mod server;
pub mod token;
