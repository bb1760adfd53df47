//! Counts of the program's allocations, by thread, and the switch that turns them on.
//!
//! An allocation comes from anywhere: before `main`, under a lock of the program, from inside of Hairline,
//! after a thread's locals are gone. So this file takes no lock and allocates nothing.

mod slots;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use crate::on::base::heap::slots::Counts;
use crate::on::base::heap::slots::{Slot, Slots};

static SLOTS: Slots = Slots::new();

/// The reasons for a call of the allocator to be looked at. Relaxed throughout: it guards no memory.
static SWITCH: AtomicU32 = AtomicU32::new(UNANNOUNCED);
/// No call was looked at yet: the session does not know of the allocator.
const UNANNOUNCED: u32 = 1;
/// A session records the counts.
const SESSION: u32 = 2;
/// The program counts always.
const ALWAYS: u32 = 4;

thread_local! {
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// Whether the thread is claiming a slot: the C library may allocate for a destructor.
    static IS_CLAIMING: Cell<bool> = const { Cell::new(false) };
    static RELEASE: Release = const { Release };
}

/// Releases the thread's slot at the thread's end.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(slot) = SLOT.take() {
            SLOTS.release(slot);
        }
    }
}

/// Whether a call of the allocator is to be looked at.
#[inline(always)]
pub(crate) fn is_counting() -> bool {
    SWITCH.load(Ordering::Relaxed) != 0
}

/// Whether no call was looked at yet.
#[inline(always)]
pub(crate) fn is_unannounced() -> bool {
    SWITCH.load(Ordering::Relaxed) & UNANNOUNCED != 0
}

/// Ends the state in which no call was looked at.
pub(crate) fn set_announced(counts_always: bool) {
    if counts_always {
        SWITCH.fetch_or(ALWAYS, Ordering::Relaxed);
    }
    SWITCH.fetch_and(!UNANNOUNCED, Ordering::Relaxed);
}

/// Switches the counts of a session on or off.
pub(crate) fn set_session(on: bool) {
    if on {
        SWITCH.fetch_or(SESSION, Ordering::Relaxed);
    } else {
        SWITCH.fetch_and(!SESSION, Ordering::Relaxed);
    }
}

/// Whether the counts of a session are on.
pub(crate) fn is_session_counting() -> bool {
    SWITCH.load(Ordering::Relaxed) & SESSION != 0
}

/// Whether the program counts always.
pub(crate) fn counts_always() -> bool {
    SWITCH.load(Ordering::Relaxed) & ALWAYS != 0
}

/// Adds to this thread's counts.
#[inline(always)]
pub(crate) fn add(change: Counts) {
    match SLOT.get() {
        Some(slot) => slot.add(change),
        None => add_at_first(change),
    }
}

/// Returns the sum of all threads' counts.
pub(crate) fn sum() -> Counts {
    SLOTS.sum()
}

/// Adds to the counts of a thread without a slot, and claims a slot if there is one and the thread's end
/// can release it.
#[cold]
#[inline(never)]
fn add_at_first(change: Counts) {
    SLOTS.add_shared(change);
    if IS_CLAIMING.replace(true) {
        return;
    }
    if RELEASE.try_with(|_| ()).is_ok() {
        SLOT.set(SLOTS.claim());
    }
    IS_CLAIMING.set(false);
}
