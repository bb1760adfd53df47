//! What is done at a call of the allocator: one word, which each call loads.

use std::sync::atomic::{AtomicU32, Ordering};

/// The reasons for a call of the allocator to be looked at. Relaxed throughout: it guards no memory.
static SWITCH: AtomicU32 = AtomicU32::new(UNANNOUNCED);
/// No call was looked at yet: the session does not know of the allocator.
const UNANNOUNCED: u32 = 1;
/// A session records the counts.
const SESSION: u32 = 2;
/// The program counts always.
const ALWAYS: u32 = 4;
/// The number of the heap profile, from this bit on; 0 for none.
const PROFILE: u32 = 8;

/// What the word said at a call of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch(u32);

/// Returns what is to be done at a call of the allocator.
#[inline(always)]
pub(crate) fn switch() -> Switch {
    Switch(SWITCH.load(Ordering::Relaxed))
}

impl Switch {
    /// Nothing is to be done.
    pub(super) const OFF: Self = Self(0);

    /// Whether a call of the allocator is to be looked at.
    #[inline(always)]
    pub(crate) fn is_on(self) -> bool {
        self != Self::OFF
    }

    /// Returns the number of the heap profile for which allocations are sampled; 0 for none.
    #[inline(always)]
    pub(crate) fn profile(self) -> u32 {
        self.0 >> PROFILE
    }

    /// Whether no call was looked at yet.
    pub(crate) fn is_unannounced(self) -> bool {
        self.0 & UNANNOUNCED != 0
    }

    /// Whether the counts of a session are on.
    pub(crate) fn is_session(self) -> bool {
        self.0 & SESSION != 0
    }

    /// Whether the program counts always.
    pub(crate) fn is_always(self) -> bool {
        self.0 & ALWAYS != 0
    }
}

/// Sets the number of the heap profile.
#[cfg_attr(not(feature = "sampling"), allow(dead_code))]
pub(super) fn set_profile(number: u32) {
    let set = |switch| Some(switch & ((1 << PROFILE) - 1) | number << PROFILE);
    let _ = SWITCH.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
}

/// In a forked child: switches off what a session has switched on.
pub(super) fn clear_session() {
    SWITCH.fetch_and(UNANNOUNCED | ALWAYS, Ordering::Relaxed);
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
