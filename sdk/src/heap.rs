//! An allocator that counts, around the program's own.

#![allow(unsafe_code)] // `GlobalAlloc`

use std::alloc::{GlobalAlloc, Layout};

use crate::imp::heap;

/// Size in bytes from which an allocation is an event of its own, unless the program says otherwise.
const REPORT_ABOVE: usize = 1 << 20;

/// Records the program's use of memory. It passes each call on to the program's allocator, and counts.
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static HEAP: hairline::Heap<System> = hairline::Heap::new(System).report_above(4 << 20);
///
/// # fn main() -> Result<(), hairline::Error> {
/// # let path = std::env::temp_dir().join(format!("hairline-heap-{}.pftrace", std::process::id()));
/// let session = hairline::Session::builder().output(&path).start()?;
/// let large = vec![1u8; 5 << 20];                      // an instant with its size
/// # std::hint::black_box(&large);
/// let summary = session.stop()?;
/// # if cfg!(feature = "enable") {
/// assert!(summary.records > 0);
/// # }
/// # let _ = std::fs::remove_file(path);
/// # Ok(())
/// # }
/// ```
///
/// A session that records the category `heap` has these, sampled every 50 ms (a process that records nothing
/// else too) and once more at its end:
///
/// | in the trace | meaning |
/// |---|---|
/// | counter `heap: live bytes since start` | bytes allocated less bytes freed since the session began |
/// | counter `heap: live bytes` | the same since the process began, with [`count_always`](Self::count_always) |
/// | counter `heap: allocations` | allocations per second, up to the next value |
/// | counter `heap: frees` | frees per second, up to the next value |
/// | instant `large allocation` | an allocation above [`report_above`](Self::report_above), with its `bytes` |
///
/// The instant is on the thread that allocates, inside the slice of the innermost open scope. A reallocation
/// counts as one allocation and one free. Bytes are those that the program asked for. The counts include the
/// memory of Hairline itself. Allocations that Hairline makes while it records an event are counted, but are
/// no events.
///
/// *Live bytes since start* can be negative: the program frees memory that it allocated before.
///
/// With [`SessionBuilder::heap_profile`](crate::SessionBuilder::heap_profile) the trace also says who
/// allocated the memory that is live, by call stack.
///
/// # Cost
///
/// Without a session that records `heap`, a call costs a load and a branch more. With one it costs some
/// 20 instructions or 1 ns more, in a heap profile 4 instructions more than that: each thread has its own
/// counts. The counts of a 257th thread, and of those beyond it, are shared and cost an atomic addition.
///
/// # Limits
///
/// An allocation starts no session. The session that the environment requests starts at the first event of
/// another kind. A `Heap` that is not the global allocator takes part in the sessions that start after its
/// first call.
#[derive(Debug)]
pub struct Heap<A> {
    allocator: A,
    report_above: usize,
    counts_always: bool,
}

impl<A> Heap<A> {
    /// Counts what `allocator` allocates.
    #[must_use]
    pub const fn new(allocator: A) -> Self {
        Self { allocator, report_above: REPORT_ABOVE, counts_always: false }
    }

    /// Sets the size in bytes above which an allocation is an instant; 1 MiB if not set, `usize::MAX` for
    /// none.
    #[must_use]
    pub const fn report_above(mut self, bytes: usize) -> Self {
        self.report_above = bytes;
        self
    }

    /// Counts also while no session records, from the first allocation of the process on, which costs some
    /// 1 ns for each call. A session then has `heap: live bytes`, which includes the memory that was
    /// allocated before the session.
    #[must_use]
    pub const fn count_always(mut self) -> Self {
        self.counts_always = true;
        self
    }
}

impl<A> Heap<A> {
    /// Counts an allocation, after it.
    #[inline(always)]
    fn allocated(&self, block: *mut u8, size: usize) {
        let is_large = size > self.report_above;
        if heap::is_on() && !block.is_null() && (is_large || !heap::allocated(size)) {
            heap::look_at(block, size, None, is_large, self.counts_always);
        }
    }

    /// Counts a free, before it: afterwards another block may have the address.
    #[inline(always)]
    fn freed(&self, block: *mut u8, size: usize) {
        if heap::is_on() && !heap::freed(block, size) {
            heap::freed_first(size, self.counts_always);
        }
    }

    /// Counts a reallocation, after it.
    #[inline(always)]
    fn moved(&self, block: *mut u8, before: usize, now: usize) {
        let is_large = now > self.report_above && now > before;
        if heap::is_on() && (is_large || !heap::moved(before, now)) {
            heap::look_at(block, now, Some(before), is_large, self.counts_always);
        }
    }
}

// SAFETY: each method passes its arguments unchanged to the same method of `A`, which keeps the contract of
// `GlobalAlloc`, and returns that method's result. Before the call or after it the method only counts and
// samples: the functions of `heap` use the block's address as a number, do not unwind, and free no memory of
// the program. Where they allocate (an event for a large block), that call is complete before `A` is called,
// or begins after `A` has done its work. So `A` is never entered from within itself.
//
// `inline(always)`: a heap profile passes over the functions of `heap.rs` that are inlined in others, and a
// frame of their own would be the innermost one of each stack.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Heap<A> {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is also that of `A`.
        let block = unsafe { self.allocator.alloc(layout) };
        self.allocated(block, layout.size());
        block
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let block = unsafe { self.allocator.alloc_zeroed(layout) };
        self.allocated(block, layout.size());
        block
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.freed(block, layout.size());
        // SAFETY: `block` is from one of the methods here, which return what `A` returned for this layout.
        unsafe { self.allocator.dealloc(block, layout) };
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let taken = if heap::may_be_sampled(block) { heap::take(block) } else { None };
        // SAFETY: as in `dealloc`; the caller vouches for `new_size`.
        let moved = unsafe { self.allocator.realloc(block, layout, new_size) };
        if moved.is_null() {
            // The old block stays as it is.
            if let Some(taken) = taken {
                heap::put_back(taken, block);
            }
            return moved;
        }
        if let Some(taken) = taken {
            heap::left(taken);
        }
        self.moved(moved, layout.size(), new_size);
        moved
    }
}
