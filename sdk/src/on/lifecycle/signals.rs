//! Signals that the session heeds, if it is asked to: those that end the process, and one that asks for a snapshot.
//!
//! ```text
//! SIGTERM ──> handler: notes it, posts a semaphore ──> "hairline-signal" thread: stops the session, and dies of SIGTERM
//! SIGUSR2 ──> handler: `trigger`, then the handler that was there before
//! ```
//!
//! The handlers touch atomics and call `sem_post`, `signal` and `raise`, which a handler may. The program's own handlers come
//! first: a signal that ends the process is only handled here where nobody else does.

#![allow(unsafe_code)] // sigaction and a semaphore

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use crate::builder::Config;
use crate::error::Error;
use crate::on::base::forever;
use crate::on::base::platform::{own_thread, process};
use crate::on::session::{requests, trigger};

/// Those that by default end a process that somebody wants to end.
const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The process in which the thread below runs: not in a forked child.
static PID: AtomicU32 = AtomicU32::new(0);

/// The signal that is to end the process.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

struct Semaphore(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: a semaphore is made to be used by several threads.
unsafe impl Sync for Semaphore {}

/// Made before a handler or the thread can come to it.
static POSTED: Semaphore = Semaphore(UnsafeCell::new(MaybeUninit::uninit()));

/// Highest signal number that is of interest, and one.
const SIGNALS: usize = 65;

/// The actions that were there before [`trigger`], each kept for the rest of the process: a handler may be reading it. Null: none.
static BEFORE: [AtomicPtr<Before>; SIGNALS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// What there was before: the handler, and whether it wants to be told more than the signal. One pointer leads to both, so that a
/// handler never sees one of each of two.
struct Before {
    handler: usize,
    wants_info: bool,
}

/// What the session is to heed. Called by the one thread that starts a session.
pub(crate) fn install(config: &Config) -> Result<(), Error> {
    if let Some(signal) = config.trigger_on_signal {
        trigger_on(signal).map_err(|_| Error::Value {
            what: "signal",
            value: signal.to_string(),
            expected: "use the number of one that a program may handle",
        })?;
    }
    if config.finish_on_signals && PID.load(Ordering::Relaxed) != process::id() {
        finish().map_err(Error::Thread)?;
    }
    Ok(())
}

fn finish() -> io::Result<()> {
    // SAFETY: nobody uses the semaphore yet: handlers of another process (this is a forked child) leave it alone.
    if unsafe { libc::sem_init(POSTED.0.get().cast(), 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    drop(own_thread::spawn(c"hairline-signal", wait)?); // it goes on by itself
    PID.store(process::id(), Ordering::Release);
    for signal in ENDING {
        let present = action_of(signal)?;
        if present.sa_sigaction == libc::SIG_DFL {
            // The second one ends the process by itself.
            set_action(signal, end as *const () as usize, libc::SA_RESTART | libc::SA_RESETHAND)?;
        }
    }
    Ok(())
}

/// The handler of signals that end the process.
extern "C" fn end(signal: libc::c_int) {
    if PID.load(Ordering::Acquire) == process::id() {
        ENDED_BY.store(signal, Ordering::Relaxed);
        // SAFETY: made before PID was stored.
        unsafe { libc::sem_post(POSTED.0.get().cast()) };
    } else {
        die_of(signal); // a forked child without a session of its own
    }
}

/// The life of the thread that ends the process.
fn wait() {
    // SAFETY: made before this thread.
    while unsafe { libc::sem_wait(POSTED.0.get().cast()) } != 0 {} // interrupted
    requests::stop_current();
    die_of(ENDED_BY.load(Ordering::Relaxed));
}

/// As if nobody had handled it.
fn die_of(signal: libc::c_int) {
    // SAFETY: takes numbers and a set of this frame. The signal comes to this thread once it does not block it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        let mut this: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut this);
        libc::sigaddset(&raw mut this, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const this, std::ptr::null_mut());
    }
}

fn trigger_on(signal: libc::c_int) -> io::Result<()> {
    let place = usize::try_from(signal).ok().filter(|n| *n < SIGNALS).ok_or(io::ErrorKind::InvalidInput)?;
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
    let own = trigger as *const () as usize;
    let before = action_of(signal)?;
    if faults.contains(&signal) {
        return Err(io::ErrorKind::InvalidInput.into()); // returning from its handler would raise it again
    }
    if before.sa_sigaction != own {
        let wants_info = before.sa_flags & libc::SA_SIGINFO != 0;
        let kept = Box::leak(Box::new(Before { handler: before.sa_sigaction, wants_info }));
        BEFORE[place].store(kept, Ordering::Release); // pairs with the Acquire in `trigger`
        set_action(signal, own, libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK)?;
    }
    Ok(())
}

/// The handler of a signal that asks for a snapshot.
extern "C" fn trigger(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    trigger::trigger();
    let Some(place) = usize::try_from(signal).ok().filter(|n| *n < SIGNALS) else { return };
    let Some(before) = forever::get(BEFORE[place].load(Ordering::Acquire)) else { return };
    match before.handler {
        libc::SIG_DFL | libc::SIG_IGN => {}
        handler if before.wants_info => {
            // SAFETY: what `sigaction` gave as a handler of three arguments.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: what `sigaction` gave as a handler of one argument.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: all-zero is a valid sigaction, and the call writes one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        match libc::sigaction(signal, std::ptr::null(), &raw mut action) {
            0 => Ok(action),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_action(signal: libc::c_int, handler: usize, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a valid sigaction, whose handler is a function of this library with the arguments that its flags say.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        match libc::sigaction(signal, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
