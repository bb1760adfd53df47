//! Counts a thread's heap allocations.
//!
//! A test binary installs the allocator and then counts:
//!
//! ```
//! use hairline_tests::alloc::{CountingAlloc, allocations_during};
//!
//! #[global_allocator]
//! static ALLOC: CountingAlloc = CountingAlloc;
//!
//! let (text, allocations) = allocations_during(|| String::from("one"));
//! assert_eq!((text.len(), allocations), (3, 1));
//! ```

// `GlobalAlloc` is an unsafe trait: there is no other way to see every allocation.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use crate::unlocked;

thread_local! {
    // Const-initialised and without a destructor: the first touch of it neither allocates nor registers
    // anything, so it can be counted up from inside the allocator, at any point of a thread's life.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts what each thread asks of it (a reallocation is an allocation), and
/// ends the process where that is asked under a lock of the recorder.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAlloc;

// SAFETY: every call goes to `System` with its arguments as they are, so its guarantees are ours. Counting
// touches a `Cell` of this thread: it does not allocate, unwind or re-enter.
unsafe impl GlobalAlloc for CountingAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        // SAFETY: `block` came from this allocator, hence from `System`, with this layout.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unlocked::require("memory is freed");
        // SAFETY: `block` came from this allocator, hence from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

fn count_one() {
    unlocked::require("memory is allocated");
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

/// Runs `f` and tells how many allocations this thread made in it.
///
/// # Panics
/// If the test binary has not installed [`CountingAlloc`]: a count of 0 would then say nothing.
pub fn allocations_during<R>(f: impl FnOnce() -> R) -> (R, u64) {
    require_installed();
    let before = ALLOCATIONS.get();
    let result = f();
    (result, ALLOCATIONS.get() - before)
}

fn require_installed() {
    let before = ALLOCATIONS.get();
    drop(black_box(Box::new(0_u8)));
    assert_ne!(before, ALLOCATIONS.get(), "CountingAlloc is not this binary's #[global_allocator]");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_where_nothing_is_allocated() {
        let ((), allocations) = allocations_during(|| {
            black_box([0_u64; 64]);
        });
        assert_eq!(allocations, 0);
    }

    #[test]
    fn allocations_and_reallocations_count_and_frees_do_not() {
        let ((), allocations) = allocations_during(|| {
            let mut v = black_box(Vec::<u64>::with_capacity(1));
            v.reserve_exact(1000);
            drop(black_box(v));
            drop(black_box(vec![0_u8; 100]));
        });
        assert_eq!(allocations, 3);
    }

    #[test]
    fn another_threads_allocations_are_its_own() {
        use std::sync::Barrier;
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                barrier.wait();
                let (_, allocations) = allocations_during(|| black_box(Box::new(1_u64)));
                barrier.wait();
                allocations
            });
            let ((), allocations) = allocations_during(|| {
                barrier.wait();
                barrier.wait();
            });
            assert_eq!(allocations, 0);
            assert_eq!(busy.join().unwrap(), 1);
        });
    }
}
