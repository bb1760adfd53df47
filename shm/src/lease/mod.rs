//! A thread's right to write its chunk, and how the drain thread takes the chunk back from an idle thread.
//!
//! A thread keeps its chunk while it records nothing, so threads that outnumber the chunks would starve each
//! other. Taking a chunk back must cost nothing on the path of an event: no read-modify-write, no fence, not
//! one load more. So the fence is put into the owner from outside, by `membarrier(2)`:
//!
//! ```text
//! owner, for each event                      drain thread
//!   busy = 1                                   recall: NONE -> ASKED
//!   ── a compiler fence only                   epoch = end_epoch = 0
//!   epoch is the session's? else slow path     ── every thread of the process passes a fence
//!   record, commit                             busy == 0 (Acquire), epochs still 0? else not now
//!   busy = 0 (Release)                         recall: ASKED -> TAKEN; the chunk is Complete
//! ```
//!
//! Let P be the point at which the owner passed the fence. An event that reads the epoch after P finds 0 and
//! takes the slow path. An event that read the epoch before P has set `busy` before P. So the drain thread
//! sees either that mark, or the end of that event with all its bytes (the Release of `busy = 0`). So nobody
//! writes a chunk that is complete.
//!
//! The slow path sets `busy` like any event and then [settles](Lease::settle). It finds ASKED, and keeps its
//! chunk; or TAKEN, and claims another one. The compare-and-swap to TAKEN and the swap of `settle` cannot
//! both succeed. If it finds neither, it came before P, and the drain thread sees the mark, or epochs that
//! are not 0, or, where the thread has given its chunk back, no chunk.
//!
//! # Where a lease is
//!
//! The drain thread reads the leases of all threads, at any moment. So a lease must stay where it is after
//! its thread is gone, also where the thread had no chance to say so. Leases come from a [pool](pool) of
//! memory that is never freed, not from thread-local memory.

#![allow(unsafe_code)] // a function with a contract

#[cfg(not(loom))]
mod pool;

use std::ptr::NonNull;

use crate::abi::{ChunkHeader, Commit};
use crate::chunk::WriteChunk;
#[cfg(doc)]
use crate::fence_all_threads;
use crate::region::Region;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, const_unless_loom, light_fence};

#[cfg(not(loom))]
pub use pool::{all_leases, claim_lease, lost_to_fork, release_lease, start_pool_in_child};

/// Values of [`Lease::recall`].
mod recall {
    /// Nobody wants the chunk.
    pub(super) const NONE: u32 = 0;
    /// The drain thread has asked for the chunk.
    pub(super) const ASKED: u32 = 1;
    /// The drain thread has completed the chunk.
    pub(super) const TAKEN: u32 = 2;
    /// The thread holds more chunks than this one, so it cannot lose it.
    pub(super) const FIXED: u32 = 3;
}

/// What a thread needs at hand to write its chunk, and to lose it. One cache line.
///
/// The owner writes all fields. The drain thread writes the epochs, which become 0, and `recall`.
///
/// A chunk that is taken back may be another thread's at once. So safe code neither puts a chunk into a lease
/// nor takes one out of it, while its [`WriteChunk`] lives:
///
/// ```compile_fail,E0133
/// use hairline_shm::{ChunkInfo, Lease, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small()).unwrap();
/// let chunk = region.claim(ChunkInfo::default(), b"").unwrap();
/// Lease::new().set(&chunk, 2, 2, true);
/// ```
///
/// ```compile_fail,E0133
/// use hairline_shm::{Lease, Recall, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small()).unwrap();
/// let recall = Recall { region: &region, epoch: 2, idle_since: 0, empty_room: None };
/// Lease::new().take(&recall);
/// ```
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Lease {
    /// The session's number; 0 while the thread has no chunk, or may lose it.
    epoch: AtomicU32,
    /// The same for ends; 0 also while ends of open scopes are kept in other chunks.
    end_epoch: AtomicU32,
    /// Bytes of the chunk neither written nor kept for ends, an `i32`.
    room: AtomicU32,
    /// Whether an event is being written, or a lock held.
    busy: AtomicU32,
    chunk: AtomicPtr<ChunkHeader>,
    /// The last commit, a [`Commit`]. The chunk's own word is for readers: other processes can map it.
    commit: AtomicU64,
    /// Time of the last event.
    last: AtomicU64,
    recall: AtomicU32,
    /// Not 0 while a thread has this lease. The pool's; a forked child finds it 0.
    is_claimed: AtomicU32,
}

