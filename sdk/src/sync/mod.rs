//! The locks of the standard library, with the waits for them in the trace.
//!
//! A program changes its `use std::sync::...` to `use hairline::sync::...`: [`Mutex`], [`RwLock`],
//! [`Condvar`], [`Barrier`] and [`Once`] have the interface of those of the standard library, which they
//! contain, with their poisoning. The rest of `std::sync` is here too, unchanged, but for what is deprecated.
//!
//! ```
//! use std::time::Duration;
//!
//! use hairline::sync::{Arc, Mutex};
//!
//! let cache = Arc::new(Mutex::named("cache", 0));
//! let other = Arc::clone(&cache);
//! let thread = std::thread::spawn(move || {
//!     let mut hits = other.lock().unwrap();
//!     std::thread::sleep(Duration::from_millis(1));
//!     *hits += 1;
//! });
//! *cache.lock().unwrap() += 1;     // the slice "wait: cache", if the other thread has it
//! thread.join().unwrap();
//! assert_eq!(*cache.lock().unwrap(), 2);
//! ```
//!
//! # In the trace
//!
//! All of it has the category `lock`. A lock that is free makes no event. A wait is a slice `wait: NAME` on
//! the thread that waits, with the thread and the place of the holder. In the repository,
//! `docs/guide/instrumenting.md` has a table of the events and their arguments.
//!
//! An arrow goes from the release to the end of the wait; where one release lets several threads continue, to
//! the first of them. NAME is the name that the program gave, or the place where the lock was made.
//!
//! What is not known is not said: the holder took the lock before the session began, or a reader has it;
//! several threads waited for a condition, or it was notified twice; the event of the release was lost. A
//! wait that begins while the lock is being released may have no instant `released`. In a forked child, a
//! lock that was held at the fork has the thread's id in the parent.
//!
//! # Holds
//!
//! A session has slices of holds if it has a limit for them: `HAIRLINE_HOLD=1ms` or
//! [`SessionBuilder::hold_limit`]. A hold that is at least as long is a slice `hold: NAME`, on a
//! lane `hold` below the thread, because locks are released in any order: a hold need not nest with the
//! thread's slices, nor with another hold. Its argument `at` is the place where the thread took the lock. The
//! slice is written when the hold is over. A flight recorder can write a snapshot then:
//! [`trigger_on_slow`](crate::SessionBuilder::trigger_on_slow) with the pattern `lock/hold`.
//!
//! A wait for a [`Condvar`] ends one hold of its mutex and begins another. The thread that runs the closure
//! of a [`Once`] holds the `Once`. A thread that has several guards of readers of one lock holds it once,
//! from the first to the last.
//!
//! Not recorded are: a hold that began before the session or ends after it; that of a guard that is
//! forgotten, or that another thread drops; that of a reader of `RawRwLock`, since `lock_api` does not say
//! which reader releases the lock; and the oldest one of a thread that has more than 16 locks at once.
//!
//! # Output under a lock
//!
//! With [`Overflow::Block`](crate::Overflow::Block), the event of a release waits for room like every event
//! under a lock of the program. An output of the program's own ([`SessionBuilder::output_writer`]) that takes
//! the same lock then holds up both, until the limit of `Block`.
//!
//! [`SessionBuilder::output_writer`]: crate::SessionBuilder::output_writer
//! [`SessionBuilder::hold_limit`]: crate::SessionBuilder::hold_limit
//!
//! # What it costs
//!
//! A lock that is free costs 1 to 3 ns more than one of the standard library, while waits are recorded or
//! not, and reads no clock. A mutex of `parking_lot` costs 2 to 7 ns more, since its `try_lock` reads the
//! word before it writes to it. In the repository, `docs/decisions/locks.md` has the measurement. The
//! filter `-lock` excludes the waits. Without the feature `enable`, a lock that is free costs what the one
//! in it costs. In a session with a limit for holds, lock and unlock both read the clock of the system, and
//! look through the locks that the thread holds.
//!
//! On a 64-bit machine, a [`Mutex`] and an [`RwLock`] have 80 bytes more than those of the standard library.
//! Nothing is kept outside of them.

mod barrier;
mod condvar;
mod mutex;
pub(crate) mod name;
mod once;
#[cfg(feature = "lock_api")]
mod raw;
mod rwlock;
mod watched;

pub use std::sync::{
    Arc, BarrierWaitResult, LazyLock, LockResult, OnceLock, OnceState, PoisonError, TryLockError,
    TryLockResult, WaitTimeoutResult, Weak, atomic, mpsc,
};

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use once::Once;
#[cfg(feature = "lock_api")]
#[cfg_attr(docsrs, doc(cfg(feature = "lock_api")))]
pub use raw::{RawMutex, RawRwLock};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(test)]
mod tests {
    use super::*;

    /// The traits that the compiler derives are those of the standard library.
    #[test]
    fn locks_and_guards_are_send_sync_and_unwind_safe_as_in_the_standard_library() {
        use std::panic::{RefUnwindSafe, UnwindSafe};

        fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
        fn sync<T: Sync>() {}
        all::<(Mutex<u8>, RwLock<u8>, Condvar, Barrier, Once)>();
        all::<(std::sync::Mutex<u8>, std::sync::RwLock<u8>)>();
        sync::<(MutexGuard<'_, u8>, RwLockReadGuard<'_, u8>, RwLockWriteGuard<'_, u8>)>();
        // A value that is no `Sync` may be in a mutex, and is unwind safe there.
        all::<Mutex<std::cell::Cell<u8>>>();
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_lock_has_80_bytes_more_than_the_one_in_it() {
        let more = if cfg!(feature = "enable") { 80 } else { 0 };
        assert_eq!(size_of::<Mutex<u64>>(), size_of::<std::sync::Mutex<u64>>() + more);
        assert_eq!(size_of::<RwLock<u64>>(), size_of::<std::sync::RwLock<u64>>() + more);
    }
}
