//! Counts of the program's allocations, by thread, and the switch that turns them on.
//!
//! An allocation comes from anywhere: before `main`, under a lock of the program, from inside of Hairline,
//! after a thread's locals are gone. So this file takes no lock and allocates nothing.

pub(crate) mod profile;
mod slots;
mod switch;

use std::cell::Cell;

pub(crate) use crate::on::base::heap::slots::Counts;
use crate::on::base::heap::slots::{Slot, Slots};
pub(crate) use crate::on::base::heap::switch::{
    counts_always, is_counting, is_session_counting, is_unannounced, profile, set_announced, set_session,
};

static SLOTS: Slots = Slots::new();

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

/// In a forked child: the session and its profile are the parent's.
pub(crate) fn leave_in_child() {
    switch::clear_session();
    profile::leave_in_child();
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
