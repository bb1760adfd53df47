//! The end of a process that its code does not announce: exit with a session running.

#![allow(unsafe_code)] // atexit

use std::sync::Once;

use super::{fork, session};

/// Registers the handlers, once a process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library that take nothing; they stay loaded as long as it is.
        unsafe {
            libc::atexit(at_exit);
        }
        fork::install();
    });
}

/// Completes the trace when the process returns from main or calls `exit`.
extern "C" fn at_exit() {
    // A panic may not leave an extern "C" function.
    let _ = std::panic::catch_unwind(session::stop_current);
}
