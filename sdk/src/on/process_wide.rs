//! What is arranged once for the whole process, at the first contact of any thread with the cold path: before any lock of this
//! crate can be held, so that a fork finds its handlers in place whatever other threads do.

#![allow(unsafe_code)] // atexit

use std::sync::atomic::{AtomicBool, Ordering};

use super::{fork, session, thread};

/// Registers the handlers of fork and exit, once. Not by `Once`, which a thread that does not exist in a forked child may hold: a
/// thread that comes while another one is in here goes on.
pub(super) fn install() {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if !IS_INSTALLED.swap(true, Ordering::Relaxed) {
        fork::install();
        // SAFETY: the handler is a function of this library that takes nothing. The C library calls it before it unloads this one.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Completes the trace when the process returns from main or calls `exit`; also when this library is unloaded.
extern "C" fn at_exit() {
    // A panic may not leave an extern "C" function.
    let _ = std::panic::catch_unwind(session::stop_current);
    thread::forget_key();
}
