//! Measures how much memory a decoder holds at once.

// `GlobalAlloc` is an unsafe trait: there is no other way to see every allocation.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Const-initialised and without destructors: touching them neither allocates nor registers anything.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator. It counts the bytes that each thread holds while counting is enabled.
#[derive(Debug)]
pub(crate) struct Meter;

// SAFETY: every call goes to `System` with its arguments as they are, so its guarantees are ours. Counting
// touches `Cell`s of this thread: it does not allocate, unwind or re-enter.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(new_size); // both blocks exist during the copy
        subtract(layout.size());
        // SAFETY: `block` came from this allocator, hence from `System`, with this layout.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: `block` came from this allocator, hence from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

fn add(size: usize) {
    if COUNTING.get() {
        LIVE.set(LIVE.get().saturating_add(size));
        PEAK.set(PEAK.get().max(LIVE.get()));
    }
}

fn subtract(size: usize) {
    if COUNTING.get() {
        LIVE.set(LIVE.get().saturating_sub(size));
    }
}

/// Enables or disables counting on this thread. Its drop restores the previous state, also in a panic.
struct Counting(bool);

impl Counting {
    fn set(on: bool) -> Self {
        Self(COUNTING.replace(on))
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        COUNTING.set(self.0);
    }
}

/// Runs `f`. Returns the most bytes that this thread held at once, of those allocated in `f`.
pub(crate) fn peak_during<T>(f: impl FnOnce() -> T) -> (T, usize) {
    LIVE.set(0);
    PEAK.set(0);
    let counting = Counting::set(true);
    let result = f();
    drop(counting);
    (result, PEAK.get())
}

/// Runs `f` without counting its memory, which is not the decoder's.
pub(crate) fn uncounted<T>(f: impl FnOnce() -> T) -> T {
    let _counting = Counting::set(false);
    f()
}
