//! The handlers of fork and exit. The first thread on the cold path registers them, before it takes a lock of
//! this crate.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::on::base::{lease, platform};
use crate::on::lifecycle::place::REGISTRATION;
use crate::on::lifecycle::{fork, socket};
use crate::on::session::control;

/// Registers the handlers of fork and exit, once.
///
/// This is not a `Once`: a thread that does not exist in a forked child could hold it. A second thread does
/// not wait for the first. So for a few microseconds of a process, the second thread may hold a lock while
/// the first has not registered the fork handlers, and a third thread may fork then. The child detects the
/// fork by its wiped lease, and records nothing.
pub(crate) fn install() {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if !IS_INSTALLED.swap(true, Ordering::Relaxed) {
        fork::install();
        platform::at_exit(at_exit);
    }
}

/// Completes the trace when the process returns from `main` or calls `exit`, and when this library is
/// unloaded.
extern "C" fn at_exit() {
    // A panic must not leave an extern "C" function.
    let _ = std::panic::catch_unwind(|| {
        socket::close();
        REGISTRATION.set_ends();
        control::stop_current();
    });
    lease::forget_key();
}
