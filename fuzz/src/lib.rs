//! bolero targets for everything that a peer can send, in one file each under `tests/`.
//!
//! `cargo test -p hybriq-fuzz` runs each with a short random budget. For a long run, use `cargo
//! bolero test -p hybriq-fuzz --test frames every_frame` (libFuzzer) or another engine of bolero.