/// The methods read and write the owner's own fields with Relaxed: `busy`, `recall` and the fences order them
/// against the drain thread.
impl Lease {
    const_unless_loom! {
        /// A lease without a chunk.
        #[must_use]
        pub fn new() -> Self {
            Self {
                epoch: AtomicU32::new(0),
                end_epoch: AtomicU32::new(0),
                room: AtomicU32::new(0),
                busy: AtomicU32::new(0),
                chunk: AtomicPtr::new(std::ptr::null_mut()),
                commit: AtomicU64::new(0),
                last: AtomicU64::new(0),
                recall: AtomicU32::new(recall::NONE),
                is_claimed: AtomicU32::new(0),
            }
        }
    }

    const_unless_loom! {
        /// A lease that is busy for good, and never has a chunk: for threads that have no lease of their own.
        /// `is_claimed` is what [`is_wiped`](Self::is_wiped) denies.
        #[must_use]
        pub fn barred(is_claimed: bool) -> Self {
            Self {
                epoch: AtomicU32::new(0),
                end_epoch: AtomicU32::new(0),
                room: AtomicU32::new(0),
                busy: AtomicU32::new(1),
                chunk: AtomicPtr::new(std::ptr::null_mut()),
                commit: AtomicU64::new(0),
                last: AtomicU64::new(0),
                recall: AtomicU32::new(recall::NONE),
                is_claimed: AtomicU32::new(is_claimed as u32),
            }
        }
    }

    /// Whether this process is a forked child, and the lease its parent's: the memory was wiped at the fork.
    #[inline(always)]
    #[must_use]
    pub fn is_wiped(&self) -> bool {
        self.is_claimed.load(Ordering::Relaxed) == 0
    }

    /// Whether an event is being written.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Sets the mark where a signal handler on this thread sees it at once: the compiler neither merges the
    /// store with another one nor moves it across what it guards.
    #[inline(always)]
    pub fn set_busy(&self, busy: bool) {
        light_fence();
        // Release pairs with the Acquire in `take`: who sees the mark gone sees the event's commit. (No
        // instruction on x86-64.)
        self.busy.store(u32::from(busy), Ordering::Release);
        light_fence();
    }

    /// The session that the thread may write for. Read it while busy. 0: none.
    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The session that the thread may write ends for. 0: none.
    #[inline(always)]
    pub fn end_epoch(&self) -> u32 {
        self.end_epoch.load(Ordering::Relaxed)
    }

    /// Bytes of the chunk neither written nor kept for ends.
    #[inline(always)]
    pub fn room(&self) -> i32 {
        self.room.load(Ordering::Relaxed).cast_signed()
    }

    /// See [`room`](Self::room).
    #[inline(always)]
    pub fn set_room(&self, room: i32) {
        self.room.store(room.cast_unsigned(), Ordering::Relaxed);
    }

    /// The chunk's header, by a pointer that may also write the payload behind it; null where the lease holds
    /// no chunk.
    #[inline(always)]
    pub fn chunk(&self) -> *mut ChunkHeader {
        self.chunk.load(Ordering::Relaxed)
    }

    /// The last commit in the chunk.
    #[inline(always)]
    pub fn commit(&self) -> Commit {
        Commit(self.commit.load(Ordering::Relaxed))
    }

    /// See [`commit`](Self::commit).
    #[inline(always)]
    pub fn set_commit(&self, commit: Commit) {
        self.commit.store(commit.0, Ordering::Relaxed);
    }

    /// Time of the last event.
    #[inline(always)]
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// See [`last`](Self::last).
    #[inline(always)]
    pub fn set_last(&self, time: u64) {
        self.last.store(time, Ordering::Relaxed);
    }

