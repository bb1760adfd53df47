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
//! not handle it. Another copy of this crate in the process may handle it: then it gets the signal after this
//! one.

#![allow(unsafe_code)] // the waker

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use crate::builder::Config;
use crate::error::Error;
use crate::on::base::forever;
use crate::on::base::platform;
use crate::on::base::platform::{Action, Waker, own_thread, process};
use crate::on::session::{control, trigger};

/// The process that has the `hairline-signal` thread. A forked child has none.
static PID: AtomicU32 = AtomicU32::new(0);

/// Whether that thread has completed the trace: the next signal is for another copy, or ends the process.
static IS_COMPLETE: AtomicBool = AtomicBool::new(false);

/// The signal that ends the process.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// Prepared before a handler or the thread can use it.
static WAKER: Waker = Waker::new();

/// One more than the highest signal number.
const SIGNALS: usize = 65;

/// The action of each signal before a handler of this crate was installed. Null: not installed, or nothing to
/// call. An action lives as long as the process, because a handler may read it at any time.
type Before = [AtomicPtr<Action>; SIGNALS];

/// Before [`handle_trigger`].
static TRIGGERED_BEFORE: Before = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

/// Before [`handle_end`]: those of other copies of this crate, which complete their own traces.
static ENDED_BEFORE: Before = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS];

fn keep(all: &Before, signal: c_int, before: Action) {
    if let Some(slot) = slot(all, signal) {
        // Pairs with the Acquire in `kept` and in `end_by`.
        slot.store(Box::leak(Box::new(before)), Ordering::Release);
    }
}

fn kept(all: &Before, signal: c_int) -> Option<&'static Action> {
    forever::get(slot(all, signal)?.load(Ordering::Acquire))
}

fn slot(all: &Before, signal: c_int) -> Option<&AtomicPtr<Action>> {
    usize::try_from(signal).ok().and_then(|n| all.get(n))
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

/// Starts the `hairline-signal` thread, and handles the [`ENDING`](platform::ENDING) signals that the program
/// does not handle.
fn handle_ending_signals() -> io::Result<()> {
    // SAFETY: nothing uses the waker yet. In a forked child, the handlers do not use it while `PID` is the
    // parent's.
    unsafe { WAKER.start() }?;
    drop(own_thread::spawn(c"hairline-signal", wait)?); // the drop detaches the thread
    IS_COMPLETE.store(false, Ordering::Relaxed);
    PID.store(process::id(), Ordering::Release);
    platform::ENDING.into_iter().try_for_each(|signal| {
        platform::handle_ending(signal, handle_end, |of_another_copy| {
            keep(&ENDED_BEFORE, signal, of_another_copy);
        })
    })
}

/// Handles a signal that ends the process.
extern "C" fn handle_end(signal: c_int) {
    if PID.load(Ordering::Acquire) == process::id() && !IS_COMPLETE.load(Ordering::Relaxed) {
        ENDED_BY.store(signal, Ordering::Relaxed);
        // SAFETY: the waker was prepared before `PID` was stored.
        unsafe { WAKER.wake() };
    } else {
        end_by(signal); // for one, a forked child without a session of its own
    }
}

/// Runs the `hairline-signal` thread: waits for a signal, stops the session and ends the process.
fn wait() {
    // SAFETY: the waker was prepared before this thread started.
    unsafe { WAKER.wait() };
    control::stop_current();
    IS_COMPLETE.store(true, Ordering::Relaxed);
    end_by(ENDED_BY.load(Ordering::Relaxed));
}

/// Lets another copy of this crate complete its trace, or ends the process. Each copy is asked once: in a
/// forked child, two of them may have been installed after each other.
fn end_by(signal: c_int) {
    // Pairs with the Release in `keep`. The action is never freed.
    let before = slot(&ENDED_BEFORE, signal).map(|slot| slot.swap(std::ptr::null_mut(), Ordering::AcqRel));
    match before.and_then(forever::get) {
        Some(of_another_copy) => of_another_copy.pass_on(signal),
        None => platform::die_of(signal),
    }
}

/// Installs [`handle_trigger`] for the signal.
fn trigger_on(signal: c_int) -> io::Result<()> {
    if !(1..SIGNALS as c_int).contains(&signal) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    platform::handle(signal, handle_trigger, |before| keep(&TRIGGERED_BEFORE, signal, before))
}

/// Handles a signal that triggers a snapshot. Calls the handler that was installed before.
extern "C" fn handle_trigger(signal: c_int, info: *mut platform::SignalInfo, context: *mut c_void) {
    trigger::trigger();
    if let Some(before) = kept(&TRIGGERED_BEFORE, signal) {
        before.call(signal, info, context);
    }
}
