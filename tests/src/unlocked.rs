//! Checks that no code of the program runs while its thread holds one of the recorder's locks.

use std::io::Write;

/// Ends the process if the calling thread holds a lock of the recorder. Allocates nothing, so an allocator
/// may call it. In builds without debug assertions nothing is known of locks, and nothing is checked.
///
/// Not for a signal handler, which may interrupt a thread that holds one.
pub fn require(what: &str) {
    if holds_a_lock() {
        let _ = writeln!(std::io::stderr(), "{what} under a lock of the recorder");
        std::process::abort();
    }
}

#[cfg(debug_assertions)]
fn holds_a_lock() -> bool {
    hairline::__private::holds_a_lock()
}

#[cfg(not(debug_assertions))]
fn holds_a_lock() -> bool {
    false
}
