//! Forks in a signal handler, on a thread that records.

#![allow(unsafe_code)] // signals, forks

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::time::{Duration, Instant};

use hairline_tests::children;
use hairline_tests::forked::describe;
use hairline_tests::marking::is_allocating;
use hairline_tests::torture::Random;

use crate::ends::{PATIENCE, end, leave, wait_for};
use crate::orders::{KINDS, Kind};
use crate::run::is_stopped;
use crate::steps::{begin_child, is_child, number, record_bare, recorded};
use crate::told::{fail, process, tell};

/// The most threads that record.
const MAX_RECORDERS: usize = 8;

/// Threads that record, to be interrupted. No lock: a fork may come at any moment.
static RECORDERS: [AtomicU64; MAX_RECORDERS] = [const { AtomicU64::new(0) }; MAX_RECORDERS];
static RECORDER_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether a thread waits for a handler.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);
static KIND: AtomicU32 = AtomicU32::new(0);
/// What came of it: a pid, -1 if there was no fork, 0 before the handler's end.
static HANDLED: AtomicI32 = AtomicI32::new(0);

/// In a child that goes on as the thread that was interrupted: the steps it still has.
static STEPS_LEFT: AtomicI64 = AtomicI64::new(-1);
static PARENT: AtomicI32 = AtomicI32::new(0);

/// This thread may be interrupted from now on.
pub(crate) fn add_recorder() {
    // SAFETY: takes nothing.
    let id = unsafe { libc::pthread_self() };
    // The gate that the thread passes next publishes it.
    RECORDERS[RECORDER_COUNT.fetch_add(1, SeqCst)].store(id, SeqCst);
}

/// One at a time.
struct Turn;

impl Turn {
    fn wait() -> Self {
        while IS_TAKEN.swap(true, SeqCst) {
            std::thread::sleep(Duration::from_micros(100));
        }
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_TAKEN.store(false, SeqCst);
    }
}

/// Lets a thread that records make a child of this kind in a handler, and waits for the child's end.
pub(crate) fn make(kind: Kind, random: &Random, what: &str) {
    let turn = Turn::wait();
    SEED.store(random.next(), SeqCst);
    KIND.store(kind as u32, SeqCst);
    HANDLED.store(0, SeqCst);
    let thread = RECORDERS[random.below(RECORDER_COUNT.load(SeqCst) as u64) as usize].load(SeqCst);
    // SAFETY: the recorders end when all children are made.
    unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
    let began = Instant::now();
    while HANDLED.load(SeqCst) == 0 {
        if is_stopped() {
            return; // a thread that records has panicked
        }
        if began.elapsed() > PATIENCE {
            return fail(&format!("{what}: the handler hangs\n{}", describe(process())));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    let child = HANDLED.load(SeqCst);
    drop(turn);
    if child > 0 {
        wait_for(child, what, 1);
    }
}

extern "C" fn handle(_: libc::c_int) {
    let random = Random::new(SEED.load(SeqCst));
    let wanted = KIND.load(SeqCst);
    let kind = KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind as u32 == wanted);
    let kind = kind.unwrap_or(Kind::BareHandler);
    let parent = process();
    let child = match kind {
        // SAFETY: the child does what a handler may, and ends.
        Kind::BareHandler => unsafe { children::bare_fork() },
        // SAFETY: not from inside of the allocator, whose locks `fork` takes.
        _ if !is_allocating() => unsafe { children::fork() },
        _ => -1,
    };
    if child != 0 {
        return HANDLED.store(child, SeqCst);
    }
    begin_child();
    if kind == Kind::Returned {
        PARENT.store(parent, SeqCst);
        STEPS_LEFT.store(random.below(20) as i64, SeqCst);
        return;
    }
    (0..random.below(5)).for_each(|_| record_bare());
    let end = if random.one_in(2) { "_exit" } else { "killed" };
    tell(parent, kind.name(), end, &[(number(), recorded())]);
    leave(end);
}

/// Between two records of a thread: ends the process if it is a child that goes on as this thread, and has
/// done its steps.
pub(crate) fn end_if_done(random: &Random) {
    if is_child() && STEPS_LEFT.fetch_sub(1, SeqCst) <= 0 {
        let end = end(random, Kind::Returned);
        tell(PARENT.load(SeqCst), Kind::Returned.name(), end, &[(number(), recorded())]);
        leave(end);
    }
}

/// A crash: whoever waits for this process looks at it, and kills it.
extern "C" fn stop(_: libc::c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(process(), libc::SIGSTOP) };
}

pub(crate) fn install() {
    let _ = children::has_bare_fork(); // looked up before the first signal
    for (signal, handler) in [
        (libc::SIGUSR1, handle as *const () as usize),
        (libc::SIGSEGV, stop as *const () as usize),
        (libc::SIGBUS, stop as *const () as usize),
        (libc::SIGILL, stop as *const () as usize),
        (libc::SIGABRT, stop as *const () as usize),
    ] {
        // SAFETY: the handlers do what a handler may, on whatever stack; the struct is valid.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
