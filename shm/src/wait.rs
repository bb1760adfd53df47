//! The wait of threads for a chunk that the drain frees.
//!
//! ```text
//! thread                                   drain
//! claim: none                              frees chunks of a batch
//! lock, a chunk is free? else sleep  <───  lock, unlock, wake all
//! claim again                              next batch
//! ```
//!
//! No wake-up is missed, because the drain takes the lock between freeing and waking. A thread that had the
//! lock before is asleep by then, and is woken. A thread that gets the lock later sees the freed chunks, by
//! the ordering of the lock. So the bitmap is read with `Relaxed` here.
//!
//! A disk that is stuck must not stop the program at each event. So after the time of one thread has passed,
//! no thread waits until the drain frees a chunk.

use std::time::Instant;

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, lock, wait_until};

/// Whether threads may wait. Stored under the lock. Also loaded without it, to refuse a wait early.
mod may {
    /// Threads may wait.
    pub(super) const WAIT: u32 = 0;
    /// Not before the drain frees a chunk: the time of some thread has passed.
    pub(super) const NOT_YET: u32 = 1;
    /// Never again: the region is drained no longer.
    pub(super) const NEVER: u32 = 2;
}

#[derive(Debug)]
pub(crate) struct Waiting {
    may: AtomicU32,
    /// The number of threads that wait.
    threads: AtomicU32,
    lock: Mutex<()>,
    freed: Condvar,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self {
            may: AtomicU32::new(may::WAIT),
            threads: AtomicU32::new(0),
            lock: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    pub(crate) fn may_wait(&self) -> bool {
        self.may.load(Ordering::Relaxed) == may::WAIT
    }

    /// Whether a thread waited at some moment of the call.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until `is_free` returns `true`. Calls `wake` after the thread is counted.
    ///
    /// Returns `false` if `until` has passed, or if threads may not wait.
    pub(crate) fn wait(&self, until: Instant, wake: impl FnOnce(), is_free: impl Fn() -> bool) -> bool {
        self.threads.fetch_add(1, Ordering::Relaxed);
        wake();
        let found = self.wait_counted(until, is_free);
        self.threads.fetch_sub(1, Ordering::Relaxed);
        found
    }

    fn wait_counted(&self, until: Instant, is_free: impl Fn() -> bool) -> bool {
        let mut guard = lock(&self.lock);
        while self.may_wait() {
            if is_free() {
                return true;
            }
            let is_over;
            (guard, is_over) = wait_until(&self.freed, guard, until);
            if is_over && !is_free() {
                self.give_up(&guard);
            }
        }
        false
    }

    fn give_up(&self, _: &MutexGuard<'_, ()>) {
        if self.may_wait() {
            self.may.store(may::NOT_YET, Ordering::Relaxed);
        }
    }

    /// Wakes all threads, after chunks were freed.
    pub(crate) fn freed(&self) {
        let guard = lock(&self.lock);
        if self.may.load(Ordering::Relaxed) == may::NOT_YET {
            self.may.store(may::WAIT, Ordering::Relaxed);
        }
        drop(guard);
        self.freed.notify_all();
    }

    /// Ends all waits, now and later.
    pub(crate) fn end(&self) {
        let guard = lock(&self.lock);
        self.may.store(may::NEVER, Ordering::Relaxed);
        drop(guard);
        self.freed.notify_all();
    }
}
