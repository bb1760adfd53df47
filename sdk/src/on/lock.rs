//! This crate's locks: the standard library's, which hold all their state in themselves.
//!
//! That matters to a forked child, which is a copy of its parent at a moment when other threads were doing anything: locks whose
//! waiters queue in a table of the process (parking_lot's) may leave that table locked for ever. These leave only the locks
//! themselves, and there are two kinds of them:
//!
//! * those in statics are taken by whoever forks, for the time of the fork: `fork.rs`;
//! * those in tracks and spans are too many for that. [`Mutex::lock_unless_lost`] gives one up that a thread held which does
//!   not exist in the child.
//!
//! A thread that panicked with a lock held has left nothing half-done here: poison does not count.
//!
//! No code of the program runs under these locks, and no thread allocates, frees or blocks while it holds
//! one: the reasons, and the means for containers, are in `lock/growing.rs`.

mod growing;
#[cfg(any(feature = "subscriber", feature = "log"))]
mod rw;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Condvar as StdCondvar, Mutex as StdMutex, MutexGuard as StdGuard, PoisonError, TryLockError,
};
use std::time::{Duration, Instant};

pub(crate) use growing::Grow;
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) use rw::RwLock;

/// Set in a forked child, and in its own.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Time between two looks at a lock that another thread has.
const LOOK: Duration = Duration::from_micros(50);

/// How long a forked child waits for a lock of a track or a span: its own threads hold one for microseconds.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// This process is a forked child.
pub(super) fn set_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether it is one.
pub(super) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    mutex: StdMutex<T>,
    /// Its holder did not survive a fork.
    is_lost: AtomicBool,
}

pub(crate) type MutexGuard<'l, T> = StdGuard<'l, T>;

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { mutex: StdMutex::new(value), is_lost: AtomicBool::new(false) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        // ThreadSanitizer does not see into the part of the standard library that waits, and so not the order that it makes.
        #[cfg(hairline_tsan)]
        if let Some(guard) = self.try_lock_until(Instant::now() + Duration::from_secs(3600)) {
            return guard;
        }
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock_until(&self, until: Instant) -> Option<MutexGuard<'_, T>> {
        retry_until(until, || match self.mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// None in a forked child whose parent had another thread in here at the fork.
    #[inline]
    pub(crate) fn lock_unless_lost(&self) -> Option<MutexGuard<'_, T>> {
        if FORKED.load(Ordering::Relaxed) { self.lock_in_child() } else { Some(self.lock()) }
    }

    /// Takes the lock, with room in a container that it guards: see [`growing::lock_with_room`].
    #[inline]
    pub(crate) fn lock_with_room<C: Grow>(
        &self,
        place: impl Fn(&mut T) -> (&mut C, usize),
    ) -> MutexGuard<'_, T> {
        let Ok(guard) = growing::lock_with_room::<_, Infallible, _>(|| Ok(self.lock()), place);
        guard
    }

    /// The same; `None` as from [`lock_unless_lost`](Self::lock_unless_lost).
    #[inline]
    pub(crate) fn lock_unless_lost_with_room<C: Grow>(
        &self,
        place: impl Fn(&mut T) -> (&mut C, usize),
    ) -> Option<MutexGuard<'_, T>> {
        growing::lock_with_room(|| self.lock_unless_lost().ok_or(()), place).ok()
    }

    #[cold]
    fn lock_in_child(&self) -> Option<MutexGuard<'_, T>> {
        if self.is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let guard = self.try_lock_until(Instant::now() + LOST_AFTER);
        self.is_lost.store(guard.is_none(), Ordering::Relaxed);
        guard
    }
}

#[derive(Debug)]
pub(crate) struct Condvar(StdCondvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(StdCondvar::new())
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits while the condition holds.
    pub(crate) fn wait_while<'l, T>(
        &self,
        guard: MutexGuard<'l, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'l, T> {
        self.0.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, at most so long.
    pub(crate) fn wait_while_for<'l, T>(
        &self,
        guard: MutexGuard<'l, T>,
        longest: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'l, T> {
        self.0.wait_timeout_while(guard, longest, condition).unwrap_or_else(PoisonError::into_inner).0
    }
}

fn retry_until<G>(until: Instant, attempt: impl Fn() -> Option<G>) -> Option<G> {
    loop {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}
