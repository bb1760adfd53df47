//! Requests for a snapshot of the running flight recorder, from `trigger!`, signals, panics and slow slices.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::on::base::forever;
use crate::on::callsite::Callsite;
use crate::on::callsite::listed::Listed;

/// Whether a snapshot is requested. The recorder thread clears it.
static IS_TRIGGERED: AtomicBool = AtomicBool::new(false);

/// The callsite of the first slow slice for which a snapshot is requested; null if there is none. The code of
/// the callsite may be unloaded before the snapshot is written, so this is its entry in the registry.
static SLOW: AtomicPtr<Listed> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the running session writes snapshots of panics.
static IS_FOR_PANICS: AtomicBool = AtomicBool::new(false);

/// Requests a snapshot of the running flight recorder. Safe in a signal handler: takes no lock.
pub fn trigger() {
    IS_TRIGGERED.store(true, Ordering::Release); // pairs with the Acquire in `take`
}

/// Requests a snapshot for a slow slice of the callsite. Takes no lock.
#[cold]
pub(crate) fn trigger_slow(callsite: &'static Callsite) {
    let Some(listed) = Listed::of(callsite) else { return };
    let slow = std::ptr::from_ref(listed).cast_mut();
    // Release pairs with the Acquire in `take_slow`. Until that, the first one stays.
    let _ = SLOW.compare_exchange(std::ptr::null_mut(), slow, Ordering::Release, Ordering::Relaxed);
}

/// Takes the request for a slow slice. Returns the callsite of the slice.
pub(crate) fn take_slow() -> Option<&'static Listed> {
    forever::get(SLOW.swap(std::ptr::null_mut(), Ordering::Acquire)) // pairs with the Release above
}

/// Takes the request. Returns whether there was one.
pub(crate) fn take() -> bool {
    IS_TRIGGERED.swap(false, Ordering::Acquire) // pairs with the Release in `trigger`
}

/// Clears the requests to an earlier session.
pub(crate) fn reset() {
    IS_TRIGGERED.store(false, Ordering::Relaxed);
    SLOW.store(std::ptr::null_mut(), Ordering::Relaxed);
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
