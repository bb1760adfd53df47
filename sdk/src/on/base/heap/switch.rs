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

/// Whether a call of the allocator is to be looked at.
#[inline(always)]
pub(crate) fn is_counting() -> bool {
    SWITCH.load(Ordering::Relaxed) != 0
}

/// Returns the number of the heap profile for which allocations are sampled; 0 for none.
#[inline(always)]
pub(crate) fn profile() -> u32 {
    SWITCH.load(Ordering::Relaxed) >> PROFILE
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
