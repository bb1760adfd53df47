//! The lease: a thread's right to write its chunk. The drain thread can recall the lease of an idle thread.
//!
//! A thread keeps its chunk while it records nothing. If there are more threads than chunks, the others need
//! a way to get the chunks of idle threads. That must cost nothing on the path of an event: no
//! read-modify-write, no fence, no additional load. So the drain thread makes the owner pass a fence from
//! outside, by `membarrier(2)`:
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
//! takes the slow path. An event that read the epoch before P has set `busy` before P. The drain thread then
//! sees either `busy`, or the end of that event with all its bytes (the Release of `busy = 0`). So no thread
//! writes a chunk that is complete.
//!
//! The slow path sets `busy` like any event and then [settles](Lease::settle). If it finds ASKED, it keeps
//! its chunk. If it finds TAKEN, it claims another chunk. The compare-and-swap to TAKEN and the swap of
//! `settle` cannot both succeed. If it finds neither, it settled before P. The drain thread then sees `busy`,
//! or epochs that are not 0, or, if the thread has given its chunk back, no chunk.
//!
//! # The memory of a lease
//!
//! The drain thread reads the leases of all threads, at any moment. So a lease must outlive its thread, also
//! if the thread ends without notice. Leases come from a [pool] of memory that is never freed, not from
//! thread-local memory.

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
    /// The thread keeps its chunk.
    pub(super) const NONE: u32 = 0;
    /// The drain thread has asked for the chunk.
    pub(super) const ASKED: u32 = 1;
    /// The drain thread has completed the chunk.
    pub(super) const TAKEN: u32 = 2;
    /// The thread has more chunks than this one, so the drain thread must not take it.
    pub(super) const FIXED: u32 = 3;
}

/// Added to the epochs of a lease whose thread takes the slow path at its next event. No session has an epoch
/// with this bit. The number stays, so that the drain thread can still ask an idle thread for its chunk.
const INTERRUPTED: u32 = 1 << 31;

/// A thread's right to write its chunk, on one cache line.
///
/// The owner writes all fields. The drain thread writes the epochs, which become 0, and `recall`.
///
/// Another thread can own a recalled chunk at once. So safe code neither puts a chunk into a lease nor takes
/// one out of it, while its [`WriteChunk`] lives:
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
    /// The epoch of the session; 0 while the thread has no chunk, or is asked for it.
    epoch: AtomicU32,
    /// The same for ends of scopes; 0 also while other chunks have room reserved for ends.
    end_epoch: AtomicU32,
    /// The bytes of the chunk that are neither written nor reserved for the ends of open scopes, an `i32`.
    room: AtomicU32,
    /// Whether the thread is writing an event, or holds a lock.
    busy: AtomicU32,
    chunk: AtomicPtr<ChunkHeader>,
    /// The last commit, a [`Commit`]. The word in the chunk's header is for readers: other processes can map
    /// it.
    commit: AtomicU64,
    /// The time of the last event.
    last: AtomicU64,
    recall: AtomicU32,
    /// Not 0 while a thread has this lease. The pool stores it. A forked child finds 0.
    is_claimed: AtomicU32,
}

/// The methods access the owner's own fields with Relaxed: `busy`, `recall` and the fences order them against
/// the drain thread.
impl Lease {
    const_unless_loom! {
        /// Creates a lease without a chunk.
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
        /// Creates a lease that is always busy and never has a chunk, for threads without a lease of their
        /// own. [`is_wiped`](Self::is_wiped) returns the opposite of `is_claimed`.
        #[must_use]
        pub fn barred(is_claimed: bool) -> Self {
            Self {
                busy: AtomicU32::new(1),
                is_claimed: AtomicU32::new(is_claimed as u32),
                ..Self::new()
            }
        }
    }

    /// Whether this process is a forked child and the lease is its parent's: the fork has wiped the memory.
    #[inline(always)]
    #[must_use]
    pub fn is_wiped(&self) -> bool {
        self.is_claimed.load(Ordering::Relaxed) == 0
    }

    /// Whether the thread is writing an event, or holds a lock.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// As [`is_busy`](Self::is_busy), for the owner, with a plain load.
    ///
    /// # Safety
    /// The caller is the thread that owns the lease, the only one that stores the mark.
    #[inline(always)]
    #[must_use]
    pub unsafe fn own_is_busy(&self) -> bool {
        #[cfg(loom)]
        return self.is_busy();
        // SAFETY: no other thread stores it, by the contract.
        #[cfg(not(loom))]
        return unsafe { *self.busy.as_ptr() } != 0;
    }

