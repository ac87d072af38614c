//! The worst case of memory that a configuration promises, reached by hostile peers. A program of
//! its own, because it counts every byte that is allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod connection;
mod crypto;
mod endpoint;

use std::time::Instant;

use hybriq_sim::heap::{Counting, allocated_by_thread as allocated};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns a time to begin at.
#[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the bytes allocated since then and not given back.
fn since(before: usize) -> u64 {
    (allocated() - before) as u64
}

/// Asserts that a number is at most the bound, and at least nine tenths of it.
fn reaches(what: &str, held: u64, most: u64) {
    assert!(held <= most, "{what}: {held} of {most} bytes");
    assert!(10 * held >= 9 * most, "{what}: only {held} of {most} bytes");
}
