//! The epoch in which a flow began: a state that the clones of the flow share.
//!
//! A flow that was never cloned keeps the state in itself. The first clone moves it to memory that all clones
//! own. The flag [`SHARED`] marks the move: from then on nobody begins the flow in place. The epoch beside
//! the flag only saves a look at the shared memory.
//!
//! Exactly one event begins a flow in a trace: a read-modify-write of one atomic decides, in place or in the
//! shared memory.
//!
//! A step must be later than the begin. So an event looks at the state, then reads the clock, then begins the
//! flow. If another event has begun the flow since the look, the caller starts again with a new time. That is
//! as exact as the clocks of two threads agree.
//!
//! The order in the program is not enough: a processor may read its counter before an earlier load is done.
//! On the hot path an event compares its time with that of the begin, whose lowest bits are beside the epoch
//! ([`Known::is_before`]). On the other paths it waits for the load ([`after_loads`]). For clones, the shared
//! memory has the whole time of the begin, and a step that is not later gets a later time.

#![allow(unsafe_code)] // the pointer to the shared memory

use std::ptr;
use std::sync::Arc;

use crate::on::base::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, const_unless_loom, fence};

/// The epoch of a flow that began in another process. No session has it.
const ELSEWHERE: u32 = 1;

/// Set from the first clone on.
const SHARED: u64 = 1 << 32;

/// The times of an event and of its flow's begin may seem to be so far apart, in halves of units of 16 ns, if
/// the event is earlier: 1 ms.
const EARLIER: u32 = 1 << 17;

/// In which epoch a flow began. Clones share it.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Low half: the epoch in which the flow began, as far as this clone knows; 0 if it has not begun. High
    /// half: the [`stamp`] of that begin, or of a later event.
    here: AtomicU64,
    /// Null before the first clone. From `Arc::into_raw`.
    shared: AtomicPtr<Shared>,
}

/// The memory that the clones of a flow share.
#[derive(Debug)]
struct Shared {
    /// The epoch in which one of the clones began the flow.
    epoch: AtomicU32,
    /// The time of that begin, or a little later.
    time: AtomicU64,
}

