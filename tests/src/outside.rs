//! What comes from outside of the program's own order: signals and forks.

#![allow(unsafe_code)] // sigaction, setitimer, a forked child

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::children::{self, Fate};

/// What the handler does, the same for the whole process.
static HANDLED_BY: OnceLock<fn()> = OnceLock::new();
/// A signal is handled by any thread of the process, also by one that is then not given a core for a while:
/// whoever stops the alarm closes the door and waits until all who came in have left.
static OPEN: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    INSIDE.fetch_add(1, SeqCst);
    if OPEN.load(SeqCst)
        && let Some(handle) = HANDLED_BY.get()
    {
        handle();
    }
    INSIDE.fetch_sub(1, SeqCst);
}

/// SIGALRM every so often, until it is dropped. Then no handler is running any more.
#[derive(Debug)]
#[must_use]
pub struct Alarm(());

impl Alarm {
    /// `handle` does what is to be done; the first one of a process is the one for all its alarms.
    ///
    /// # Safety
    /// `handle` does only what a signal handler may do.
    pub unsafe fn every(microseconds: libc::suseconds_t, handle: fn()) -> Self {
        HANDLED_BY.get_or_init(|| handle);
        OPEN.store(true, SeqCst);
        set_timer(microseconds);
        Self(())
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        set_timer(0);
        OPEN.store(false, SeqCst);
        while INSIDE.load(SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

fn set_timer(microseconds: libc::suseconds_t) {
    let value = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: value, it_value: value };
    // SAFETY: the handler touches atomics and does what `Alarm::every` was promised about; the structs are
    // valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// Does it in a forked child, which then leaves without a destructor of what is its parent's.
///
/// # Errors
/// What became of the child instead of coming to its end: this is for tests that it does.
///
/// # Safety
/// `child` does only what a forked child of a process with threads may do.
pub unsafe fn in_a_child(child: impl FnOnce()) -> Result<(), String> {
    const PATIENCE: Duration = Duration::from_secs(5);
    // SAFETY: the child does what it is given, which may be done, and leaves.
    let pid = unsafe { children::fork() };
    if pid == 0 {
        child();
        children::exit_at_once(0);
    }
    assert!(pid > 0, "no fork");
    match children::fate_of(pid, PATIENCE) {
        Fate::Exited(0) => Ok(()),
        fate => {
            if fate == Fate::Hangs {
                children::kill(pid);
            }
            Err(format!("a forked child: {fate:?}"))
        }
    }
}
