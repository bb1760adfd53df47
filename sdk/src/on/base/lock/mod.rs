//! This crate's locks. They wrap the standard library's, which hold all their state in themselves.
//!
//! That matters in a forked child, which is a copy of its parent at a moment when other threads may be
//! anywhere. Locks whose waiters queue in a table of the process (parking_lot's) may leave that table locked
//! for ever. With the standard library's, only the locks themselves can be left locked. There are two kinds
//! of them:
//!
//! * The locks of tables that a child needs: the forking thread takes them for the time of the fork
//!   (`fork.rs`).
//! * All others, such as those in tracks and spans: they may be lost. [`Mutex::lock_unless_lost`] returns
//!   `None` for a lock whose holder does not exist in the child.
//!
//! Poison is ignored: a thread that panics under one of these locks leaves the data consistent.
//!
//! No code of the program runs under these locks, and no thread allocates, frees or blocks while it holds
//! one. `lock/growing.rs` has the reasons, and containers that grow outside of their lock.

mod growing;
mod guard;
#[cfg(any(feature = "subscriber", feature = "log", feature = "metrics"))]
mod rw;

use std::convert::Infallible;
use std::sync::Mutex as StdMutex;
use std::sync::MutexGuard as StdGuard;
use std::sync::TryLockError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairline_shm::{Awaited, Uncancelled};

pub(crate) use crate::on::base::lock::growing::{Fixed, Grow, Map};
pub(crate) use crate::on::base::lock::guard::Guard;
#[cfg(debug_assertions)]
pub use crate::on::base::lock::guard::holds_a_lock;
#[cfg(any(feature = "subscriber", feature = "log", feature = "metrics"))]
pub(crate) use crate::on::base::lock::rw::{RwLock, WriteGuard};
use crate::on::base::platform::process;

/// Set in a forked child, and inherited by its own children.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The longest sleep at a [`Condvar`]. A child that a signal handler has forked meanwhile finds out then that
/// it is one.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Pause between two tries of a lock that another thread holds.
const PAUSE: Duration = Duration::from_micros(50);

/// Time after which a forked child takes a lock of a track or a span for lost: its own threads hold such a
/// lock for microseconds.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// Records that this process is a forked child.
pub(crate) fn set_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process is a forked child.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// A mutex that a forked child can detect as lost.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    mutex: StdMutex<T>,
    /// Whether the thread that holds it did not survive a fork.
    is_lost: AtomicBool,
}

pub(crate) type MutexGuard<'l, T> = Guard<StdGuard<'l, T>>;

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { mutex: StdMutex::new(value), is_lost: AtomicBool::new(false) }
    }

    /// Takes the lock. Other threads hold it for a few instructions only.
    ///
    /// In a forked child the lock may be lost, and this call then never returns. So call it only for locks
    /// that `fork.rs` holds over a fork, and for locks that no event takes.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.lock_when_free())
    }

    #[cold]
    fn lock_when_free(&self) -> MutexGuard<'_, T> {
        let mut wait = Wait::new();
        loop {
            wait.a_little();
            if let Some(guard) = self.try_lock() {
                return guard;
            }
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        unless_blocked(self.mutex.try_lock()).map(Guard::new)
    }

    /// Tries to take the lock until a point in time; `None` if it is still held then.
    pub(crate) fn try_lock_until(&self, until: Instant) -> Option<MutexGuard<'_, T>> {
        retry_until(until, || self.try_lock())
    }

    /// Takes the lock, for however long another thread of `process` holds it. `None` in another process: a
    /// forked child, which has no such thread.
    pub(crate) fn lock_in(&self, process: u32) -> Option<MutexGuard<'_, T>> {
        let mut wait = Wait::new();
        loop {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            if process::id() != process {
                return None;
            }
            wait.a_little();
        }
    }

    /// Takes the lock. `None` in a forked child if another thread of the parent held the lock at the fork.
    #[inline]
    pub(crate) fn lock_unless_lost(&self) -> Option<MutexGuard<'_, T>> {
        self.try_lock().or_else(|| self.lock_contended())
    }

    /// Takes the lock, with room in a container that it guards: see [`growing::lock_with_room`].
    #[inline]
    pub(crate) fn lock_with_room<C: Grow>(
        &self,
        container: impl Fn(&mut T) -> (&mut C, usize),
    ) -> MutexGuard<'_, T> {
        let Ok(guard) = growing::lock_with_room::<_, Infallible, _>(|| Ok(self.lock()), container);
        guard
    }

    /// Takes the lock like [`lock_unless_lost`](Self::lock_unless_lost), with room in a container that it
    /// guards.
    #[inline]
    pub(crate) fn lock_unless_lost_with_room<C: Grow>(
        &self,
        container: impl Fn(&mut T) -> (&mut C, usize),
    ) -> Option<MutexGuard<'_, T>> {
        growing::lock_with_room(|| self.lock_unless_lost().ok_or(()), container).ok()
    }

    #[cold]
    fn lock_contended(&self) -> Option<MutexGuard<'_, T>> {
        if self.is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let guard = retry_unless_lost(|| self.try_lock());
        self.is_lost.store(guard.is_none(), Ordering::Relaxed);
        guard
    }
}