impl Begun {
    const_unless_loom! {
        /// The flow began in this epoch; 0 if it has not begun.
        pub(crate) fn new(epoch: u32) -> Self {
            Self { here: AtomicU64::new(epoch as u64), shared: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    const_unless_loom! {
        /// The flow began in another process.
        pub(crate) fn elsewhere() -> Self {
            Self::new(ELSEWHERE)
        }
    }

    /// Returns the last epoch in which the flow began, as far as this clone knows; 0 if there is none.
    #[cfg(any(feature = "subscriber", feature = "sync"))]
    pub(crate) fn last(&self) -> u32 {
        self.here.load(Ordering::Relaxed) as u32
    }

    /// Returns what this clone knows of the flow's begin in the trace of this epoch, or in another process.
    /// `None`: an event of another clone may have begun it all the same.
    #[inline(always)]
    pub(crate) fn known_in(&self, epoch: u32) -> Option<Known> {
        let here = self.here.load(Ordering::Relaxed);
        is_in(here, epoch).then_some(Known { stamp: (here >> 32) as u32 })
    }

    /// Begins the flow in the trace of this epoch, at the time `now`, if no clone shares it. Returns `false`
    /// if nothing was changed. Call it if the flow [is not known](Self::known_in) to have begun.
    #[inline(always)]
    pub(crate) fn begin_alone(&self, epoch: u32, now: u64) -> bool {
        let here = self.here.load(Ordering::Relaxed);
        here & SHARED == 0 && !is_in(here, epoch) && self.set_here(here, epoch, now)
    }

    #[inline(always)]
    fn set_here(&self, here: u64, epoch: u32, now: u64) -> bool {
        // Relaxed: no other memory depends on it.
        let new = stamp(now) | u64::from(epoch);
        self.here.compare_exchange(here, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns `None` if the flow has not begun in the trace of this epoch. Otherwise, returns a time that
    /// all further events of the flow must exceed; 0 if there is none to heed.
    pub(crate) fn time_in(&self, epoch: u32) -> Option<u64> {
        let here = self.here.load(Ordering::Relaxed);
        if is_in(here, epoch) {
            after_loads();
            return Some(0);
        }
        // Acquire pairs with the swap in `begin`: the time is that of the begin.
        let shared = self.shared(here).filter(|shared| shared.epoch.load(Ordering::Acquire) == epoch)?;
        Some(shared.time.load(Ordering::Relaxed))
    }

    /// Notes for this clone that the flow began in the trace of this epoch. Call it with an event that heeds
    /// [`time_in`](Self::time_in), at the time `now`: later events of this clone do not look at the shared
    /// memory.
    pub(crate) fn set_known(&self, epoch: u32, now: u64) {
        let here = self.here.load(Ordering::Relaxed);
        if here & SHARED != 0 && !is_in(here, epoch) {
            self.here.store(stamp(now) | SHARED | u64::from(epoch), Ordering::Relaxed);
        }
    }

    /// Begins the flow in the trace of this epoch, at the time `now`. Returns `false` if it had begun there,
    /// or in another process.
    pub(crate) fn begin(&self, epoch: u32, now: u64) -> bool {
        loop {
            let here = self.here.load(Ordering::Relaxed);
            if is_in(here, epoch) {
                return false;
            }
            if let Some(shared) = self.shared(here) {
                return shared.begin(epoch, now);
            }
            if self.set_here(here, epoch, now) {
                return true;
            }
        }
    }

    /// Returns the shared memory, if `here` says that there is any.
    fn shared(&self, here: u64) -> Option<&Shared> {
        if here & SHARED == 0 {
            return None;
        }
        fence(Ordering::Acquire); // pairs with the Release of the flag in `clone`: the pointer is set
        // SAFETY: `clone` set the pointer before the flag, and this clone owns a share of its target.
        Some(unsafe { &*self.shared.load(Ordering::Relaxed) })
    }

    /// Returns the memory that the clones share, and makes it at the first clone.
    fn share(&self) -> *mut Shared {
        // Acquire pairs with the Release of the exchange below, on another thread: the memory is initialised.
        let shared = self.shared.load(Ordering::Acquire);
        if !shared.is_null() {
            return shared;
        }
        let new = Shared { epoch: AtomicU32::new(0), time: AtomicU64::new(0) };
        let new = Arc::into_raw(Arc::new(new)).cast_mut();
        let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.shared.compare_exchange(ptr::null_mut(), new, order, failed).map_or_else(
            |others| {
                // SAFETY: `into_raw` made `new`, and nobody else has seen it.
                drop(unsafe { Arc::from_raw(new) });
                others
            },
            |_| new,
        )
    }
}

impl Shared {
    /// As [`Begun::begin`].
    fn begin(&self, epoch: u32, now: u64) -> bool {
        // All that try to begin the flow raise the time, so it is not before that of the event that succeeds.
        let mut time = self.time.load(Ordering::Relaxed);
        while time < now {
            match self.time.compare_exchange(time, now, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(newer) => time = newer,
            }
        }
        // Release pairs with the load in `time_in`. Acquire: the caller that fails looks at the time.
        self.epoch.swap(epoch, Ordering::AcqRel) != epoch
    }
}

/// The begin of a flow, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    stamp: u32,
}

impl Known {
    /// Whether the begin is surely before `now`. It may be even if not: once in 34 s for 1 ms, and in the
    /// same 16 ns. Then [`Begun::time_in`] finds out.
    #[inline(always)]
    pub(crate) fn is_before(self, now: u64) -> bool {
        let apart = ((now >> 3) as u32 & !1).wrapping_sub(self.stamp & !1);
        apart.wrapping_sub(2) < u32::MAX - EARLIER
    }
}

/// Returns the lowest 31 bits of a time, in units of 16 ns, at their place above [`SHARED`].
fn stamp(now: u64) -> u64 {
    (now >> 4) << 33
}

/// Makes a clock that is read from here on tell a time after that of all earlier loads.
fn after_loads() {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: all processors of this architecture have the instruction.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(all(target_arch = "aarch64", not(loom), not(miri)))]
    // SAFETY: all processors of this architecture have these instructions, which touch no memory. The `dsb`
    // ends when all earlier loads have their values, and the `isb` keeps the reads of the counter behind it.
    // A tick can be 50 ns long. So this waits for the next one: the begin may be in the present one.
    unsafe {
        std::arch::asm!(
            "dsb ishld",
            "isb",
            "mrs {before}, cntvct_el0",
            "2:",
            "isb",
            "mrs {now}, cntvct_el0",
            "cmp {now}, {before}",
            "b.eq 2b",
            before = out(reg) _,
            now = out(reg) _,
            options(nostack),
        );
    }
}

/// Whether the state says that the flow began in this epoch, or in another process.
#[inline(always)]
fn is_in(here: u64, epoch: u32) -> bool {
    here as u32 == epoch || here as u32 == ELSEWHERE
}

impl Clone for Begun {
    fn clone(&self) -> Self {
        if self.here.load(Ordering::Relaxed) as u32 == ELSEWHERE {
            return Self::elsewhere(); // for ever: there is nothing to share
        }
        let shared = self.share();
        // SAFETY: `share` returned a pointer from `Arc::into_raw`, of which `self` owns a share.
        unsafe { Arc::increment_strong_count(shared) };
        // Release pairs with the fence in `shared`.
        let here = self.here.fetch_or(SHARED, Ordering::AcqRel) | SHARED;
        Self { here: AtomicU64::new(here), shared: AtomicPtr::new(shared) }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let shared = self.shared.load(Ordering::Relaxed); // alone: the drop owns `self`
        if !shared.is_null() {
            // SAFETY: the share that `share` or `clone` gave this clone.
            drop(unsafe { Arc::from_raw(shared) });
        }
    }
}

#[cfg(all(test, not(loom)))] // the models include this file
mod tests {
    use super::*;

    #[test]
    fn a_step_is_surely_after_the_begin_from_the_next_16_ns_on() {
        for begin in [1 << 40, (1 << 40) + 15, (1 << 35) - 16, (1 << 35) - 1, u64::from(u32::MAX) << 4] {
            let flow = Begun::new(0);
            assert!(flow.known_in(4).is_none() && flow.begin_alone(4, begin));
            let known = flow.known_in(4).expect("it has begun");
            for before in [0, 1, 15, 16, 100, 500_000] {
                assert!(!known.is_before(begin - before), "{begin} {before}");
            }
            for after in [16, 17, 100, 1_000_000, 10_000_000_000, 34_000_000_000] {
                assert!(known.is_before(begin + after), "{begin} {after}");
            }
            assert_eq!(flow.time_in(4), Some(0));
            assert!(flow.known_in(6).is_none() && flow.time_in(6).is_none());
        }
    }
}
