//! The ends of a process that its code does not announce: exit with a session running, and fork.

#![allow(unsafe_code)] // atexit and pthread_atfork

use std::sync::Once;

use super::{registry, session, thread};

/// Registers the handlers, once a process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this library that take nothing; they stay loaded as long as it is.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

/// Completes the trace when the process returns from main or calls `exit`.
extern "C" fn at_exit() {
    // A panic may not leave an extern "C" function.
    let _ = std::panic::catch_unwind(session::stop_current);
}

/// The child of a fork has no writer thread, and the ring is its parent's: it does not trace.
extern "C" fn in_child() {
    registry::detach_after_fork();
    thread::detach_after_fork();
}
