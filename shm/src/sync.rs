//! The atomics of this crate: `core`'s, or loom's under `--cfg loom`.

use std::sync::PoisonError;
use std::time::Instant;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use explored::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

/// Locks; that a thread panicked with the lock held is no matter, since nothing here panics half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until `woken` is notified, or the time has come: then it says so. Under loom time does not pass.
pub(crate) fn wait_until<'g, T>(
    woken: &Condvar,
    guard: MutexGuard<'g, T>,
    until: Instant,
) -> (MutexGuard<'g, T>, bool) {
    #[cfg(loom)]
    {
        let _ = until;
        (woken.wait(guard).unwrap_or_else(PoisonError::into_inner), false)
    }
    #[cfg(not(loom))]
    {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (guard, true);
        }
        let (guard, _) = woken.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        (guard, false) // the next call will find the time over
    }
}

/// loom's atomics, made to be explored to the end.
///
/// loom runs another order of two accesses only when it sees that the later one conflicts with the *last*
/// access to that atomic. A thread that loads its own last store before it stores again is itself the last, and
/// so hides every other thread's load: such a store is never tried before that load. Here each access is led by
/// a relaxed read-modify-write of a cell beside the atomic. It orders no memory, but it conflicts with every
/// other, so loom tries all orders of the accesses, own loads or not.
#[cfg(loom)]
mod explored {
    use loom::sync::atomic::AtomicUsize;
    pub(crate) use loom::sync::atomic::Ordering;

    macro_rules! explored {
        ($Atomic:ident, $int:ty) => {
            #[derive(Debug)]
            pub struct $Atomic {
                turn: AtomicUsize,
                value: loom::sync::atomic::$Atomic,
            }

            #[allow(dead_code)] // not every integer needs every operation
            impl $Atomic {
                pub fn new(value: $int) -> Self {
                    Self { turn: AtomicUsize::new(0), value: loom::sync::atomic::$Atomic::new(value) }
                }

                fn in_turn(&self) -> &loom::sync::atomic::$Atomic {
                    self.turn.fetch_add(0, Ordering::Relaxed);
                    &self.value
                }

                pub fn load(&self, order: Ordering) -> $int {
                    self.in_turn().load(order)
                }

                pub fn store(&self, value: $int, order: Ordering) {
                    self.in_turn().store(value, order);
                }

                pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_add(value, order)
                }

                pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_and(value, order)
                }

                pub fn compare_exchange(
                    &self,
                    current: $int,
                    new: $int,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$int, $int> {
                    self.in_turn().compare_exchange(current, new, success, failure)
                }

                pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_or(value, order)
                }
            }
        };
    }

    explored!(AtomicU32, u32);
    explored!(AtomicU64, u64);
}
