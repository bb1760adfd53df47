//! Values that exist for the rest of the process: leaked memory behind atomic pointers.

#![allow(unsafe_code)] // leaked memory behind atomic pointers

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::on::base::memory::leak;

/// Returns the leaked value behind a pointer; `None` for a null pointer.
pub(crate) fn get<T>(p: *mut T) -> Option<&'static T> {
    // SAFETY: null, or leaked: by `Callsite::set_constants`, `Listed::push`, `get_or_leak`,
    // `signals::keep` or the `Reader`s of `heap::profile` and `stacks`.
    unsafe { p.as_ref() }
}

/// Returns the value of `slot`, made by the first call. It takes no lock: a fork could lose a lock, and an
/// event in a signal handler would wait for it. If several threads make the value at once, the first one
/// stored counts, and the others are never used.
pub(crate) fn get_or_leak<T>(slot: &AtomicPtr<T>, make: impl FnOnce() -> T) -> &'static T {
    // Acquire pairs with the Release below.
    if let Some(value) = get(slot.load(Ordering::Acquire)) {
        return value;
    }
    let made = leak(make());
    match slot.compare_exchange(std::ptr::null_mut(), made, Ordering::Release, Ordering::Acquire) {
        Ok(_) => made,
        // SAFETY: the value that another call has leaked.
        Err(first) => unsafe { &*first },
    }
}
