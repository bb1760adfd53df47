//! Requests for a snapshot of the running flight recorder, from `trigger!`, signals and panics.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a snapshot is requested. The recorder thread clears it.
static IS_TRIGGERED: AtomicBool = AtomicBool::new(false);

/// Whether the running session writes snapshots of panics.
static IS_FOR_PANICS: AtomicBool = AtomicBool::new(false);

/// Requests a snapshot of the running flight recorder. Safe in a signal handler: takes no lock.
pub fn trigger() {
    IS_TRIGGERED.store(true, Ordering::Release); // pairs with the Acquire in `take`
}

/// Takes the request. Returns whether there was one.
pub(crate) fn take() -> bool {
    IS_TRIGGERED.swap(false, Ordering::Acquire) // pairs with the Release in `trigger`
}

/// Clears the requests to an earlier session.
pub(crate) fn reset() {
    IS_TRIGGERED.store(false, Ordering::Relaxed);
    IS_FOR_PANICS.store(false, Ordering::Relaxed);
}

/// Makes panics request snapshots.
pub(crate) fn set_for_panics() {
    IS_FOR_PANICS.store(true, Ordering::Release);
}

/// Returns whether panics request snapshots.
pub(crate) fn is_for_panics() -> bool {
    IS_FOR_PANICS.load(Ordering::Acquire)
}
