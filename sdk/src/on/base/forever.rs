//! Values that exist for the rest of the process: leaked boxes behind atomic pointers.

#![allow(unsafe_code)] // leaked boxes behind atomic pointers

use std::sync::atomic::{AtomicPtr, Ordering};

/// Returns the leaked value behind a pointer; `None` for a null pointer.
pub(crate) fn get<T>(p: *mut T) -> Option<&'static T> {
    // SAFETY: null, or from a leaked Box: by `Callsite::set_constants`, `get_or_leak` or
    // `signals::trigger_on`.
    unsafe { p.as_ref() }
}

/// Returns the value of `slot`, made by the first call and leaked. It takes no lock: a fork could lose a
/// lock, and an event in a signal handler would wait for it. If several threads make the value at once, the
/// first one stored counts.
pub(crate) fn get_or_leak<T>(slot: &AtomicPtr<T>, make: impl FnOnce() -> Box<T>) -> &'static T {
    // Acquire pairs with the Release below.
    if let Some(value) = get(slot.load(Ordering::Acquire)) {
        return value;
    }
    let made = Box::into_raw(make());
    match slot.compare_exchange(std::ptr::null_mut(), made, Ordering::Release, Ordering::Acquire) {
        // SAFETY: from a Box that is never freed now.
        Ok(_) => unsafe { &*made },
        Err(first) => {
            // SAFETY: `made` still belongs to this call alone; `first` is the value that another call has
            // leaked.
            unsafe {
                drop(Box::from_raw(made));
                &*first
            }
        }
    }
}
