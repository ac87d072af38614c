//! Scenarios: what clients and servers do, as data.

mod model;
mod text;

pub use model::*;
