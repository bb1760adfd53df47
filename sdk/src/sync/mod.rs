//! The locks of the standard library, with the waits for them in the trace.
//!
//! A program changes its `use std::sync::...` to `use hairline::sync::...`: [`Mutex`], [`RwLock`],
//! [`Condvar`], [`Barrier`] and [`Once`] have the interface of those of the standard library, which they
//! contain, with their poisoning. The rest of `std::sync` is here too, unchanged.
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
//! All of it has the category `lock`. A lock that is free makes no event.
//!
//! | event | thread | arguments |
//! |---|---|---|
//! | slice `wait: NAME` | that waits, to the moment at which it has the lock | `at`: its place in the source; `held_by`: the id of the thread that has the lock alone; `held_at`: where that thread took it |
//! | instant `release: NAME` | that releases the lock, if a thread waits | `at`: where it took the lock |
//! | instant `notify: NAME` | that notifies a [`Condvar`], if a thread waits | `at`: its place in the source |
//! | instant `released` | that waited, at the end of its wait | `released_by`: the id of the thread of the release; `released_at`: as its `at` |
//! | instant `notified` | the same, for a [`Condvar`] | `notified_by`, `notified_at` |
//!
//! An arrow goes from the release to the end of the wait; where one release lets several threads continue, to
//! the first of them. NAME is the name that the program gave, or the place where the lock was made.
//!
//! An argument that is not known is left out: the holder took the lock before the session began, or a reader
//! has it. A wait that begins while the lock is being released may have no instant `released`.
//!
//! # What it costs
//!
//! While nothing is recorded, a lock that is free costs three loads and branches more than one of the
//! standard library: 1.0 to 1.3 ns for a [`Mutex`], 2.3 for a reader of an [`RwLock`]. While waits are
//! recorded, a [`Mutex`] costs 1.3 to 1.6 ns more, a reader 2.3, and no clock is read (minimum of 300 batches
//! in a loop, on an AMD EPYC on which lock and unlock take 15 ns). The filter `-lock` leaves the waits out.
//! Without the feature `enable` it costs nothing.
//!
//! A lock has 80 bytes more than one of the standard library. Nothing is kept outside of it.

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

    #[test]
    fn a_lock_has_80_bytes_more_than_the_one_in_it() {
        let more = if cfg!(feature = "enable") { 80 } else { 0 };
        assert_eq!(size_of::<Mutex<u64>>(), size_of::<std::sync::Mutex<u64>>() + more);
        assert_eq!(size_of::<RwLock<u64>>(), size_of::<std::sync::RwLock<u64>>() + more);
    }
}
