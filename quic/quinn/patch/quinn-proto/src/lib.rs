//! [`hybriq_quinn`] under the name of quinn-proto, for `[patch.crates-io]`.

pub use hybriq_quinn::*;
