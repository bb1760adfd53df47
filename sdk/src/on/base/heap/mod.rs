//! Counts of the program's allocations, by thread, and the switch that turns them on.
//!
//! An allocation comes from anywhere: before `main`, under a lock of the program, from inside of Hairline,
//! after a thread's locals are gone. So this file takes no lock and allocates nothing.

pub(crate) mod profile;
mod slots;
mod switch;

use std::cell::Cell;

use crate::on::base::heap::profile::Countdown;
pub(crate) use crate::on::base::heap::slots::Counts;
use crate::on::base::heap::slots::{Slot, Slots};
pub(crate) use crate::on::base::heap::switch::{Switch, set_announced, set_session, switch};

static SLOTS: Slots = Slots::new();

thread_local! {
    static LOCAL: Local = const {
        Local { slot: Cell::new(None), countdown_of: Cell::new(Switch::OFF), countdown: Countdown::new() }
    };
    /// Whether the thread is claiming a slot: the C library may allocate for a destructor.
    static IS_CLAIMING: Cell<bool> = const { Cell::new(false) };
    static RELEASE: Release = const { Release };
}

/// What each call of the allocator reads of its thread: in one place, without a destructor.
struct Local {
    /// `None` before the thread's first call, after its end, and if there are too many threads.
    slot: Cell<Option<&'static Slot>>,
    /// What the switch said when the countdown began. Any change begins another one: the distances have no
    /// memory, so that biases nothing.
    countdown_of: Cell<Switch>,
    countdown: Countdown,
}

/// Releases the thread's slot at the thread's end.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(slot) = LOCAL.with(|local| local.slot.take()) {
            SLOTS.release(slot);
        }
    }
}

/// In a forked child: the session and its profile are the parent's.
pub(crate) fn leave_in_child() {
    switch::clear_session();
    profile::leave_in_child();
}

/// Counts an allocation of this size, unless it is to be looked at: then it returns `false`, and nothing has
/// changed. A thread that has a slot has announced the allocator, or has seen that.
#[inline(always)]
pub(crate) fn allocated(size: usize, change: Counts) -> bool {
    LOCAL.with(|local| {
        local.countdown_of.get() == switch()
            && local.slot.get().is_some_and(|slot| {
                let goes_on = local.countdown.subtract(size);
                if goes_on {
                    slot.add(change);
                }
                goes_on
            })
    })
}

/// Adds to this thread's counts. Returns `false` if it has none of its own, and adds nothing then.
#[inline(always)]
pub(crate) fn add_if_prepared(change: Counts) -> bool {
    LOCAL.with(|local| local.slot.get().map(|slot| slot.add(change)).is_some())
}

/// Adds to this thread's counts.
pub(crate) fn add(change: Counts) {
    if !add_if_prepared(change) {
        add_at_first(change);
    }
}

/// Subtracts an allocation for which [`allocated`] returned `false` from the thread's countdown. Returns
/// whether that ended.
pub(crate) fn is_turn_of(size: usize, switch: Switch) -> bool {
    LOCAL.with(|local| {
        let has_begun = local.countdown_of.replace(switch) == switch;
        local.countdown.is_turn_of(size, switch.profile(), has_begun)
    })
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
        LOCAL.with(|local| local.slot.set(SLOTS.claim()));
    }
    IS_CLAIMING.set(false);
}
