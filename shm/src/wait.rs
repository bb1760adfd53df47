//! Threads that wait for a chunk, and the drain that frees one.
//!
//! ```text
//! thread                                   drain
//! claim: none                              frees chunks of a batch
//! lock, a chunk is free? else sleep  <───  lock, unlock, wake all
//! claim again                              next batch
//! ```
//!
//! A wake-up cannot be missed: the drain takes the lock between freeing and waking. A thread that held it before has either
//! gone to sleep, and is woken, or never looked; one that takes it after sees what was freed, by the lock's own ordering. So
//! the bitmap may be read with `Relaxed` here.
//!
//! A disk that is stuck must not stop the program event by event. So when a thread's wait has run out, nobody waits until
//! the drain has freed a chunk.

use std::time::Instant;

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, lock, wait_until};

/// Whether a thread may wait. Changed under the lock; read without it by who would be refused anyway.
mod may {
    /// It may.
    pub(super) const WAIT: u32 = 0;
    /// Not before something was freed: somebody's wait has run out.
    pub(super) const NOT_YET: u32 = 1;
    /// Never again: nobody drains any more.
    pub(super) const NEVER: u32 = 2;
}

#[derive(Debug)]
pub(crate) struct Waiting {
    may: AtomicU32,
    /// How many do.
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

    /// Whether a thread waits, at some moment of the call.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.load(Ordering::Relaxed) != 0
    }

    /// Sleeps until `is_free` or the time has come. False: it has, or nobody may wait (any more). Calls `wake` once the thread
    /// counts as one that waits.
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

    /// Chunks were freed before this call.
    pub(crate) fn freed(&self) {
        let guard = lock(&self.lock);
        if self.may.load(Ordering::Relaxed) == may::NOT_YET {
            self.may.store(may::WAIT, Ordering::Relaxed);
        }
        drop(guard);
        self.freed.notify_all();
    }

    /// Nobody waits from now on.
    pub(crate) fn end(&self) {
        let guard = lock(&self.lock);
        self.may.store(may::NEVER, Ordering::Relaxed);
        drop(guard);
        self.freed.notify_all();
    }
}
