//! Scenarios: what clients and servers do, as data.
//!
//! ```text
//!  file or bundled name ─► Template ── params ─► Scenario ─► engine
//!                                                   ▲
//!  s2n-netbench's file ─► seed ─────────────────────┤
//!  Rust: Scenario::build ───────────────────────────┘
//! ```

mod bundled;
mod checkpoints;
mod model;
mod params;
mod problem;
mod streams;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod validate;

pub use bundled::bundled;
pub use model::*;
pub use params::{Default, Param};
pub use template::Template;
pub(crate) use text::parse_number;
