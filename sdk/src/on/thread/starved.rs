//! Events of a thread that has lost one to a full ring, while the ring is still full.
//!
//! A program whose ring is full loses thousands of events at once, so each is to cost little. Nothing is done
//! but what the count needs: no clock is read, and nothing is written that another thread writes. The number
//! of lost events is in two places. One is in the thread's chunk, which it owns, since a kill must not lose
//! the number: `CHUNK_LOST_SIZE` in `hairline_shm`. The other one is here, for the record of the loss in the
//! thread's sequence.

#![allow(unsafe_code)] // pointers to what the thread's chunk writer keeps

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_shm::{FullSince, WriteChunk};

use crate::on::base::this_thread::{self, Hot};
use crate::on::callsite::Callsite;
use crate::on::session::shared::Shared;

/// A thread that has lost an event to a full ring loses the next one too if its chunk has less room than this
/// (bytes) and no chunk is free.
pub(crate) const STARVED: i32 = 256;

/// What counts a lost event.
struct Counts {
    /// The session, and the number in the thread's chunk. They are those of the thread's chunk writer if the
    /// thread's lease has the epoch of the session. Null if a thread may wait for a chunk.
    shared: Cell<*const Shared>,
    in_chunk: Cell<*const AtomicU64>,
    /// This thread's last look at the ring of that session, if no chunk was free.
    full_since: Cell<Option<FullSince>>,
    /// Events lost here since the last record of the loss.
    refused: Cell<u64>,
}

thread_local! {
    // Without a destructor, like `Hot`.
    static COUNTS: Counts = const {
        Counts {
            shared: Cell::new(ptr::null()),
            in_chunk: Cell::new(ptr::null()),
            full_since: Cell::new(None),
            refused: Cell::new(0),
        }
    };
}

/// Sets what counts an event that this thread loses, before the lease gets the epoch of the session.
pub(crate) fn set_counts(shared: &Shared, chunk: &WriteChunk) {
    let can_wait = shared.may_ever_wait() || shared.recorder().is_some();
    COUNTS.with(|counts| {
        counts.shared.set(if can_wait { ptr::null() } else { ptr::from_ref(shared) });
        counts.in_chunk.set(ptr::from_ref(chunk.lost()));
        counts.full_since.set(None);
    });
}

/// Returns the number of events that [`is_lost_again`] has counted since the last [`clear_refused`].
pub(crate) fn refused() -> u64 {
    COUNTS.with(|counts| counts.refused.get())
}

/// The thread's sequence has a record of the loss, or is a new one.
pub(crate) fn clear_refused() {
    COUNTS.with(|counts| counts.refused.set(0));
}

/// Counts an event of the callsite as lost, if the ring had no room for an event of this thread before and
/// still has none. Returns false if the event may find room, or is to be counted for another reason.
#[inline(always)]
pub(crate) fn is_lost_again(callsite: &'static Callsite) -> bool {
    let hot = this_thread::hot();
    let epoch = hot.starved_epoch();
    epoch != 0 && epoch == callsite.word() && lose_again(hot, epoch)
}

#[inline(always)]
fn lose_again(hot: &Hot, epoch: u32) -> bool {
    let lease = hot.lease();
    if lease.is_busy() {
        return false;
    }
    lease.set_busy(true);
    // The lease's epoch shows that the chunk was not recalled, and that the chunk writer of that session
    // lives. It does not go while the thread is busy.
    let is_lost = lease.epoch() == epoch && lease.room() < STARVED && count();
    lease.set_busy(false);
    is_lost
}

/// Counts an event if no chunk is free. The thread is busy, and its lease has the epoch of the session that
/// it has lost an event of.
#[inline(always)]
fn count() -> bool {
    // By a pointer, since the closure of `LocalKey::with` is compiled as a separate function.
    let counts = COUNTS.with(ptr::from_ref);
    // SAFETY: `Counts` has no destructor, so it exists as long as its thread.
    let counts = unsafe { &*counts };
    // SAFETY: null, or the session of the thread's chunk writer, which owns a part of it. `set_counts` is
    // called before the lease gets the session's epoch, and the chunk writer goes only after the lease has
    // lost it. In a child that a signal handler forked just now, the chunk writer stays for ever.
    let Some(shared) = (unsafe { counts.shared.get().as_ref() }) else { return false };
    let is_full = counts.full_since.get().is_some_and(|look| shared.region().is_full_since(look));
    if !is_full && !look(counts, shared) {
        return false;
    }
    // SAFETY: as above: a number in the region of that session, in the chunk that the lease has.
    let in_chunk = unsafe { &*counts.in_chunk.get() };
    // This thread owns the chunk: nobody else changes the number.
    in_chunk.store(in_chunk.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    counts.refused.set(counts.refused.get() + 1);
    shared.note_full();
    true
}

/// Looks whether a chunk of the ring is free. Returns whether none is, and keeps the look for the next event.
#[cold]
#[inline(never)]
fn look(counts: &Counts, shared: &Shared) -> bool {
    counts.full_since.set(shared.region().full_since());
    counts.full_since.get().is_some()
}
