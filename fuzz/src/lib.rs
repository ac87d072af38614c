//! bolero targets for everything that a peer can send, in one file each under `tests/`.
//!
//! `cargo test -p hybriq-fuzz` runs each with a short random budget. `fuzz/run` runs them for longer,
//! coverage-guided, and counts the executions in `fuzz/RESULTS.md`. `fuzz/corpus` holds recorded
//! datagrams of other implementations' clients, which `fuzz/record` made from the tests of
//! `interop`.
