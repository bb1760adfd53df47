//! The atomics, sleeps and fences of this crate: those of the system, or loom's under `--cfg loom`.

use std::time::{Duration, Instant};

#[cfg(not(loom))]
use crate::platform;

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub(crate) use explored::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, fence};

/// A fence for the compiler, and so for signal handlers of this thread. Other threads need
/// [`fence_all_threads`] as the other half: the two together act like two full fences. Under loom both are
/// full fences.
#[inline(always)]
pub(crate) fn light_fence() {
    #[cfg(loom)]
    interrupts::light_fence();
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub use interrupts::fence_all_threads;

/// Makes all threads of this process pass a fence during the call: the system interrupts those that run.
///
/// Returns `false` if the system cannot do that: macOS, the BSDs, Linux before 4.14, a seccomp filter.
#[cfg(not(loom))]
pub fn fence_all_threads() -> bool {
    platform::fence_all_threads()
}

/// A function that is `const`, except under loom, whose atomics cannot be created at compile time.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* pub fn $name:ident($($argument:ident: $of:ty)?) -> $Type:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        pub const fn $name($($argument: $of)?) -> $Type $body

        $(#[$meta])*
        #[cfg(loom)]
        pub fn $name($($argument: $of)?) -> $Type $body
    };
}
pub(crate) use const_unless_loom;

/// Returns the time that is left until then. Under loom time does not pass.
pub(crate) fn time_until(until: Instant) -> Duration {
    if cfg!(loom) { Duration::MAX } else { until.saturating_duration_since(Instant::now()) }
}

/// The threads that sleep at a word, in the system.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Asleep;

#[cfg(not(loom))]
impl Asleep {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Sleeps while the word has this value, for `longest` at most. May return earlier.
    #[allow(clippy::unused_self)] // loom's has a state
    pub(crate) fn sleep_while(&self, word: &AtomicU32, value: u32, longest: Duration) {
        platform::sleep_while(word, value, longest);
    }

    /// Wakes all threads that sleep at the word.
    #[allow(clippy::unused_self)]
    pub(crate) fn wake_all(&self, word: &AtomicU32) {
        platform::wake_all(word);
    }
}

/// What the system does with threads that sleep at a word: it compares and begins the sleep under a lock of
/// its own, which a wake-up takes too. No sleep ends without a wake-up, so a missed one is a deadlock.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Asleep(loom::sync::Mutex<()>, loom::sync::Condvar);

#[cfg(loom)]
impl Asleep {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Mutex::new(()), loom::sync::Condvar::new())
    }

    pub(crate) fn sleep_while(&self, word: &AtomicU32, value: u32, _longest: Duration) {
        let guard = self.0.lock().expect("no panic");
        if word.load(Ordering::Relaxed) == value {
            drop(self.1.wait(guard));
        }
    }

    pub(crate) fn wake_all(&self, _word: &AtomicU32) {
        drop(self.0.lock());
        self.1.notify_all();
    }
}

/// `membarrier` under loom, in one of two ways.
///
/// By default each light fence is a full one. That is stronger than the real code, so such a model can miss a
/// bug. After [`model_interrupts`](interrupts::model_interrupts) the light fences do nothing, and
/// [`fence_all_threads`](interrupts::fence_all_threads) makes the other thread pass a full fence at one of
/// the points at which it [may be interrupted](interrupts::may_be_interrupted). That thread calls
/// [`now_idle`](interrupts::now_idle) at its end.
#[cfg(loom)]
pub(crate) mod interrupts {
    use std::cell::Cell;

    use super::{Ordering, fence};
    use loom::sync::atomic::AtomicU32;

    loom::lazy_static! {
        static ref ASKED: AtomicU32 = AtomicU32::new(0);
        static ref HEEDED: AtomicU32 = AtomicU32::new(0);
    }

    thread_local! {
        // All threads of a model are one thread of the system.
        static ARE_MODELLED: Cell<bool> = const { Cell::new(false) };
    }

    /// Chooses whether this model has interrupts. It then has two threads and one call of
    /// [`fence_all_threads`].
    pub fn model_interrupts(are_modelled: bool) {
        ARE_MODELLED.set(are_modelled);
    }

    pub(super) fn light_fence() {
        if !ARE_MODELLED.get() {
            fence(Ordering::SeqCst);
        }
    }

    /// Ends the thread, which is a fence too: the kernel need not interrupt it.
    pub fn now_idle() {
        fence(Ordering::SeqCst);
        HEEDED.store(1, Ordering::Release);
    }

    /// A point at which the kernel may interrupt the thread. Passes a fence if one was requested.
    pub fn may_be_interrupted() {
        if ARE_MODELLED.get() {
            heed_interrupt();
        }
    }

    fn heed_interrupt() {
        if ASKED.load(Ordering::Acquire) != 0 && HEEDED.load(Ordering::Relaxed) == 0 {
            fence(Ordering::SeqCst);
            HEEDED.store(1, Ordering::Release);
        }
    }

    /// Makes all threads of this process pass a fence during the call.
    pub fn fence_all_threads() -> bool {
        fence(Ordering::SeqCst);
        if ARE_MODELLED.get() {
            ASKED.store(1, Ordering::Release);
            while HEEDED.load(Ordering::Acquire) == 0 {
                loom::thread::yield_now();
            }
            fence(Ordering::SeqCst);
        }
        true
    }
}

/// loom's atomics, with all orders of their accesses explored.
///
/// loom tries another order of two accesses only if the later one conflicts with the *last* access to that
/// atomic. If a thread loads its own last store before it stores again, its load is the last access. It hides
/// the loads of other threads, and loom never tries the second store before those. So here each access is
/// preceded by a relaxed read-modify-write of a cell beside the atomic. That orders no memory, but it
/// conflicts with every other access, so loom tries all orders.
#[cfg(loom)]
#[allow(unreachable_pub)] // the models reach them through fields of the header
mod explored {
    use loom::sync::atomic::AtomicUsize;
    pub(crate) use loom::sync::atomic::Ordering;

    macro_rules! explored {
        ($Atomic:ident, $int:ty) => {
            #[derive(Debug, Default)]
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

                pub fn swap(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().swap(value, order)
                }

                pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_add(value, order)
                }

                pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_max(value, order)
                }

                pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                    self.in_turn().fetch_sub(value, order)
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