    /// As [`last`](Self::last), for the owner, with a plain load.
    ///
    /// # Safety
    /// As for [`own_is_busy`](Self::own_is_busy).
    #[inline(always)]
    #[must_use]
    pub unsafe fn own_last(&self) -> u64 {
        #[cfg(loom)]
        return self.last();
        // SAFETY: no other thread stores it, by the contract.
        #[cfg(not(loom))]
        return unsafe { *self.last.as_ptr() };
    }

    /// Marks the thread as busy or not. A signal handler on this thread sees the mark at once: the compiler
    /// neither merges the store with another one nor moves it across the code that it guards.
    #[inline(always)]
    pub fn set_busy(&self, busy: bool) {
        light_fence();
        // Release pairs with the Acquire in `take`: a drain thread that sees 0 sees the event's commit. (On
        // x86-64 it is a plain store.)
        self.busy.store(u32::from(busy), Ordering::Release);
        light_fence();
    }

    /// The epoch of the session that the thread may write for; 0 if none. Read it while busy.
    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The epoch of the session that the thread may write ends for; 0 if none. Read it while busy.
    #[inline(always)]
    pub fn end_epoch(&self) -> u32 {
        self.end_epoch.load(Ordering::Relaxed)
    }

    /// The bytes of the chunk that are neither written nor reserved for the ends of open scopes.
    #[inline(always)]
    pub fn room(&self) -> i32 {
        self.room.load(Ordering::Relaxed).cast_signed()
    }

    /// Sets the [`room`](Self::room).
    #[inline(always)]
    pub fn set_room(&self, room: i32) {
        self.room.store(room.cast_unsigned(), Ordering::Relaxed);
    }

    /// The header of the chunk; null if the lease has no chunk. The payload may be written through the
    /// pointer too.
    #[inline(always)]
    pub fn chunk(&self) -> *mut ChunkHeader {
        self.chunk.load(Ordering::Relaxed)
    }

    /// The last commit in the chunk.
    #[inline(always)]
    pub fn commit(&self) -> Commit {
        Commit(self.commit.load(Ordering::Relaxed))
    }

    /// Sets the last commit.
    #[inline(always)]
    pub fn set_commit(&self, commit: Commit) {
        self.commit.store(commit.0, Ordering::Relaxed);
    }

    /// The time of the last event.
    #[inline(always)]
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Sets the time of the last event.
    #[inline(always)]
    pub fn set_last(&self, time: u64) {
        self.last.store(time, Ordering::Relaxed);
    }

