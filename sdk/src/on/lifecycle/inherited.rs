//! Whether the environment was heeded, and what a forked child starts from in its place.

#![allow(unsafe_code)] // a Box behind an atomic pointer

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::builder::Config;

/// The settings of a forked child's own session, until that session starts. Not behind a lock: a child of this
/// child could find the lock held by a thread that does not exist there.
static INHERITED: AtomicPtr<Config> = AtomicPtr::new(std::ptr::null_mut());

/// Whether this is a forked child that begins a trace of its own at its first event.
#[inline]
pub(crate) fn is_pending() -> bool {
    !INHERITED.load(Ordering::Relaxed).is_null() // nothing is read through it
}

/// Replaces what the child's own session is started from. Returns what was there. Allocates nothing.
pub(crate) fn set(config: Option<Box<Config>>) -> Option<Box<Config>> {
    let new = config.map_or(std::ptr::null_mut(), Box::into_raw);
    // Release and Acquire pair with those of another call: who takes the value sees it whole.
    let before = INHERITED.swap(new, Ordering::AcqRel);
    // SAFETY: null, or from the Box of a call before this one. The swap gives it to one caller only.
    (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
}

/// What a forked child's own session is started from, once.
pub(crate) fn take() -> Option<Config> {
    set(None).map(|config| *config)
}

/// Whether the environment has been heeded.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(UNHEEDED);
pub(crate) const UNHEEDED: u32 = 0;
/// A thread is at it.
pub(crate) const STARTING: u32 = 1;
pub(crate) const HEEDED: u32 = 2;

/// The environment is not heeded any more: the program has started a session in its place.
pub(crate) fn set_heeded() {
    STATE.store(HEEDED, Ordering::Release);
}

/// In a forked child: the environment is heeded anew, with what the child has inherited if that `is_pending`; or since the thread
/// that was at it does not exist here.
pub(crate) fn heed_in_child(is_pending: bool) {
    if is_pending || STATE.load(Ordering::Relaxed) == STARTING {
        STATE.store(UNHEEDED, Ordering::Release);
    }
}