/// A condition variable for a [`Mutex`].
#[derive(Debug)]
pub(crate) struct Condvar {
    /// How often it was notified.
    notified: Awaited,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self { notified: Awaited::new(0) }
    }

    pub(crate) fn notify_all(&self) {
        self.notified.change(|n| n.wrapping_add(1));
    }

    /// Takes the lock once the condition does not hold, or at `until`.
    ///
    /// `None` in a child that a signal handler of `process` has forked meanwhile: nobody notifies it there.
    pub(crate) fn lock_unless<'l, T>(
        &self,
        mutex: &'l Mutex<T>,
        process: u32,
        until: Option<Instant>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Option<MutexGuard<'l, T>> {
        loop {
            let mut guard = mutex.lock_in(process)?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) || !condition(&mut guard) {
                return Some(guard);
            }
            let notified = self.notified.load(); // under the lock: a change of the condition comes later
            drop(guard);
            self.notified.sleep_while(notified, left.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP)));
            if process::id() != process {
                return None;
            }
        }
    }
}

/// Returns the guard of a lock that was free, poisoned or not.
fn unless_blocked<G>(tried: Result<G, TryLockError<G>>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a lock by trying again: first at once, then after a yield to other threads, then after
/// [`PAUSE`].
///
/// It does not use the standard library's wait, from which a forked child may never return: a signal handler
/// can fork while its thread waits there, and no thread wakes the child. ThreadSanitizer does not see into
/// that wait either, and so misses the order that it makes.
pub(crate) struct Wait {
    tries: u32,
    since: Option<Instant>,
}

impl Wait {
    const SPINS: u32 = 100;
    const YIELDS: u32 = 10;

    pub(crate) fn new() -> Self {
        Self { tries: 0, since: None }
    }

    pub(crate) fn a_little(&mut self) {
        self.tries = self.tries.saturating_add(1);
        if self.tries < Self::SPINS {
            std::hint::spin_loop();
        } else if self.tries < Self::SPINS + Self::YIELDS {
            std::thread::yield_now();
        } else {
            let _uncancelled = Uncancelled::new();
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether this is a forked child that has waited long enough to take the lock for lost.
    fn is_lost(&mut self) -> bool {
        is_forked() && self.since.get_or_insert_with(Instant::now).elapsed() >= LOST_AFTER
    }
}

/// Repeats `attempt` until it succeeds; `None` if it has not by `until`.
fn retry_until<G>(until: Instant, attempt: impl Fn() -> Option<G>) -> Option<G> {
    let mut wait = Wait::new();
    loop {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        if Instant::now() >= until {
            return None;
        }
        wait.a_little();
    }
}

/// Repeats `attempt` until it succeeds; `None` in a forked child that has lost the lock.
fn retry_unless_lost<G>(attempt: impl Fn() -> Option<G>) -> Option<G> {
    let mut wait = Wait::new();
    loop {
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        if wait.is_lost() {
            return None;
        }
        wait.a_little();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_in_its_own_process_only() {
        let (lock, own) = (Mutex::new(1), process::id());
        std::thread::scope(|threads| {
            let held = lock.lock();
            assert!(lock.lock_in(own + 1).is_none());
            let waits = threads.spawn(|| lock.lock_in(own).map(|value| *value));
            std::thread::sleep(2 * LOST_AFTER);
            drop(held);
            assert_eq!(waits.join().expect("no panic"), Some(1));
        });
    }

    #[test]
    fn a_condition_is_waited_for_in_its_own_process_only() {
        let (lock, changed, own) = (Mutex::new(0), Condvar::new(), process::id());
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| changed.lock_unless(&lock, own, None, |n| *n < 3).map(|n| *n));
            for _ in 0..3 {
                *lock.lock() += 1;
                changed.notify_all();
            }
            assert_eq!(waits.join().expect("no panic"), Some(3));
        });
        let soon = Some(Instant::now() + Duration::from_millis(5));
        assert_eq!(changed.lock_unless(&lock, own, soon, |_| true).map(|n| *n), Some(3), "in time");
        assert!(changed.lock_unless(&lock, own + 1, None, |_| true).is_none());
    }
}