    /// Gives the thread the right to write `chunk` for the session `epoch`, and ends for the session
    /// `end_epoch`. Call it while busy.
    ///
    /// `is_only`: the thread has no other chunk, so the drain thread may take this one.
    ///
    /// # Safety
    /// From this call until [`give_up`](Self::give_up), any thread may [`take`](Self::take) the chunk while
    /// the lease is not busy. So the caller follows these rules:
    ///
    /// 1. It writes into the chunk only while busy, and only if `epoch` (for ends `end_epoch`) is not 0 or
    ///    `settle` has returned false since it became busy.
    /// 2. If `settle` returns true, it calls [`WriteChunk::set_recalled`] and does not touch the chunk again.
    /// 3. Other threads call nothing but `ask`, `take` and `interrupt` on it: it gives the lease to no other
    ///    code.
    /// 4. The chunk lives as long as the lease holds it.
    /// 5. When it gives the chunk back other than by the next `set`, it calls `clear`, `settle` and
    ///    `give_up`, in this order, and stays busy in between.
    pub unsafe fn set(&self, chunk: &WriteChunk, epoch: u32, end_epoch: u32, is_only: bool) {
        let recall = if is_only { recall::NONE } else { recall::FIXED };
        if self.recall.load(Ordering::Relaxed) != recall {
            self.recall.store(recall, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `idle_chunk`: a `take` that sees the chunk sees the store of
        // `recall`.
        self.chunk.store(chunk.header_ptr().as_ptr(), Ordering::Release);
        self.commit.store(chunk.committed().0, Ordering::Relaxed);
        // Release pairs with the Acquire in `ask`: a drain thread that sees the epoch sees the chunk of that
        // session.
        self.epoch.store(epoch, Ordering::Release);
        self.end_epoch.store(end_epoch, Ordering::Relaxed);
    }

    /// Sends all events to the slow path until the next [`set`](Self::set).
    pub fn clear(&self) {
        self.epoch.store(0, Ordering::Relaxed);
        self.end_epoch.store(0, Ordering::Relaxed);
    }

    /// Takes the chunk out of the lease. Otherwise a drain thread that was inside of `ask` when the thread
    /// settled would still find the chunk here, and complete it a second time.
    pub fn give_up(&self) {
        // Relaxed: the Release of `busy = 0` publishes the store to `take`.
        self.chunk.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Resets the lease to a new one. Its thread has no chunk any more, or does not exist in this process.
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

    /// Checks whether the drain thread has taken this thread's chunk, and takes its request back if it has
    /// only asked. Call it on the owning thread, while busy, before touching the chunk on the slow path.
    pub fn settle(&self) -> bool {
        if matches!(self.recall.load(Ordering::Relaxed), recall::NONE | recall::FIXED) {
            return false;
        }
        // Acquire pairs with the Release in `change_recall`. Of this swap and the compare-and-swap in `take`,
        // only one finds ASKED.
        self.recall.swap(recall::NONE, Ordering::AcqRel) == recall::TAKEN
    }

    /// Asks the thread for its chunk, if the thread looks idle. Only the drain thread of a session calls
    /// this.
    ///
    /// Returns whether the caller can try [`take`](Self::take), after a [fence of all
    /// threads](fence_all_threads).
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Lease, Recall, Region, RegionConfig, fence_all_threads};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let mut chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// let lease = Lease::new();
    /// lease.set_busy(true);
    /// // SAFETY: the code below follows the rules.
    /// unsafe { lease.set(&chunk, 2, 2, true) };
    /// lease.set_busy(false); // the thread is idle now
    ///
    /// // The drain thread:
    /// let recall = Recall { region: &region, epoch: 2, idle_since: 0, empty_room: None };
    /// assert!(lease.ask(&recall));
    /// // SAFETY: `ask` has returned true, and the fence has succeeded.
    /// let is_taken = fence_all_threads() && unsafe { lease.take(&recall) };
    ///
    /// // The thread, at its next event:
    /// lease.set_busy(true);
    /// lease.clear();
    /// assert_eq!(lease.settle(), is_taken);
    /// if is_taken {
    ///     chunk.set_recalled(); // it claims another chunk
    /// }
    /// lease.give_up();
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn ask(&self, recall: &Recall<'_>) -> bool {
        match self.recall.load(Ordering::Relaxed) {
            recall::ASKED => {} // the thread was busy at the last `take`, and has not settled since
            // Acquire pairs with the Release in `set`.
            recall::NONE if self.epoch.load(Ordering::Acquire) & !INTERRUPTED == recall.epoch => {}
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

    /// Sends the thread's next event to the slow path, if the thread may write for the session `epoch`. The
    /// thread keeps its chunk. Only the drain thread of that session calls this, and not between
    /// [`ask`](Self::ask) and [`take`](Self::take).
    ///
    /// ```
    /// use hairline_shm::{ChunkInfo, Lease, Recall, Region, RegionConfig};
    ///
    /// let region = Region::create(&RegionConfig::small())?;
    /// let chunk = region.claim(ChunkInfo::default(), b"").unwrap();
    /// let lease = Lease::new();
    /// // SAFETY: nothing takes the chunk.
    /// unsafe { lease.set(&chunk, 2, 2, true) };
    /// lease.interrupt(4);
    /// assert_eq!(lease.epoch(), 2); // not that session's
    /// lease.interrupt(2);
    /// assert_ne!(lease.epoch(), 2);
    /// assert!(!lease.settle()); // it keeps its chunk
    /// // An idle thread can be asked for its chunk all the same.
    /// assert!(lease.ask(&Recall { region: &region, epoch: 2, idle_since: 0, empty_room: None }));
    /// # Ok::<(), hairline_shm::RegionError>(())
    /// ```
    pub fn interrupt(&self, epoch: u32) {
        // Relaxed: the thread reads nothing that this store would have to publish, and may see it late. A
        // compare-and-swap, because the thread may begin to write for another session meanwhile.
        for word in [&self.epoch, &self.end_epoch] {
            let _ = word.compare_exchange(epoch, epoch | INTERRUPTED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Completes the chunk of a thread that was asked, if the thread is still idle. Returns whether it did.
    ///
    /// # Safety
    /// Since [`ask`](Self::ask) returned `true` for the same `recall`, a [fence of all
    /// threads](fence_all_threads) has succeeded.
    pub unsafe fn take(&self, recall: &Recall<'_>) -> bool {
        // Acquire pairs with the Release in `set_busy`.
        if self.busy.load(Ordering::Acquire) != 0 {
            return false; // the epochs are 0, so the next event takes the slow path and settles
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
        // Release pairs with the Acquire of the swap in `settle`.
        self.recall.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }

    /// The chunk, if it is one of `recall`'s region and the thread needs no part of it.
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

/// Selects the chunks that the drain thread recalls.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'r> {
    /// The region of the chunks.
    pub region: &'r Region,
    /// The epoch of the session.
    pub epoch: u32,
    /// Only chunks of threads without an event after this time.
    pub idle_since: u64,
    /// If given, only chunks whose committed bytes and room add up to this number: those without room that is
    /// reserved for ends.
    pub empty_room: Option<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Lease>() == 64, "a lease is a cache line of its own");