    /// The thread, busy, writes `chunk` for the session `epoch`, and ends for the session `end_epoch`.
    /// `is_only`: the thread holds no other chunk, so it may lose this one.
    ///
    /// # Safety
    /// From this call until [`give_up`](Self::give_up), any thread may [`take`](Self::take) the chunk while
    /// the lease is not busy. So the caller keeps these rules:
    ///
    /// 1. It writes into the chunk only while busy, and only if `epoch` (for ends `end_epoch`) is not 0 or
    ///    `settle` has returned false since it became busy.
    /// 2. If `settle` returns true, it calls [`WriteChunk::set_recalled`] and does not touch the chunk again.
    /// 3. Other threads call nothing but `ask` and `take` on it: it gives the lease to no other code.
    /// 4. The chunk lives as long as the lease holds it.
    /// 5. When it gives the chunk back other than by the next `set`, it calls `clear`, `settle` and
    ///    `give_up`, in this order, and stays busy in between.
    pub unsafe fn set(&self, chunk: &WriteChunk, epoch: u32, end_epoch: u32, is_only: bool) {
        let recall = if is_only { recall::NONE } else { recall::FIXED };
        if self.recall.load(Ordering::Relaxed) != recall {
            self.recall.store(recall, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `idle_chunk`: a `take` that sees the chunk finds `recall`
        // changed.
        self.chunk.store(chunk.header_ptr().as_ptr(), Ordering::Release);
        self.commit.store(chunk.committed().0, Ordering::Relaxed);
        // Release pairs with the Acquire in `ask`: who sees the epoch sees the chunk of that session.
        self.epoch.store(epoch, Ordering::Release);
        self.end_epoch.store(end_epoch, Ordering::Relaxed);
    }

    /// No event takes the fast path until the next [`set`](Self::set).
    pub fn clear(&self) {
        self.epoch.store(0, Ordering::Relaxed);
        self.end_epoch.store(0, Ordering::Relaxed);
    }

    /// The thread has no chunk any more. Without this a drain thread that was in the midst of `ask` when the
    /// thread settled would still find the chunk here, and complete it a second time.
    pub fn give_up(&self) {
        // The Release of `busy = 0` publishes it to `take`.
        self.chunk.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Makes the lease like a new one. Its thread has no chunk any more, or does not exist in this process.
    #[cfg(not(loom))]
    fn reset(&self) {
        self.clear();
        self.settle();
        self.give_up();
        self.set_room(0);
        self.set_commit(Commit::default());
        self.set_last(0);
        self.set_busy(false);
    }

    /// Checks whether the drain thread has taken this thread's chunk. Call it on the owning thread, busy,
    /// before touching the chunk on the slow path.
    pub fn settle(&self) -> bool {
        if matches!(self.recall.load(Ordering::Relaxed), recall::NONE | recall::FIXED) {
            return false;
        }
        // Acquire pairs with the Release in `take`. Of this swap and that compare-and-swap, only one finds
        // ASKED.
        self.recall.swap(recall::NONE, Ordering::AcqRel) == recall::TAKEN
    }

    /// Asks the thread for its chunk, if the thread looks idle. Returns whether [`take`](Self::take) is worth
    /// trying, after a [fence of every thread](fence_all_threads). Only one thread asks and takes for a
    /// session: its drain thread.
    pub fn ask(&self, recall: &Recall<'_>) -> bool {
        match self.recall.load(Ordering::Relaxed) {
            recall::ASKED => {} // the thread was busy the last time, and has not settled since
            // Acquire: see `set`.
            recall::NONE if self.epoch.load(Ordering::Acquire) == recall.epoch => {}
            _ => return false,
        }
        if self.is_busy() || self.last() > recall.idle_since || self.idle_chunk(recall).is_none() {
            return false;
        }
        let asked = self.change_recall(recall::NONE, recall::ASKED);
        if asked.is_err_and(|now| now != recall::ASKED) {
            return false;
        }
        self.clear();
        true
    }

    /// Completes the chunk of a thread that was asked, if the thread is still idle. Returns whether it did.
    ///
    /// # Safety
    /// Since [`ask`](Self::ask) returned true for the same `recall`, a [fence of every
    /// thread](fence_all_threads) has succeeded.
    pub unsafe fn take(&self, recall: &Recall<'_>) -> bool {
        // Acquire pairs with the Release in `set_busy`.
        if self.busy.load(Ordering::Acquire) != 0 {
            return false; // with epochs of 0 its next event takes the slow path, and settles
        }
        let is_set = self.epoch() != 0 || self.end_epoch() != 0;
        let Some(chunk) = self.idle_chunk(recall).filter(|_| !is_set) else {
            let _ = self.change_recall(recall::ASKED, recall::NONE);
            return false;
        };
        let is_mine = self.change_recall(recall::ASKED, recall::TAKEN).is_ok();
        if is_mine {
            chunk.complete();
        }
        is_mine
    }

    fn change_recall(&self, from: u32, to: u32) -> Result<u32, u32> {
        // Release pairs with the Acquire in `settle`.
        self.recall.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }

    /// The chunk, if it is one of `recall`'s region and need not stay with its thread.
    fn idle_chunk<'r>(&self, recall: &Recall<'r>) -> Option<&'r ChunkHeader> {
        // Acquire pairs with the Release in `set`.
        let chunk = NonNull::new(self.chunk.load(Ordering::Acquire))?;
        let chunk = recall.region.header_at(chunk)?;
        let used = || i64::from(self.commit().bytes()) + i64::from(self.room());
        recall.empty_room.is_none_or(|room| used() == i64::from(room)).then_some(chunk)
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}

/// Which chunks the drain thread takes back.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'r> {
    /// The region of the chunks.
    pub region: &'r Region,
    /// The session of the threads that write it.
    pub epoch: u32,
    /// Only from threads whose last event was not after this time.
    pub idle_since: u64,
    /// If given, only chunks in which committed bytes and room add up to this: those that keep no room for
    /// ends.
    pub empty_room: Option<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Lease>() == 64, "a lease is a cache line of its own");
