//! Values that are kept for the rest of the process.

#![allow(unsafe_code)] // leaked boxes behind atomic pointers

use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is kept for the rest of the process, behind a pointer.
pub(crate) fn shared<T>(p: *mut T) -> Option<&'static T> {
    // SAFETY: null, or from a Box that was leaked: by `Callsite::lay_down`, `keep` or `signals::trigger_on`.
    unsafe { p.as_ref() }
}

/// What `place` has for the rest of the process, made at the first call. Without a lock, which a fork could lose and a signal
/// handler's event would wait for: of several that make it at once, the first counts.
pub(crate) fn keep<T>(place: &AtomicPtr<T>, make: impl FnOnce() -> Box<T>) -> &'static T {
    // Acquire pairs with the Release below.
    if let Some(kept) = shared(place.load(Ordering::Acquire)) {
        return kept;
    }
    let made = Box::into_raw(make());
    match place.compare_exchange(std::ptr::null_mut(), made, Ordering::Release, Ordering::Acquire) {
        // SAFETY: from a Box, which nobody frees any more.
        Ok(_) => unsafe { &*made },
        Err(first) => {
            // SAFETY: `made` is still this call's own; `first` is what another one has kept.
            unsafe {
                drop(Box::from_raw(made));
                &*first
            }
        }
    }
}
