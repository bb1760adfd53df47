//! What the ways share: sessions, work, and the end of the threads that work meanwhile.

#![allow(unsafe_code)] // fork

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairline::{Overflow, Session, SessionBuilder, trace_scope};
use hairline_tests::children;

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the threads that work beside this one are to end.
pub(crate) fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Ends them, also where this thread panics: nobody waits for ever.
pub(crate) struct StopOnDrop;

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        STOP.store(true, Ordering::Relaxed);
    }
}

/// Waits for room, so that no event is lost. With the variable `MOMENTS_DETAILED`, each event has the CPU
/// time of its thread and its place in the source.
pub(crate) fn builder(output: &str) -> SessionBuilder {
    let is_detailed = std::env::var_os("MOMENTS_DETAILED").is_some();
    let builder = Session::builder().thread_time(is_detailed).source_locations(is_detailed);
    builder.output(output).overflow(Overflow::Block(Duration::from_secs(10)))
}

/// The longest that a child may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn wait_for(child: libc::pid_t) {
    children::expect_success(child, PATIENCE);
}

pub(crate) fn fork() -> libc::pid_t {
    // SAFETY: the children here record and end; the C library lets them allocate.
    unsafe { children::fork() }
}

pub(crate) fn work(scopes: u32) {
    for n in 0..scopes {
        trace_scope!("moments", "work", n);
    }
}

/// The thread's signals of this number call `handler`.
pub(crate) fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a function of this program. What it does is said where it is.
    unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
}

/// SIGALRM every so many microseconds; 0: no more.
pub(crate) fn set_timer(microseconds: libc::suseconds_t) {
    let interval = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: the timer's value is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

/// No handler runs on this thread.
pub(crate) fn block_signals() {
    // SAFETY: an all-zero value is a valid one, which the first call fills.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
