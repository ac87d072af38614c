//! Counted work, and the counter of allocations.
#![expect(unsafe_code, reason = "an allocator cannot be wrapped without")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::{Result, link::OneWay, machine::Machine, world::World};

/// Allocations so far.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the counter changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Choice of the ends whose work is counted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Counted {
    No,
    Yes,
}

/// Lets an end do its work, which is counted.
#[inline(never)]
pub(crate) fn counted(
    machine: &mut Machine,
    now: Instant,
    from: &mut OneWay,
    to: &mut OneWay,
) -> Result<()> {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let done = machine.turn(now, from, to);
    machine.allocations += ALLOCATIONS.load(Ordering::Relaxed) - before;
    black_box(done)
}

/// Lets the client begin a connection, which is counted.
#[inline(never)]
pub(crate) fn counted_start(world: &mut World) -> Result<()> {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let done = world.start();
    world.client.allocations += ALLOCATIONS.load(Ordering::Relaxed) - before;
    black_box(done)
}
