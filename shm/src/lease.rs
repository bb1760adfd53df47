//! A thread's hold on its chunk, and how the chunk is taken back from a thread that is idle.
//!
//! A thread keeps its chunk while it records nothing, so threads that outnumber the chunks would starve each other. What asks an idle
//! one to give its chunk back must cost nothing where it is not idle: no read-modify-write, no fence, not a load more. So the fence is
//! put into the thread from outside, by `membarrier(2)`:
//!
//! ```text
//! thread, for each event                     whoever recalls
//!   busy = 1                                   recall: NONE -> ASKED
//!   ── the compiler's fence only               epoch = end_epoch = 0
//!   epoch is the session's? else the slow way  ── every thread of the process passes a fence
//!   record, commit                             busy == 0 (Acquire), epochs still 0? else not now
//!   busy = 0 (Release)                         recall: ASKED -> TAKEN; the chunk is Complete
//! ```
//!
//! Take the point P at which the thread passed the fence. An event whose look at the epoch comes after P finds 0, and goes the slow
//! way. One whose look came before P had set `busy` before P too, so whoever recalls sees that, or the end of that event, which has all
//! its bytes (the Release of `busy = 0`). So nobody writes a chunk that is complete.
//!
//! The slow way sets `busy` like any event and then [settles](Lease::settle): it finds ASKED, and takes it back, or TAKEN, and looks
//! for another chunk; the compare-and-swap to TAKEN and the swap of the settling cannot both succeed. If it finds neither, it came before
//! P, and whoever recalls sees it busy, or sees what it left: epochs that are not 0.

use crate::abi::ChunkHeader;
use crate::chunk::WriteChunk;
#[cfg(doc)]
use crate::fence_all_threads;
use crate::region::Region;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, const_unless_loom, light_fence};

/// What [`Lease::recall`] says, in its low bits.
mod recall {
    pub(super) const NONE: u32 = 0;
    pub(super) const ASKED: u32 = 1;
    /// The bits above are the bytes that were committed.
    pub(super) const TAKEN: u32 = 2;
    /// The thread has more chunks than this one.
    pub(super) const FIXED: u32 = 3;
    pub(super) const BITS: u32 = 2;
}

/// What a thread needs at hand to write its chunk, and to lose it. Written by its thread, but for the epochs, which become 0, and
/// `recall`.
#[derive(Debug)]
#[repr(C)]
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
    /// Time of the last event.
    last: AtomicU64,
    recall: AtomicU32,
}

/// All fields are the thread's own to read. Relaxed: the order against other threads is made by `busy`, `recall` and the fences.
impl Lease {
    const_unless_loom! {
        /// Of no chunk.
        #[must_use]
        pub fn new() -> Self {
            Self {
                epoch: AtomicU32::new(0),
                end_epoch: AtomicU32::new(0),
                room: AtomicU32::new(0),
                busy: AtomicU32::new(0),
                chunk: AtomicPtr::new(std::ptr::null_mut()),
                last: AtomicU64::new(0),
                recall: AtomicU32::new(recall::NONE),
            }
        }
    }

    /// Whether an event is being written.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Sets the mark where a signal handler on this thread sees it at once: neither merged with another store nor moved across what
    /// it guards.
    #[inline(always)]
    pub fn set_busy(&self, busy: bool) {
        light_fence();
        // Release pairs with the Acquire in `take`: who sees the mark gone sees the event's commit. (No instruction on x86-64.)
        self.busy.store(u32::from(busy), Ordering::Release);
        light_fence();
    }

    /// The session that the thread may write for; to be looked at while busy.
    #[inline(always)]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The session that the thread may write ends for.
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

    /// The chunk's header; null before the first one.
    #[inline(always)]
    pub fn chunk(&self) -> *const ChunkHeader {
        self.chunk.load(Ordering::Relaxed)
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

    /// The thread, busy, writes `chunk` for the session `epoch`, ends for `end_epoch`. `is_only`: it holds no other.
    pub fn set(&self, chunk: &WriteChunk, epoch: u32, end_epoch: u32, is_only: bool) {
        let recall = if is_only { recall::NONE } else { recall::FIXED };
        if self.recall.load(Ordering::Relaxed) != recall {
            self.recall.store(recall, Ordering::Relaxed);
        }
        self.chunk.store(std::ptr::from_ref(chunk.header()).cast_mut(), Ordering::Relaxed);
        // Release pairs with the Acquire in `ask`: who sees the epoch sees the chunk of that session.
        self.epoch.store(epoch, Ordering::Release);
        self.end_epoch.store(end_epoch, Ordering::Relaxed);
    }

    /// No event is written until the next [`set`](Self::set).
    pub fn clear(&self) {
        self.epoch.store(0, Ordering::Relaxed);
        self.end_epoch.store(0, Ordering::Relaxed);
    }

    /// For the thread itself, busy, before it touches its chunk: whether that was taken, and how many bytes were committed in it.
    pub fn settle(&self) -> Option<u32> {
        if matches!(self.recall.load(Ordering::Relaxed), recall::NONE | recall::FIXED) {
            return None;
        }
        // Acquire pairs with the Release in `take`; one of the two only finds ASKED.
        let before = self.recall.swap(recall::NONE, Ordering::AcqRel);
        (before & recall::TAKEN == recall::TAKEN && before != recall::FIXED).then_some(before >> recall::BITS)
    }

    /// Asks the thread for its chunk, if it looks idle. Whether [`take`](Self::take) is worth trying, after a [fence of every
    /// thread](fence_all_threads).
    pub fn ask(&self, recall: &Recall<'_>) -> bool {
        match self.recall.load(Ordering::Relaxed) {
            recall::ASKED => {} // it was busy the last time, and has not settled since
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

    /// Completes the chunk of a thread that was asked, if it is still idle.
    pub fn take(&self, recall: &Recall<'_>) -> bool {
        // Acquire pairs with the Release in `set_busy`.
        if self.busy.load(Ordering::Acquire) != 0 {
            return false; // it settles: with epochs of 0 its next event goes the slow way
        }
        let is_set = self.epoch() != 0 || self.end_epoch() != 0;
        let Some(chunk) = self.idle_chunk(recall).filter(|_| !is_set) else {
            let _ = self.change_recall(recall::ASKED, recall::NONE);
            return false;
        };
        let taken = recall::TAKEN | chunk.own_commit().bytes() << recall::BITS;
        let is_mine = self.change_recall(recall::ASKED, taken).is_ok();
        if is_mine {
            chunk.complete();
        }
        is_mine
    }

    fn change_recall(&self, from: u32, to: u32) -> Result<u32, u32> {
        // Release pairs with the Acquire in `settle`.
        self.recall.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }

    /// The chunk, unless it must stay with its thread.
    fn idle_chunk<'r>(&self, recall: &Recall<'r>) -> Option<&'r ChunkHeader> {
        let chunk = recall.region.header_at(self.chunk())?;
        let used = || i64::from(chunk.own_commit().bytes()) + i64::from(self.room());
        recall.empty_room.is_none_or(|room| used() == i64::from(room)).then_some(chunk)
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}

/// What is taken back, and from whom.
#[derive(Clone, Copy, Debug)]
pub struct Recall<'r> {
    /// Whose chunks.
    pub region: &'r Region,
    /// The session of the threads that write it.
    pub epoch: u32,
    /// Only from threads whose last event was not after it.
    pub idle_since: u64,
    /// If given, only chunks of which this is what was committed and what is room together: those that keep no room for ends.
    pub empty_room: Option<u32>,
}
