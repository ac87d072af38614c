//! Scenarios: the behaviour of clients and servers as data.
//!
//! ```text
//!  file or bundled name ─► Template ── params ─► Scenario ─► engine
//!                                                   ▲
//!  s2n-netbench's file ─► seed ─────────────────────┘
//! ```

mod bundled;
mod bytes;
mod checkpoints;
pub(crate) mod listing;
mod locate;
mod model;
mod op;
mod params;
mod problem;
mod rules;
mod schema;
mod search;
mod seed;
mod streams;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod validate;

pub(crate) use bundled::bundled;
pub(crate) use model::*;
pub(crate) use op::*;
pub(crate) use template::Template;

/// Version of the format that this netbench reads and writes.
pub(crate) const FORMAT: u32 = 1;
