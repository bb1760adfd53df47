//! Knows whether a thread is inside the allocator: a signal handler that finds it there must not do what
//! allocates, or forks, since the allocator's locks are then this thread's own.

// `GlobalAlloc` is an unsafe trait: there is no other way to see every allocation.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Const-initialised and without a destructor: a signal handler may read it at any point of a thread's
    // life.
    static ALLOCATES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside the allocator.
#[must_use]
pub fn is_allocating() -> bool {
    ALLOCATES.get()
}

/// The system's allocator, which marks the threads that are inside it.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarkingAlloc;

fn marked<R>(f: impl FnOnce() -> R) -> R {
    let before = ALLOCATES.replace(true);
    let result = f();
    ALLOCATES.set(before);
    result
}

// SAFETY: every call goes to `System` with its arguments as they are, so its guarantees are ours. Marking
// touches a `Cell` of this thread: it does not allocate, unwind or re-enter.
unsafe impl GlobalAlloc for MarkingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is also `System`'s.
        marked(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        marked(|| unsafe { System.dealloc(p, layout) });
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        marked(|| unsafe { System.realloc(p, layout, size) })
    }
}
