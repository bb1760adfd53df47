//! What is arranged once for the whole process, by the first thread that comes to the cold path, before that
//! thread takes a lock of this crate.

#![allow(unsafe_code)] // atexit

use std::sync::atomic::{AtomicBool, Ordering};

use crate::on::base::lease;
use crate::on::lifecycle::fork;
use crate::on::session::requests;

/// Registers the handlers of fork and exit, once. Not by `Once`, which a thread that does not exist in a forked
/// child may hold. A thread that comes while the first one is in here goes on: for these few microseconds of a
/// process it may hold a lock while another thread forks without the handlers. Such a child finds that out by its
/// wiped lease, and is silent.
pub(crate) fn install() {
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
    let _ = std::panic::catch_unwind(requests::stop_current);
    lease::forget_key();
}
