//! What asks a flight recorder for a snapshot.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by whoever triggers, cleared by the recorder's thread.
pub(crate) static TRIGGERED: AtomicBool = AtomicBool::new(false);

/// Whether the running session wants a snapshot of panics.
pub(crate) static PANICS: AtomicBool = AtomicBool::new(false);

/// Asks the running flight recorder for a snapshot. Safe in a signal handler: it takes no lock.
pub fn trigger() {
    TRIGGERED.store(true, Ordering::Release);
}
