//! Scenarios: what clients and servers do, as data.
//!
//! ```text
//!  file or bundled name ─► Template ── params ─► Scenario ─► engine
//!                                                   ▲
//!  s2n-netbench's file ─► seed ─────────────────────┤
//!  Rust: Scenario::build ───────────────────────────┘
//! ```

pub mod builder;
mod bundled;
mod checkpoints;
pub(crate) mod listing;
mod locate;
mod model;
mod op;
mod params;
mod problem;
mod seed;
mod streams;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod validate;

pub use bundled::bundled;
pub use model::*;
pub use op::*;
pub use params::{Default, Param};
pub(crate) use template::MAX_OPEN_LOOP;
pub use template::Template;
pub(crate) use text::parse_number;
