//! Counters of endpoints and connections, and measurements of paths.
//!
//! A counter is declared once: its field, its documentation and its metric are one line of
//! [`EndpointStats`] or [`ConnectionStats`]. All code that publishes or adds up counters uses
//! [`EndpointStats::metrics`] and [`ConnectionStats::metrics`].

pub mod census;
mod connection;
mod declare;
mod endpoint;

pub use connection::{
    ConnectionStats, DatagramStats, MemoryHeld, PacketDrops, PathStats, Phase, Tables,
};
pub use declare::{Kind, Label, Metric};
pub use endpoint::{DatagramDrops, DropReason, EndpointStats};
