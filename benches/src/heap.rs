//! The cost of `Heap` beside the allocator that it goes around.

#![allow(unsafe_code)] // calls of an allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io;
use std::sync::atomic::AtomicU64;

use hairline::{Heap, HeapProfile, Session};

use crate::row::{Budget, Row};
use crate::timing::{Effort, beside, started};

static SYSTEM: System = System;
static HEAP: Heap<System> = Heap::new(System);

/// An allocator that costs nothing and always has the same block, for counts of instructions.
#[derive(Debug)]
struct Nothing;

static BLOCK: AtomicU64 = AtomicU64::new(0);

// SAFETY: only `pair` calls it, which does not use the block.
unsafe impl GlobalAlloc for Nothing {
    #[inline(always)]
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        BLOCK.as_ptr().cast()
    }

    #[inline(always)]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// Allocates a small block and frees it in a `Heap` around nothing.
pub fn pair_of_nothing() {
    static HEAP: Heap<Nothing> = Heap::new(Nothing);
    pair(&HEAP);
}

/// Allocates a small block and frees it.
#[inline(always)]
fn pair(allocator: &impl GlobalAlloc) {
    let layout = Layout::new::<[u64; 8]>();
    // SAFETY: the layout has a size, and the block is from the same allocator and not used after this.
    unsafe {
        let block = black_box(allocator.alloc(layout));
        if !block.is_null() {
            allocator.dealloc(block, layout);
        }
    }
}

fn row(name: &str, effort: Effort, budget: f64) -> Row {
    let (floors, subjects) = beside(effort, |_| pair(&SYSTEM), |_| pair(&HEAP));
    Row::sampled(name, "ns", &subjects, Budget::Over, budget).beside(&floors)
}

/// Measures an allocation and a free: without a session, with one, and with one that excludes the category.
///
/// # Errors
/// If the session cannot be started or stopped.
pub fn heap(effort: Effort) -> Result<Vec<Row>, hairline::Error> {
    pair(&HEAP); // announces it
    let off = row("allocation and free, no session", effort, 1.0);
    let session = started(Session::builder().output_writer(io::sink()))?;
    crate::machine::pin_to_last_core(); // not the drain thread, which is there already
    let on = row("allocation and free, counted", effort, 6.0);
    session.set_categories("-heap")?;
    let filtered = row("allocation and free, category off", effort, 1.0);
    session.stop()?;
    let session = started(Session::builder().output_writer(io::sink()).heap_profile(HeapProfile::new()))?;
    let profiled = row("allocation and free, in a heap profile", effort, 8.0);
    session.stop()?;
    Ok(vec![off, filtered, on, profiled])
}
