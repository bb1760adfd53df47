//! Descriptors of a session.
//!
//! A program may close all of its descriptors, as daemons and sandboxes do, and its next file gets the number
//! of one that Hairline still uses. So the session's own thread has a table of open files of its own, where
//! the system has that: [`OwnFiles`](crate::on::session::own_files::OwnFiles). Elsewhere a forked child
//! closes its copies: the kernel would otherwise go on recording for the child's whole life.

#![allow(unsafe_code)] // shares a list without a lock

use std::sync::atomic::{AtomicPtr, Ordering};

use crate::on::base::platform;
use crate::on::base::platform::facts::Identity;
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

/// Those of the kernel's events of the running session: of context switches, the hardware's counters,
/// samples.
pub(crate) static SCHEDULING: Descriptors = Descriptors::none();
pub(crate) static HARDWARE: Descriptors = Descriptors::none();
pub(crate) static SAMPLING: Descriptors = Descriptors::none();

const ALL: [&Descriptors; 3] = [&SCHEDULING, &HARDWARE, &SAMPLING];

/// Returns the descriptors of all events.
pub(crate) fn all() -> impl Iterator<Item = i32> {
    ALL.into_iter().flat_map(Descriptors::list)
}

/// Notes that a forked child inherits none.
pub(crate) fn are_not_inherited() {
    ALL.iter().for_each(|of| of.clear());
}

/// Closes the parent's events in a forked child.
pub(crate) fn close_in_child() {
    ALL.iter().for_each(|of| of.close_in_child());
}

/// The descriptors of the running session.
#[derive(Debug)]
pub(crate) struct Descriptors(AtomicPtr<Numbers>);

#[derive(Debug)]
struct Numbers {
    all: Vec<i32>,
    /// What the kernel says of the first one. It says the same of all its events, and something else of files,
    /// pipes and sockets.
    identity: Option<Identity>,
    /// Whether a forked child inherits them: not those of a thread with a table of its own.
    are_inherited: bool,
}

impl Descriptors {
    const fn none() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Sets the list. It was empty.
    pub(crate) fn set(&self, descriptors: Vec<i32>) {
        let identity = descriptors.first().and_then(|first| platform::identity_of_number(*first));
        let numbers = Numbers { all: descriptors, identity, are_inherited: !platform::has_own_files() };
        self.0.store(Box::into_raw(Box::new(numbers)), Ordering::Release);
    }

    /// Empties the list, in the process that has set it.
    pub(crate) fn clear(&self) {
        let descriptors = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !descriptors.is_null() {
            // SAFETY: from the `Box` of `set`; the swap gives it to this thread alone.
            drop(unsafe { Box::from_raw(descriptors) });
        }
    }

    /// Returns the list.
    fn list(&self) -> Vec<i32> {
        // SAFETY: null, or from the `Box` of `set`. Only the caller's own session frees it, after its start.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
            .map_or_else(Vec::new, |numbers| numbers.all.clone())
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Closes the parent's descriptors in a forked child.
    fn close_in_child(&self) {
        let descriptors = self.0.swap(std::ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: null, or from the `Box` of `set`, which is freed only after the pointer was replaced. The
        // memory is not freed here, because another thread may have held the allocator's lock at the fork.
        let Some(descriptors) = (unsafe { descriptors.as_ref() }).filter(|of| of.are_inherited) else {
            return;
        };
        for descriptor in &descriptors.all {
            // The program may have closed it before the fork, and have a socket with this number.
            let identity = platform::identity_of_number(*descriptor);
            if identity.is_some() && identity == descriptors.identity {
                platform::close(*descriptor);
            }
        }
    }
}
