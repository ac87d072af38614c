//! [`hybriq_quinn`] under quinn's name, for `[patch.crates-io]`.

pub use hybriq_quinn::*;
