//! Whatever a process does first with Hairline, its forks are known from then on.

#![cfg(feature = "enable")]
#![allow(unsafe_code)] // fork and pipe

use hairline::{Flow, TraceFuture, Track};

/// Forks, and returns what `f` returns in the child.
fn in_a_child(f: impl FnOnce() -> u64) -> u64 {
    let mut ends = [0; 2];
    // SAFETY: the array is for the call to write.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child calls `f`, writes and ends.
    if unsafe { libc::fork() } == 0 {
        let bytes = f().to_ne_bytes();
        // SAFETY: the pointer and the length describe `bytes`.
        unsafe { libc::write(ends[1], bytes.as_ptr().cast(), bytes.len()) };
        // SAFETY: takes a number.
        unsafe { libc::_exit(0) };
    }
    let mut bytes = [0; 8];
    // SAFETY: the pointer and the length describe `bytes`.
    let read = unsafe { libc::read(ends[0], bytes.as_mut_ptr().cast(), bytes.len()) };
    assert_eq!(read, 8);
    u64::from_ne_bytes(bytes)
}

/// Whether a child of a process whose first contact is this one makes flows of its own: the fork handlers
/// ran.
fn forks_are_known_after(contact: fn()) -> bool {
    in_a_child(|| {
        contact();
        let of_child = in_a_child(|| Flow::new().id());
        u64::from(Flow::new().id() != of_child)
    }) == 1
}

#[test]
fn forks_are_known_after_the_first_future_that_is_traced() {
    assert!(forks_are_known_after(|| drop(std::future::ready(()).traced("t", "future"))));
}

#[test]
fn forks_are_known_after_the_first_handle_of_a_threads_track() {
    assert!(forks_are_known_after(|| drop(Track::thread())));
}

#[test]
fn forks_are_known_after_the_first_event() {
    assert!(forks_are_known_after(|| hairline::trace_instant!("t", "event")));
}
