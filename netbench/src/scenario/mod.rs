//! Scenarios: the behaviour of clients and servers as data.
//!
//! ```text
//!  file or bundled name ─► Template ── params ─► Scenario ─► engine
//!                                                   ▲
//!  s2n-netbench's file ─► seed ─────────────────────┘
//! ```

pub(crate) mod axes;
mod model;
mod problem;
mod rules;
mod seed;
mod template;
#[cfg(test)]
mod tests;
pub(crate) mod units;

pub(crate) use model::op::*;
pub(crate) use model::pattern;
pub(crate) use model::*;
pub(crate) use template::Template;
pub(crate) use template::bundled::bundled;
pub(crate) use template::listing;

/// Version of the format that this netbench reads and writes.
pub(crate) const FORMAT: u32 = 1;
