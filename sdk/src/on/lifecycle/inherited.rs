//! The state of the process's automatic start, and the settings that a forked child starts from instead of
//! the environment.

#![allow(unsafe_code)] // a Box behind an atomic pointer

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::builder::{Config, Requester};

/// The settings of a forked child's own session, until that session starts. An atomic instead of a lock: a
/// child of this child could inherit the lock from a thread that does not exist there.
static INHERITED: AtomicPtr<Config> = AtomicPtr::new(std::ptr::null_mut());

/// Returns whether this process is a forked child that starts its own session at its first event.
#[inline]
pub(crate) fn is_pending() -> bool {
    !INHERITED.load(Ordering::Relaxed).is_null() // Relaxed: nothing is read through the pointer
}

/// Whether the environment requested the session that the settings come from.
static IS_FROM_ENVIRONMENT: AtomicBool = AtomicBool::new(false);

/// Returns whether the environment requested the session that the settings of the child's own session come
/// from.
pub(crate) fn is_from_environment() -> bool {
    IS_FROM_ENVIRONMENT.load(Ordering::Relaxed) // stored in `fork`, when the child has one thread
}

/// Replaces the settings of the child's own session. Returns the settings before. Allocates nothing.
pub(crate) fn set(config: Option<Box<Config>>) -> Option<Box<Config>> {
    let is_from_environment =
        config.as_ref().is_some_and(|config| config.requester == Requester::Environment);
    IS_FROM_ENVIRONMENT.store(is_from_environment, Ordering::Relaxed);
    let new = config.map_or(std::ptr::null_mut(), Box::into_raw);
    // Release and Acquire pair with those of other calls: the call that takes the settings sees all of them.
    let before = INHERITED.swap(new, Ordering::AcqRel);
    // SAFETY: the pointer is null, or from `Box::into_raw` in an earlier call. The swap gives it to one
    // caller.
    (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
}

/// Takes the settings of the child's own session.
pub(crate) fn take() -> Option<Config> {
    set(None).map(|config| *config)
}

/// The state of the process's automatic start, from the environment or from the inherited settings.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(NOT_STARTED);
pub(crate) const NOT_STARTED: u32 = 0;
/// A thread reads the settings and starts the session.
pub(crate) const STARTING: u32 = 1;
/// The session has started, or the process has none.
pub(crate) const DONE: u32 = 2;

/// Returns whether the automatic start is over, with a session or without.
#[cfg(feature = "subscriber")]
pub(crate) fn is_done() -> bool {
    STATE.load(Ordering::Acquire) == DONE
}

/// Prevents the automatic start: the program has started a session itself.
pub(crate) fn set_done() {
    STATE.store(DONE, Ordering::Release);
}

/// Whether the automatic start was over at the fork: what the environment requests was the parent's.
static IS_PARENTS: AtomicBool = AtomicBool::new(false);

/// In a forked child: whether the environment's session was the parent's.
pub(crate) fn environment_is_parents() -> bool {
    IS_PARENTS.load(Ordering::Relaxed) // stored when the child has one thread
}

/// In a forked child: repeats the automatic start if the child has something to start (`is_pending`), or if
/// the thread that was starting the session does not exist in the child.
pub(crate) fn reset_in_child(is_pending: bool) {
    let state = STATE.load(Ordering::Relaxed);
    IS_PARENTS.store(environment_is_parents() || state == DONE, Ordering::Relaxed);
    if is_pending || state == STARTING {
        STATE.store(NOT_STARTED, Ordering::Release);
    }
}
