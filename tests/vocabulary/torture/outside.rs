//! What comes from outside of the program's own order: signals and forks.

#![allow(unsafe_code)] // sigaction, setitimer, fork

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use hairline::{scope, trace_async, trace_counter, trace_instant};

thread_local! {
    /// The state of the world in which the thread has recorded, and may be made to by a signal.
    pub(super) static READY: Cell<u64> = const { Cell::new(0) };
}

static OPEN: AtomicBool = AtomicBool::new(false);
/// The state of the world, for the handler.
pub(super) static NOW: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicU64 = AtomicU64::new(0);
/// Attempts, and those of them that guards called recorded.
pub(super) static HANDLED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

extern "C" fn handler(_: libc::c_int) {
    INSIDE.fetch_add(1, SeqCst);
    if OPEN.load(SeqCst) && READY.get() == NOW.load(SeqCst) && READY.get() % 4 == 2 {
        record();
    }
    INSIDE.fetch_sub(1, SeqCst);
}

/// The callsites are set up, and this thread's lists, before a signal uses them.
pub(super) fn record() {
    let scope = scope!("a", "handler scope");
    trace_instant!("a", "handler instant");
    let interval = trace_async!("a", "handler interval");
    trace_counter!("a", "handler counter", 1);
    HANDLED[0].fetch_add(4, SeqCst);
    HANDLED[1].fetch_add(u64::from(scope.is_recorded()) + u64::from(interval.is_recorded()), SeqCst);
    drop(interval);
    drop(scope);
}

/// SIGALRM every so many microseconds, until the result is dropped.
pub(super) struct Alarm;

impl Alarm {
    pub(super) fn every(microseconds: libc::suseconds_t) -> Self {
        HANDLED.iter().for_each(|n| n.store(0, SeqCst));
        OPEN.store(true, SeqCst);
        set(microseconds);
        Self
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        set(0);
        OPEN.store(false, SeqCst);
        while INSIDE.load(SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

fn set(microseconds: libc::suseconds_t) {
    let value = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: value, it_value: value };
    // SAFETY: the handler touches atomics and this library, which says that it may; the structs are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// Does it in a forked child, which must come to its end.
pub(super) fn in_a_child(child: impl FnOnce()) {
    // SAFETY: the child does what it is given and leaves by _exit, without destructors of what is its parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "no fork");
    if pid == 0 {
        child();
        // SAFETY: takes a number.
        unsafe { libc::_exit(0) };
    }
    let begun = Instant::now();
    let mut status = 0;
    // SAFETY: `status` is valid, the pid is our child's.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > Duration::from_secs(5) {
            // SAFETY: our child's pid.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, &raw mut status, 0);
            }
            panic!("a forked child hangs");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(status, 0, "a forked child died");
}
