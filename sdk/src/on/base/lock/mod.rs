//! This crate's locks: the standard library's, which hold all their state in themselves.
//!
//! That matters to a forked child, which is a copy of its parent at a moment when other threads were doing
//! anything: locks whose waiters queue in a table of the process (parking_lot's) may leave that table locked
//! for ever. These leave only the locks themselves, and there are two kinds of them:
//!
//! * those of the tables that a child needs are taken by whoever forks, for the time of the fork: `fork.rs`;
//! * all others, as those in tracks and spans, may be lost. [`Mutex::lock_unless_lost`] gives one up that a
//!   thread held which does not exist in the child.
//!
//! A thread that panicked with a lock held has left nothing half-done here: poison does not count.
//!
//! No code of the program runs under these locks, and no thread allocates, frees or blocks while it holds
//! one: the reasons, and the means for containers, are in `lock/growing.rs`.

mod growing;
mod guard;
#[cfg(any(feature = "subscriber", feature = "log"))]
mod rw;

use std::convert::Infallible;
use std::sync::Condvar as StdCondvar;
use std::sync::Mutex as StdMutex;
use std::sync::MutexGuard as StdGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub(crate) use crate::on::base::lock::growing::{Fixed, Grow, Map};
pub(crate) use crate::on::base::lock::guard::Guard;
#[cfg(debug_assertions)]
pub use crate::on::base::lock::guard::holds_a_lock;
#[cfg(any(feature = "subscriber", feature = "log"))]
pub(crate) use crate::on::base::lock::rw::{RwLock, WriteGuard};

/// Set in a forked child, and in its own.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Time between two looks at a lock that another thread has.
const LOOK: Duration = Duration::from_micros(50);

/// How long a forked child waits for a lock of a track or a span: its own threads hold one for microseconds.
const LOST_AFTER: Duration = Duration::from_millis(50);

/// This process is a forked child.
pub(crate) fn set_forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether it is one.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    mutex: StdMutex<T>,
    /// Its holder did not survive a fork.
    is_lost: AtomicBool,
}

pub(crate) type MutexGuard<'l, T> = Guard<StdGuard<'l, T>>;

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { mutex: StdMutex::new(value), is_lost: AtomicBool::new(false) }
    }

    /// Takes the lock. Other threads hold it for some instructions only.
    ///
    /// In a forked child it may be lost, and this waits without end: only for locks that `fork.rs` holds over
    /// a fork, and for those that no event takes.
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

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        unless_blocked(self.mutex.try_lock()).map(Guard::new)
    }

    pub(crate) fn try_lock_until(&self, until: Instant) -> Option<MutexGuard<'_, T>> {
        retry_until(until, || self.try_lock())
    }

    /// None in a forked child whose parent had another thread in here at the fork.
    #[inline]
    pub(crate) fn lock_unless_lost(&self) -> Option<MutexGuard<'_, T>> {
        self.try_lock().or_else(|| self.lock_contended())
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
    fn lock_contended(&self) -> Option<MutexGuard<'_, T>> {
        if self.is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let guard = retry_unless_lost(|| self.try_lock());
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
        guard.wait(|guard| self.0.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, at most so long.
    pub(crate) fn wait_while_for<'l, T>(
        &self,
        guard: MutexGuard<'l, T>,
        longest: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'l, T> {
        guard.wait(|guard| {
            self.0.wait_timeout_while(guard, longest, condition).unwrap_or_else(PoisonError::into_inner).0
        })
    }
}

fn unless_blocked<G>(tried: Result<G, TryLockError<G>>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a lock by looking again: first at once, then after others had the core, then after [`LOOK`].
///
/// Not by the standard library's wait, from which a forked child never returns: a signal handler may fork
/// while its thread waits there, and nobody wakes the child. Nor does ThreadSanitizer see into it, and so not
/// the order that it makes.
struct Wait {
    looks: u32,
    since: Option<Instant>,
}

impl Wait {
    const SPINS: u32 = 100;
    const YIELDS: u32 = 10;

    fn new() -> Self {
        Self { looks: 0, since: None }
    }

    fn a_little(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < Self::SPINS {
            std::hint::spin_loop();
        } else if self.looks < Self::SPINS + Self::YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(LOOK);
        }
    }

    /// Whether this is a forked child that has waited for so long that the lock must be lost.
    fn is_lost(&mut self) -> bool {
        is_forked() && self.since.get_or_insert_with(Instant::now).elapsed() >= LOST_AFTER
    }
}

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

/// `None` in a forked child that has lost the lock.
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
