//! Bytes on the heap, for tests that compare them before and after.
//!
//! A test program that counts installs the allocator:
//! ```
//! use hybriq_sim::heap;
//!
//! #[global_allocator]
//! static ALLOCATOR: heap::Counting = heap::Counting;
//!
//! let before = heap::allocated();
//! let kept = vec![0_u8; 1000];
//! assert!(heap::allocated() >= before + 1000);
//! drop(kept);
//! ```
#![expect(unsafe_code, reason = "an allocator cannot be wrapped without")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The system's allocator, with every byte counted.
#[derive(Debug)]
pub struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOCATED_BY_THREAD: Cell<usize> = const { Cell::new(0) };
}

/// Returns the bytes that the process has allocated and not freed. It is 0 unless [`Counting`] is
/// the global allocator.
pub fn allocated() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Returns the bytes that this thread has allocated, less those that it has freed, for tests that
/// run side by side. A thread that frees the memory of others wraps around 0: only differences are
/// meaningful.
pub fn allocated_by_thread() -> usize {
    ALLOCATED_BY_THREAD.with(Cell::get)
}

fn count_for_thread(change: impl FnOnce(usize) -> usize) {
    // A thread that is ending frees memory after its counter is gone.
    let _ = ALLOCATED_BY_THREAD.try_with(|bytes| bytes.set(change(bytes.get())));
}

// SAFETY: every call is passed on unchanged to the system's allocator; the counters change nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        count_for_thread(|bytes| bytes.wrapping_add(layout.size()));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        count_for_thread(|bytes| bytes.wrapping_sub(layout.size()));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
