//! Signals that a session handles on request: signals that end the process, and one that triggers a snapshot.
//!
//! ```text
//! SIGTERM ──> handler: stores the number, posts a semaphore
//!               └──> "hairline-signal" thread: stops the session, raises SIGTERM again
//! SIGUSR2 ──> handler: `trigger`, then the handler that was installed before
//! ```
//!
//! The handlers use atomics and call `sem_post`, `signal` and `raise`, which are safe in a handler. The
//! program's own handlers come first: a signal that ends the process is handled here only if the program does
//! not handle it.

#![allow(unsafe_code)] // sigaction and a semaphore

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use crate::builder::Config;
use crate::error::Error;
use crate::on::base::forever;
use crate::on::base::platform::{own_thread, process};
use crate::on::session::{control, trigger};

/// Signals that request the end of a process, and by default end it.
const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The process that has the `hairline-signal` thread. A forked child has none.
static PID: AtomicU32 = AtomicU32::new(0);

/// The signal that ends the process.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

struct Semaphore(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: several threads may use a semaphore at the same time.
unsafe impl Sync for Semaphore {}

/// Initialised before a handler or the thread can use it.
static POSTED: Semaphore = Semaphore(UnsafeCell::new(MaybeUninit::uninit()));

/// One more than the highest signal number.
const SIGNALS: usize = 65;

/// The action of each signal before [`handle_trigger`] was installed. Null: not installed. An action lives as
/// long as the process, because a handler may read it at any time.
static BEFORE: [AtomicPtr<Action>; SIGNALS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// The action of a signal. One pointer leads to both fields, so that a handler never reads the fields of two
/// actions.
struct Action {
    handler: usize,
    /// Whether the handler takes three arguments (`SA_SIGINFO`).
    takes_info: bool,
}

/// Installs the handlers that the session's settings request. Only the one thread that starts a session calls
/// it.
///
/// # Errors
/// When the program may not handle the signal of the settings, or the thread cannot be started.
pub(crate) fn install(config: &Config) -> Result<(), Error> {
    if let Some(signal) = config.trigger_on_signal {
        trigger_on(signal).map_err(|_| Error::Value {
            what: "signal",
            value: signal.to_string(),
            expected: "use the number of a signal that a program may handle",
        })?;
    }
    if config.finish_on_signals && PID.load(Ordering::Relaxed) != process::id() {
        handle_ending_signals().map_err(Error::Thread)?;
    }
    Ok(())
}

/// Starts the `hairline-signal` thread, and handles the [`ENDING`] signals that the program does not handle.
fn handle_ending_signals() -> io::Result<()> {
    // SAFETY: nothing uses the semaphore yet. In a forked child, the handlers do not use it while `PID` is
    // the parent's.
    if unsafe { libc::sem_init(POSTED.0.get().cast(), 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    drop(own_thread::spawn(c"hairline-signal", wait)?); // the drop detaches the thread
    PID.store(process::id(), Ordering::Release);
    for signal in ENDING {
        let present = action_of(signal)?;
        if present.sa_sigaction == libc::SIG_DFL {
            // SA_RESETHAND: a second signal ends the process at once.
            set_action(signal, handle_end as *const () as usize, libc::SA_RESTART | libc::SA_RESETHAND)?;
        }
    }
    Ok(())
}

/// Handles a signal that ends the process.
extern "C" fn handle_end(signal: libc::c_int) {
    if PID.load(Ordering::Acquire) == process::id() {
        ENDED_BY.store(signal, Ordering::Relaxed);
        // SAFETY: the semaphore was initialised before `PID` was stored.
        unsafe { libc::sem_post(POSTED.0.get().cast()) };
    } else {
        die_of(signal); // a forked child without a session of its own
    }
}

/// Runs the `hairline-signal` thread: waits for a signal, stops the session and ends the process.
fn wait() {
    // SAFETY: the semaphore was initialised before this thread started.
    while unsafe { libc::sem_wait(POSTED.0.get().cast()) } != 0 {} // was interrupted
    control::stop_current();
    die_of(ENDED_BY.load(Ordering::Relaxed));
}

/// Ends the process by the signal's default action.
fn die_of(signal: libc::c_int) {
    // SAFETY: the arguments are numbers and a set on this stack. The signal is delivered when this thread
    // unblocks it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        let mut this: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut this);
        libc::sigaddset(&raw mut this, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const this, std::ptr::null_mut());
    }
}

/// Installs [`handle_trigger`] for the signal.
fn trigger_on(signal: libc::c_int) -> io::Result<()> {
    let index = usize::try_from(signal).ok().filter(|n| *n < SIGNALS).ok_or(io::ErrorKind::InvalidInput)?;
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
    let own = handle_trigger as *const () as usize;
    let before = action_of(signal)?;
    if faults.contains(&signal) {
        // The return from the handler would raise the signal again.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if before.sa_sigaction != own {
        let takes_info = before.sa_flags & libc::SA_SIGINFO != 0;
        let action = Box::leak(Box::new(Action { handler: before.sa_sigaction, takes_info }));
        BEFORE[index].store(action, Ordering::Release); // pairs with the Acquire in `handle_trigger`
        set_action(signal, own, libc::SA_RESTART | libc::SA_SIGINFO | libc::SA_ONSTACK)?;
    }
    Ok(())
}

/// Handles a signal that triggers a snapshot. Calls the handler that was installed before.
extern "C" fn handle_trigger(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    trigger::trigger();
    let Some(index) = usize::try_from(signal).ok().filter(|n| *n < SIGNALS) else { return };
    let Some(before) = forever::get(BEFORE[index].load(Ordering::Acquire)) else { return };
    match before.handler {
        libc::SIG_DFL | libc::SIG_IGN => {}
        handler if before.takes_info => {
            // SAFETY: `sigaction` returned it as a handler with three arguments.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: `sigaction` returned it as a handler with one argument.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: an all-zero sigaction is valid, and the call overwrites it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        match libc::sigaction(signal, std::ptr::null(), &raw mut action) {
            0 => Ok(action),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_action(signal: libc::c_int, handler: usize, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the sigaction is valid. Its handler is a function of this library with the arguments that
    // `flags` states.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        match libc::sigaction(signal, &raw const action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
