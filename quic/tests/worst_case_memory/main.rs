//! The worst case of memory that a configuration promises, reached by hostile peers. A program of
//! its own, because it counts every byte that is allocated.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]
#![expect(unsafe_code, reason = "an allocator cannot be wrapped without")]

mod connection;
mod crypto;
mod endpoint;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Instant,
};

struct Counting;

thread_local! {
    /// Bytes of this thread: tests run side by side.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(usize) -> usize) {
    let _ = ALLOCATED.try_with(|bytes| bytes.set(change(bytes.get())));
}

// SAFETY: every call goes to the system's allocator as it came; the counter changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|bytes| bytes.wrapping_add(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(|bytes| bytes.wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocated() -> usize {
    ALLOCATED.with(Cell::get)
}

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
