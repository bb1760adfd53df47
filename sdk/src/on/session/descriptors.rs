//! Descriptors of the kernel's events, which a forked child closes: the kernel would otherwise go on
//! recording for the child's whole life.

#![allow(unsafe_code)] // shares a list without a lock

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::on::base::platform;
use crate::on::base::platform::process;

/// Returns how many descriptors a session may open for the kernel's events: half of the limit is left to the
/// program, whatever it has open and whatever the session has opened before.
pub(crate) fn may_open() -> u64 {
    let half = process::file_limit() / 2;
    if half == 0 {
        return 0; // this system has no such events
    }
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    half.saturating_sub(open)
}

/// The descriptors of the running session.
#[derive(Debug)]
pub(crate) struct Descriptors(AtomicPtr<Vec<i32>>);

impl Descriptors {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Sets the list. It was empty.
    pub(crate) fn set(&self, descriptors: Vec<i32>) {
        self.0.store(Box::into_raw(Box::new(descriptors)), Ordering::Release);
    }

    /// Empties the list, in the process that has set it.
    pub(crate) fn clear(&self) {
        let descriptors = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !descriptors.is_null() {
            // SAFETY: from the `Box` of `set`; the swap gives it to this thread alone.
            drop(unsafe { Box::from_raw(descriptors) });
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Closes the parent's descriptors in a forked child.
    pub(crate) fn close_in_child(&self) {
        let descriptors = self.0.swap(std::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: null, or from the `Box` of `set`, which is freed only after the pointer was replaced. The
        // memory is not freed here, because another thread may have held the allocator's lock at the fork.
        let Some(descriptors) = (unsafe { descriptors.as_ref() }) else { return };
        for descriptor in descriptors {
            // It was open at the fork. The thread that owns it does not exist in this process, so no code
            // uses or closes it here.
            platform::close(*descriptor);
        }
    }
}
